//! How much is under way to a peer, and when it is taken for lost: round trips as in RFC 9002, section 5, and a window that halves where
//! frames are lost, as in section 7. Carriers reorder more than routers do, so that order alone is no sign of loss here; time is.

use core::time::Duration;
use std::time::Instant;

/// Before anything was measured.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(100);
/// How long a peer may wait before it acknowledges.
pub(in crate::carrier) const ACK_DELAY: Duration = Duration::from_millis(5);
const SHORTEST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The window in frames, at least and at first.
const LEAST_FRAMES: usize = 4;
const FIRST_FRAMES: usize = 16;
/// The most bytes under way to one peer.
const MOST_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub(in crate::carrier) struct Recovery {
    frame_bytes: usize,
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Duration,
    window: usize,
    threshold: usize,
    /// The window was made smaller then; what was sent before does not make it smaller again.
    reduced: Option<Instant>,
    /// How often in a row nothing was acknowledged in time.
    waits: u32,
}

impl Recovery {
    pub(in crate::carrier) const fn new(frame_bytes: usize) -> Self {
        Self {
            frame_bytes,
            smoothed: None,
            variation: Duration::ZERO,
            latest: Duration::ZERO,
            window: FIRST_FRAMES.saturating_mul(frame_bytes),
            threshold: usize::MAX,
            reduced: None,
            waits: 0,
        }
    }

    /// The most bytes that may be under way now.
    pub(in crate::carrier) const fn window(&self) -> usize {
        self.window
    }

    /// A frame took so long until its acknowledgement came, of which the peer waited some.
    pub(in crate::carrier) fn measured(&mut self, took: Duration, waited: Duration) {
        let took = took.checked_sub(waited.min(ACK_DELAY)).unwrap_or(took);
        self.latest = took;
        match self.smoothed {
            None => (self.smoothed, self.variation) = (Some(took), took / 2),
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(took)) / 4;
                self.smoothed = Some((smoothed * 7 + took) / 8);
            }
        }
    }

    /// So many bytes came.
    pub(in crate::carrier) fn acknowledged(&mut self, bytes: usize) {
        self.waits = 0;
        let grown = if self.window < self.threshold {
            bytes
        } else {
            bytes.saturating_mul(self.frame_bytes).checked_div(self.window).unwrap_or(0)
        };
        self.window = self.window.saturating_add(grown).min(MOST_BYTES);
    }

    /// Frames are lost, the latest of which was sent then.
    pub(in crate::carrier) fn lost(&mut self, sent: Instant, now: Instant) {
        if self.reduced.is_some_and(|reduced| sent <= reduced) {
            return;
        }
        self.reduced = Some(now);
        self.window = (self.window / 2).max(self.frame_bytes.saturating_mul(LEAST_FRAMES));
        self.threshold = self.window;
    }

    /// Nothing was acknowledged in time.
    pub(in crate::carrier) const fn waited(&mut self) {
        self.waits = self.waits.saturating_add(1);
    }

    /// A frame is lost if a later one has come and it has been under way for so long.
    pub(in crate::carrier) fn patience(&self) -> Duration {
        let base = self.smoothed.unwrap_or(FIRST_ROUND_TRIP).max(self.latest);
        base + base / 4 + self.variation * 2 + ACK_DELAY
    }

    /// Frames are lost if nothing at all was acknowledged for so long.
    pub(in crate::carrier) fn long_patience(&self) -> Duration {
        let base = match self.smoothed {
            Some(smoothed) => smoothed + self.variation.saturating_mul(4).max(Duration::from_millis(1)),
            None => FIRST_ROUND_TRIP * 3,
        };
        let doubled = (base + ACK_DELAY * 2).max(SHORTEST_WAIT).saturating_mul(1 << self.waits.min(10));
        doubled.min(LONGEST_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_halves_once_a_round_and_stays_within_bounds() {
        let (mut recovery, begin) = (Recovery::new(1_000), Instant::now());
        assert_eq!(recovery.window(), 16_000);
        recovery.acknowledged(16_000);
        assert_eq!(recovery.window(), 32_000);
        let later = begin + Duration::from_millis(50);
        recovery.lost(begin, later);
        recovery.lost(begin + Duration::from_millis(10), later + Duration::from_millis(1));
        assert_eq!(recovery.window(), 16_000, "both were sent before it was made smaller");
        recovery.acknowledged(16_000);
        assert_eq!(recovery.window(), 17_000, "a frame for each round");
        for round in 1..20 {
            recovery.lost(later + Duration::from_secs(round), later + Duration::from_secs(round));
        }
        assert_eq!(recovery.window(), 4_000);
        let mut fast = Recovery::new(1_000);
        (0..20).for_each(|_| fast.acknowledged(1 << 20));
        assert_eq!(fast.window(), MOST_BYTES);
    }

    #[test]
    fn patience_follows_what_is_measured_and_doubles_in_silence() {
        let mut recovery = Recovery::new(1_000);
        assert_eq!(recovery.long_patience(), Duration::from_millis(310));
        (0..50).for_each(|_| recovery.measured(Duration::from_millis(105), Duration::from_millis(5)));
        let calm = recovery.long_patience();
        assert!((110..=115).contains(&calm.as_millis()), "{calm:?}");
        assert_eq!(recovery.patience().as_millis(), 130);
        recovery.waited();
        assert_eq!(recovery.long_patience(), calm * 2);
        (0..100).for_each(|_| recovery.waited());
        assert_eq!(recovery.long_patience(), LONGEST_WAIT);
        recovery.acknowledged(1);
        assert_eq!(recovery.long_patience(), calm);
    }
}
