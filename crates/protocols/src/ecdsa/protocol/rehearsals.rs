//! How often programs of a key are done again to see who lied in them: each time is work for 2t + 1 holders.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many at most, in which nobody is named, without a program that ends well between.
const MOST: u8 = 8;

/// A bound for all requests of a key's epoch: liars that spoil every program have each of the first ones done again, which names them, and no more. Each program
/// that ends well allows for one more. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Rehearsals(Arc<Mutex<u8>>);

impl Rehearsals {
    fn done(&self) -> MutexGuard<'_, u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more may be done again, which counts.
    pub(super) fn begin(&self) -> bool {
        let mut done = self.done();
        let may = *done < MOST;
        *done += u8::from(may);
        may
    }

    /// A program has ended well.
    pub(super) fn note_a_good_end(&self) {
        let mut done = self.done();
        *done = done.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_done_again_as_often_as_they_end_well_and_a_few_times_more() {
        let rehearsals = Rehearsals::default();
        let another = rehearsals.clone();
        let begun = |of: &Rehearsals| (0..50).filter(|_| of.begin()).count();
        assert_eq!(begun(&another), usize::from(MOST));
        assert_eq!(begun(&rehearsals), 0, "clones count together");
        (0..3).for_each(|_| rehearsals.note_a_good_end());
        assert_eq!(begun(&rehearsals), 3);
        (0..50).for_each(|_| rehearsals.note_a_good_end());
        assert_eq!(begun(&rehearsals), usize::from(MOST));
    }
}
