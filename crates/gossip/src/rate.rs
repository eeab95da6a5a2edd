//! How much somebody may say: so many messages and bytes a second, and no more than a while's worth at once.

use core::time::Duration;
use std::time::Instant;

/// What a message costs of its author's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    message: Duration,
    kibibyte: Duration,
    burst: Duration,
}

impl Rate {
    /// An even share, for each of n, of so many messages and bytes a second; never less than ten messages and 64 KiB.
    pub(crate) fn shared(messages: u32, bytes: u32, n: usize, burst: Duration) -> Self {
        let n = u32::try_from(n.max(1)).unwrap_or(u32::MAX);
        let (messages, kibibytes) = ((messages / n).max(10), (bytes / 1_024 / n).max(64));
        let second = Duration::from_secs(1);
        Self { message: second / messages, kibibyte: second / kibibytes, burst }
    }

    /// What an author keeps to, so that no clock and no delay makes it say more than others let pass.
    pub(crate) fn cautious(self) -> Self {
        Self { message: self.message * 5 / 4, kibibyte: self.kibibyte * 5 / 4, burst: self.burst / 2 }
    }

    fn cost(&self, bytes: usize) -> Duration {
        let kibibytes = u32::try_from(bytes.div_ceil(1_024)).unwrap_or(u32::MAX);
        self.message.max(self.kibibyte.saturating_mul(kibibytes))
    }
}

/// How far somebody's messages have used up its time (the generic cell rate algorithm of ITU-T I.371).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    until: Instant,
}

impl Spent {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { until: now }
    }

    /// When one more message may come; not later than now if it may now.
    pub(crate) fn next(&self, rate: &Rate) -> Instant {
        self.until.checked_sub(rate.burst).unwrap_or(self.until)
    }

    pub(crate) fn may(&self, rate: &Rate, now: Instant) -> bool {
        self.until.saturating_duration_since(now) <= rate.burst
    }

    pub(crate) fn take(&mut self, rate: &Rate, bytes: usize, now: Instant) {
        self.until = self.until.max(now) + rate.cost(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rate: &Rate, bytes: usize, seconds: u64) -> u32 {
        let start = Instant::now();
        let (mut spent, mut count) = (Spent::new(start), 0);
        for millisecond in 0..seconds * 1_000 {
            let now = start + Duration::from_millis(millisecond);
            while spent.may(rate, now) {
                spent.take(rate, bytes, now);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn messages_and_bytes_are_bounded_by_the_share() {
        let rate = Rate::shared(1_000, 10 << 20, 10, Duration::from_secs(2));
        // A hundred messages a second, and two seconds' worth at once.
        assert!((1_195..=1_205).contains(&taken(&rate, 100, 10)), "{}", taken(&rate, 100, 10));
        // One MiB a second.
        assert!((185..=195).contains(&taken(&rate, 64 << 10, 10)), "{}", taken(&rate, 64 << 10, 10));
        let cautious = rate.cautious();
        assert!((875..=885).contains(&taken(&cautious, 100, 10)), "{}", taken(&cautious, 100, 10));
    }

    #[test]
    fn who_has_used_its_time_up_is_told_when_it_may_go_on() {
        let (rate, now) = (Rate::shared(100, 1 << 20, 1, Duration::from_secs(1)), Instant::now());
        let mut spent = Spent::new(now);
        assert!(spent.next(&rate) <= now);
        while spent.may(&rate, now) {
            spent.take(&rate, 10, now);
        }
        assert_eq!(spent.next(&rate) - now, Duration::from_millis(10));
        assert!(spent.may(&rate, now + Duration::from_millis(10)));
    }
}
