//! What happens often and is told of once in a while.

use core::time::Duration;
use std::time::Instant;

/// Says of something that may come again and again when it is to be told, with how much was left out before: at once, and then once in a time.
/// So nobody fills a disk with lines that he can cause.
#[derive(Clone, Debug)]
pub struct Seldom {
    period: Duration,
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    /// Once in this time.
    #[must_use]
    pub const fn every(period: Duration) -> Self {
        Self { period, last: None, left_out: 0 }
    }

    /// It happens now. Returns how often it was left out since it was told, if it is to be told; `None` if it is left out, too.
    pub fn is_time(&mut self, now: Instant) -> Option<u64> {
        if !self.is_due(now) {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        self.last = Some(now);
        Some(core::mem::take(&mut self.left_out))
    }

    /// How often it was left out since it was told.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether it would be told now.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.saturating_duration_since(last) >= self.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_often_is_told_once_in_its_time_and_counted() {
        let (mut seldom, start) = (Seldom::every(Duration::from_secs(1)), Instant::now());
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        assert!(seldom.is_due(start));
        assert_eq!(seldom.is_time(start), Some(0), "the first is told at once");
        assert!((0..500).all(|_| seldom.is_time(after(999)).is_none()));
        assert!(!seldom.is_due(after(999)) && seldom.is_due(after(1_000)));
        assert_eq!(seldom.is_time(after(1_000)), Some(500));
        assert_eq!(seldom.is_time(after(1_500)), None, "the time begins anew when it is told");
        assert_eq!(seldom.is_time(after(2_000)), Some(1));
        assert_eq!(seldom.is_time(start), None, "and never runs back");
    }
}
