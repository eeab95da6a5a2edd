//! How many requests are under way: as many as make it faster. Over a wide network that is many. Where nodes have no presignatures left, each request
//! makes some of its own, so that more at a time make it slower.

use std::{
    cmp::Ordering,
    time::{Duration, Instant},
};

/// How many are under way at first, at least, and at most: of 512 that a node answers for a client, so that the host has a place.
const FIRST: usize = 8;
const LEAST: usize = 4;
const MOST: usize = 256;
/// The most requests of one call, as far as its answers come soon.
const MOST_CALL: usize = 64;
/// So many signatures, or twice as many as are under way, tell how fast it is: more than there are presignatures at nodes that keep few.
const ENOUGH: usize = 128;
/// So many times it has to have been as fast as before, until more are tried.
const STEADY: u32 = 8;

#[derive(Debug)]
pub(super) struct Pace {
    size: usize,
    /// Since when so many signatures were made with this size.
    since: Option<Instant>,
    made: usize,
    /// The size before, which may be the same, and how long each signature took.
    before: Option<(usize, Duration)>,
    steady: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { size: FIRST, since: None, made: 0, before: None, steady: 0 }
    }
}

impl Pace {
    /// How many requests may be under way.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// How many of them one call has: there are two at least, so that nodes do not wait for the next one.
    pub(super) fn call(&self) -> usize {
        (self.size / 2).min(MOST_CALL)
    }

    /// A call begins. If it is the only one, time runs from now.
    pub(super) fn begin(&mut self, is_first: bool, now: Instant) {
        if is_first {
            (self.since, self.made) = (Some(now), 0);
        }
    }

    /// So many signatures were made.
    pub(super) fn made(&mut self, count: usize, now: Instant) {
        self.made = self.made.saturating_add(count);
        let Some(since) = self.since.filter(|_| self.made >= ENOUGH.max(self.size.saturating_mul(2))) else { return };
        let count = u32::try_from(self.made).unwrap_or(u32::MAX).max(1);
        self.judge(now.saturating_duration_since(since) / count);
        (self.since, self.made) = (Some(now), 0);
    }

    /// Decides by how long each signature took, and how long before.
    fn judge(&mut self, each: Duration) {
        let Some((size, last)) = self.before.replace((self.size, each)) else { return self.grow() };
        // By a quarter: less may be anything.
        let is_faster = each.saturating_mul(5) <= last.saturating_mul(4);
        let is_slower = last.saturating_mul(5) <= each.saturating_mul(4);
        match size.cmp(&self.size) {
            Ordering::Less if is_faster => self.grow(),
            Ordering::Greater if is_faster => self.shrink(),
            Ordering::Less => self.shrink(),
            Ordering::Greater => self.steady = 0,
            Ordering::Equal if is_slower => self.shrink(),
            Ordering::Equal => {
                self.steady = self.steady.saturating_add(1);
                if self.steady >= STEADY {
                    self.grow();
                }
            }
        }
    }

    fn grow(&mut self) {
        (self.size, self.steady) = (self.size.saturating_mul(2).min(MOST), 0);
    }

    fn shrink(&mut self) {
        (self.size, self.steady) = ((self.size / 2).max(LEAST), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has so many signatures made, each of which takes as long as its number and the size say; the sizes, and how long it took.
    fn run(count: usize, each: impl Fn(usize, usize) -> Duration) -> (Vec<usize>, Duration) {
        let (mut pace, began) = (Pace::default(), Instant::now());
        let (mut now, mut made, mut sizes) = (began, 0, Vec::new());
        pace.begin(true, now);
        while made < count {
            let call = pace.call();
            assert!((1..=MOST_CALL).contains(&call) && (LEAST..=MOST).contains(&pace.size()));
            now += each(made, pace.size()) * u32::try_from(call).unwrap();
            pace.made(call, now);
            made += call;
            sizes.push(pace.size());
        }
        (sizes, now - began)
    }

    #[test]
    fn over_a_wide_network_many_are_under_way() {
        // A round trip of 100 ms.
        let (sizes, took) = run(4_000, |_, size| Duration::from_millis(100) / u32::try_from(size).unwrap());
        assert_eq!(sizes.last(), Some(&MOST));
        assert!(took < Duration::from_secs(6), "{took:?}");
    }

    #[test]
    fn where_more_are_no_faster_few_are_under_way() {
        let (sizes, _) = run(20_000, |_, _| Duration::from_millis(3));
        assert!(sizes.iter().all(|size| *size <= 4 * FIRST), "{sizes:?}");
        let (sizes, _) = run(20_000, |_, size| Duration::from_millis(u64::try_from(size).unwrap()));
        assert!(sizes.iter().rev().take(1_000).all(|size| *size <= 2 * LEAST), "{sizes:?}");
    }

    /// Presignatures last for the first thousand; after that each of many requests makes some of its own.
    #[test]
    fn what_was_fast_may_become_slow() {
        let each = |number: usize, size: usize| {
            let size = u64::try_from(size).unwrap();
            Duration::from_micros(if number < 1_000 { 500 + 12_000 / size } else { 2_500 + 50 * size })
        };
        let (sizes, _) = run(8_000, each);
        assert!(*sizes.iter().max().unwrap() >= 32, "{sizes:?}");
        let last = &sizes[sizes.len() / 2..];
        let mean = last.iter().sum::<usize>() / last.len();
        assert!(mean <= 16, "{mean}: {sizes:?}");
    }

    /// What is idle in between tells nothing.
    #[test]
    fn time_runs_while_something_is_under_way() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.begin(true, now);
        pace.made(4, now + Duration::from_millis(4));
        let later = now + Duration::from_secs(1_000);
        pace.begin(true, later);
        pace.begin(false, later + Duration::from_millis(1));
        pace.made(ENOUGH, later + Duration::from_millis(1) * u32::try_from(ENOUGH).unwrap());
        assert_eq!((pace.before, pace.size()), (Some((FIRST, Duration::from_millis(1))), 2 * FIRST));
    }
}
