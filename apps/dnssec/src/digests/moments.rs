//! When a signer may have signed. The sets of one event have the same beginning and end, which follow from the time of the event: so only few
//! pairs of them are possible now.

/// How long ago the event may have begun whose digests are asked for, in seconds.
const AGO: u64 = 60;
/// How far the signer's clock may be ahead, in seconds.
const AHEAD: u64 = 5;

/// How a signer makes times: the signature begins so long before it is made, and ends so long after, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Style {
    /// From the beginning to the event.
    pub back: u32,
    /// From the event to the end.
    pub lifetime: u32,
}

/// The times of the signatures of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    /// When the event was, in seconds since 1970.
    pub time: u64,
    /// How its signer makes times.
    pub style: Style,
}

impl Moment {
    /// When the signatures begin, modulo 2^32.
    #[must_use]
    pub fn inception(self) -> u32 {
        low(self.time).wrapping_sub(self.style.back)
    }

    /// When they end, modulo 2^32.
    #[must_use]
    pub fn expiration(self) -> u32 {
        low(self.time).wrapping_add(self.style.lifetime)
    }
}

/// A time in 32 bits, as signatures have it.
pub(super) fn low(time: u64) -> u32 {
    let [_, _, _, _, a, b, c, d] = time.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// The times at which an event may have begun, the nearest first: most digests are asked for within a second.
pub(super) fn times(now: u64) -> impl Iterator<Item = u64> {
    (0..=AGO).flat_map(move |far| {
        let ahead = (1..=AHEAD).contains(&far).then(|| now.saturating_add(far));
        [Some(now.saturating_sub(far)), ahead].into_iter().flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_times_come_first() {
        let all: Vec<u64> = times(1_000).collect();
        assert_eq!(all[..5], [1_000, 999, 1_001, 998, 1_002]);
        assert_eq!((all.len(), all.iter().min(), all.iter().max()), (66, Some(&940), Some(&1_005)));
    }

    /// Knot's: 90 minutes back, and 14 days; times go over 2^32 in 2106.
    #[test]
    fn signatures_begin_before_the_event() {
        let style = Style { back: 5_400, lifetime: 14 * 86_400 };
        let moment = Moment { time: 1_795_000_000, style };
        assert_eq!((moment.inception(), moment.expiration()), (1_794_994_600, 1_796_209_600));
        let late = Moment { time: (1 << 32) + 10, style };
        assert_eq!((late.inception(), late.expiration()), (u32::MAX - 5_389, 1_209_610));
    }
}
