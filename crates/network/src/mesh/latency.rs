//! How long messages to a peer take until they are acknowledged.

use std::time::{Duration, Instant};

/// One message at a time is timed, from the moment when it is queued: what makes it wait here counts as much as what makes it wait on its way
/// or there.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    /// The message that is timed, and since when.
    timed: Option<(u64, Instant)>,
    /// The mean of what was measured, each weighing twice as much as the one before.
    mean: Option<Duration>,
}

impl Latency {
    /// A message is queued.
    pub(crate) fn queued(&mut self, sequence: u64, now: Instant) {
        self.timed.get_or_insert((sequence, now));
    }

    /// The peer has everything up to `delivered`.
    pub(crate) fn delivered(&mut self, delivered: u64, now: Instant) {
        let Some((_, since)) = self.timed.take_if(|(sequence, _)| *sequence <= delivered) else { return };
        let took = now.saturating_duration_since(since);
        self.mean = Some(self.mean.map_or(took, |mean| (mean + took) / 2));
    }

    /// A new connection begins: what waited for it says nothing about it.
    pub(crate) const fn restart(&mut self) {
        self.timed = None;
    }

    /// The present estimate: at least as long as the message that is timed has been under way.
    pub(crate) fn at(&self, now: Instant) -> Option<Duration> {
        let so_far = self.timed.map(|(_, since)| now.saturating_duration_since(since));
        self.mean.map(|mean| so_far.map_or(mean, |so_far| mean.max(so_far))).or(so_far)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_at_a_time_is_timed_and_the_latest_weigh_most() {
        let (mut latency, begin) = (Latency::default(), Instant::now());
        let at = |millis| begin + Duration::from_millis(millis);
        assert_eq!(latency.at(begin), None);
        latency.queued(7, at(0));
        latency.queued(8, at(5));
        latency.delivered(6, at(9));
        assert_eq!(latency.at(at(10)), Some(Duration::from_millis(10)), "7 is under way");
        latency.delivered(8, at(20));
        assert_eq!(latency.at(at(1_000)), Some(Duration::from_millis(20)));
        latency.queued(9, at(1_000));
        latency.delivered(9, at(1_060));
        assert_eq!(latency.at(at(1_060)), Some(Duration::from_millis(40)));
        latency.queued(10, at(2_000));
        assert_eq!(latency.at(at(2_010)), Some(Duration::from_millis(40)));
        assert_eq!(latency.at(at(3_000)), Some(Duration::from_secs(1)), "a peer that says nothing is slow");
        latency.restart();
        assert_eq!(latency.at(at(9_000)), Some(Duration::from_millis(40)));
    }
}
