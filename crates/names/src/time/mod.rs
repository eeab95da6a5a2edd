//! The wall clock, which the product reads here alone, the times of files, and what is told once in a while.

mod seldom;
mod stamp;

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

pub use seldom::Seldom;
pub use stamp::FileStamp;

/// A point in time on a machine's wall clock: what has passed since the beginning of 1970 in UTC, without leap seconds. A clock that
/// stands before that counts as 1970, when nothing with a beginning is valid yet.
///
/// Whatever decides by the time takes it as an argument, so that tests and the simulator say what time it is. Only where a decision
/// begins is the clock read ([`WallTime::now`]). How long something takes is a matter of the monotonic clock, which never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(Duration);

impl WallTime {
    /// The time on this machine's clock.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// This long after the beginning of 1970.
    #[must_use]
    pub const fn since_1970(since: Duration) -> Self {
        Self(since)
    }

    /// How long after the beginning of 1970 it is.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// This much earlier; the beginning of 1970 if that is before it.
    #[must_use]
    pub const fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }

    /// How much later it is than `earlier`; `None` if it is not, as when the clock was set back in between.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0)
    }

    /// Whole seconds since 1970.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0.as_secs()
    }

    /// Whole milliseconds since 1970; the most that there are when they do not fit.
    #[must_use]
    pub fn milliseconds(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// Whole microseconds since 1970; the most that there are when they do not fit.
    #[must_use]
    pub fn microseconds(self) -> u64 {
        u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX)
    }
}

/// For libraries that take the system's type. What does not fit there is its beginning.
impl From<WallTime> for SystemTime {
    fn from(time: WallTime) -> Self {
        UNIX_EPOCH.checked_add(time.0).unwrap_or(UNIX_EPOCH)
    }
}

impl From<SystemTime> for WallTime {
    fn from(time: SystemTime) -> Self {
        Self(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_whole_units() {
        let time = WallTime::from(UNIX_EPOCH + Duration::from_nanos(1_234_567_891_999));
        assert_eq!((time.seconds(), time.milliseconds(), time.microseconds()), (1_234, 1_234_567, 1_234_567_891));
        assert_eq!(time.duration().as_nanos(), 1_234_567_891_999);
    }

    #[test]
    fn a_time_is_earlier_or_later() {
        let second = |seconds| WallTime::since_1970(Duration::from_secs(seconds));
        assert_eq!(second(7).minus(Duration::from_secs(2)), second(5));
        assert_eq!(second(7).minus(Duration::from_secs(8)), WallTime::default());
        assert_eq!(second(7).since(second(5)), Some(Duration::from_secs(2)));
        assert_eq!(second(5).since(second(7)), None);
    }

    #[test]
    fn what_does_not_fit_is_the_most_or_1970() {
        let last = WallTime::since_1970(Duration::MAX);
        assert_eq!((last.seconds(), last.milliseconds(), last.microseconds()), (u64::MAX, u64::MAX, u64::MAX));
        assert_eq!(WallTime::from(UNIX_EPOCH - Duration::from_secs(1)), WallTime::default());
        assert_eq!(SystemTime::from(last), UNIX_EPOCH);
        let time = UNIX_EPOCH + Duration::from_secs(9);
        assert_eq!(SystemTime::from(WallTime::from(time)), time);
    }

    #[test]
    fn the_clock_is_that_of_the_system() {
        let before = WallTime::from(SystemTime::now());
        let now = WallTime::now();
        assert!(before <= now && now <= WallTime::from(SystemTime::now()), "unless somebody sets it back meanwhile");
    }
}
