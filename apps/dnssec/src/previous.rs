//! Copies that were in force just before, in memory alone. A signer that changes a zone may have records that it takes away signed once more, and
//! they are in the operator's copy no longer: Knot does so with Ed25519 (`spec/dnssec.md`, The copy before).

use std::{collections::VecDeque, sync::Arc};

use crate::{denial::Denial, sources::Known, zone::Zone};

/// The most copies of before that are kept at a time. A zone that changes faster than its name server follows needs more than one.
const MOST: usize = 3;

/// A copy of before, and how it denies names.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) zone: Arc<Zone>,
    pub(crate) denial: Denial,
}

/// Copies that are not in force any more. Each is forgotten so many seconds after it was found that it is not.
#[derive(Debug)]
pub(crate) struct Previous {
    seconds: u64,
    /// The copy that was in force last, and since when it is not, if there is none in its place.
    last: Option<(Before, Option<u64>)>,
    /// Those that were replaced, the newest first, and when each is forgotten.
    copies: VecDeque<(Before, u64)>,
}

impl Previous {
    /// With 0 seconds nothing is kept.
    pub(crate) fn new(seconds: u32) -> Self {
        Self { seconds: seconds.into(), last: None, copies: VecDeque::new() }
    }

    /// From now on another copy is in force, or none.
    pub(crate) fn change(&mut self, known: Option<&Known>, now: u64) {
        if self.seconds == 0 {
            return;
        }
        let Some(known) = known else {
            // A file may be empty while it is written. A copy that has expired is none for longer than it would be looked at.
            if let Some((_, ended)) = &mut self.last {
                *ended = ended.or(Some(now));
            }
            return;
        };
        let next = Before { zone: Arc::clone(&known.zone), denial: known.denial.clone() };
        let last = self.last.replace((next, None));
        // Other keys alone take no record away.
        if let Some((before, ended)) = last.filter(|(before, _)| before.zone != known.zone) {
            self.copies.push_front((before, ended.unwrap_or(now).saturating_add(self.seconds)));
            self.copies.truncate(MOST);
        }
    }

    /// Those that are looked at now. A clock that was set back far makes none last longer.
    pub(crate) fn copies(&mut self, now: u64) -> Vec<Before> {
        let left = 1..=self.seconds.saturating_mul(2);
        self.copies.retain(|(_, until)| left.contains(&until.saturating_sub(now)));
        self.copies.iter().map(|(before, _)| before.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{digests::candidates::Candidates, keys::Keys};

    const NOW: u64 = 1_795_000_000;

    /// A copy whose serial is this one.
    fn known(serial: u32) -> Known {
        let text = format!("@ 60 IN SOA ns root {serial} 2 3 4 5\n");
        let zone = Arc::new(Zone::parse(text.as_bytes(), "example.").unwrap());
        Known { zone, denial: Denial::Names, keys: Keys::default(), offline: None, candidates: Candidates::default() }
    }

    const NONE: [Option<u32>; 0] = [];

    fn serials(previous: &mut Previous, now: u64) -> Vec<Option<u32>> {
        previous.copies(now).iter().map(|before| before.zone.serial()).collect()
    }

    #[test]
    fn copies_are_kept_for_a_while_after_they_were_replaced() {
        let mut previous = Previous::new(120);
        previous.change(Some(&known(1)), NOW);
        assert_eq!(serials(&mut previous, NOW), NONE);
        previous.change(Some(&known(1)), NOW + 1);
        assert_eq!(serials(&mut previous, NOW + 1), NONE, "other keys, or a file that was written as it was");
        previous.change(Some(&known(2)), NOW + 1_000);
        previous.change(Some(&known(3)), NOW + 1_060);
        assert_eq!(serials(&mut previous, NOW + 1_119), [Some(2), Some(1)]);
        assert_eq!(serials(&mut previous, NOW + 1_120), [Some(2)]);
        assert_eq!(serials(&mut previous, NOW + 1_180), NONE);
        assert_eq!(serials(&mut previous, NOW + 1_100), NONE, "what is forgotten stays so");
        (4..10).for_each(|serial| previous.change(Some(&known(serial)), NOW + 2_000));
        assert_eq!(serials(&mut previous, NOW + 2_000), [Some(8), Some(7), Some(6)]);
        assert_eq!(serials(&mut previous, NOW), NONE, "the clock was set back");
    }

    #[test]
    fn a_copy_without_a_successor_is_out_of_force_at_once() {
        let mut previous = Previous::new(120);
        previous.change(Some(&known(1)), NOW);
        previous.change(None, NOW + 10);
        assert_eq!(serials(&mut previous, NOW + 10), NONE);
        previous.change(None, NOW + 60);
        previous.change(Some(&known(2)), NOW + 70);
        assert_eq!(serials(&mut previous, NOW + 129), [Some(1)]);
        assert_eq!(serials(&mut previous, NOW + 130), NONE);
        previous.change(None, NOW + 1_000);
        previous.change(Some(&known(3)), NOW + 5_000);
        assert_eq!(serials(&mut previous, NOW + 5_000), NONE, "it had expired long before");
    }

    #[test]
    fn nothing_is_kept_for_no_time() {
        let mut previous = Previous::new(0);
        (1..4).for_each(|serial| previous.change(Some(&known(serial)), NOW));
        assert!(previous.copies(NOW).is_empty() && previous.last.is_none());
    }
}
