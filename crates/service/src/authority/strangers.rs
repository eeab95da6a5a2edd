//! How many refused strangers go into the log: the disk is not for them to fill.

use std::sync::{Mutex, PoisonError};

use theta_policy::UnixTime;

/// So many in a second are recorded one by one.
const MOST_A_SECOND: u32 = 20;

/// Counts them.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    second: u64,
    recorded: u32,
    unrecorded: u64,
}

impl Strangers {
    /// Whether this one is recorded; and if so, how many were not since the last one that was.
    pub(crate) fn may_be_recorded(&self, now: UnixTime) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let second = now.0 / 1_000;
        if window.second != second {
            (window.second, window.recorded) = (second, 0);
        }
        if window.recorded == MOST_A_SECOND {
            window.unrecorded = window.unrecorded.saturating_add(1);
            return None;
        }
        window.recorded = window.recorded.saturating_add(1);
        Some(std::mem::take(&mut window.unrecorded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted() {
        let strangers = Strangers::default();
        let recorded = (0..1_000).filter_map(|_| strangers.may_be_recorded(UnixTime(5_000))).count();
        assert_eq!(recorded, 20);
        assert_eq!(strangers.may_be_recorded(UnixTime(6_000)), Some(980));
        assert_eq!(strangers.may_be_recorded(UnixTime(6_001)), Some(0));
    }
}
