//! How often a client asks the nodes for the ledger because something does not fit.
//!
//! A liar could make a client ask all nodes for each of its requests. So asking in vain is limited: a few times at once, then once a
//! second. Whoever learned something new has not asked in vain.

use std::time::Duration;

use tokio::time::Instant;

/// How often in a row.
const AT_ONCE: u32 = 4;
/// Then once in this time.
const EVERY: Duration = Duration::from_secs(1);

/// The turns that are left.
#[derive(Debug)]
pub(super) struct Turns {
    left: u32,
    counted: Instant,
    /// When the last successful asking began.
    asked: Option<Instant>,
}

impl Turns {
    pub(super) const fn new(now: Instant) -> Self {
        Self { left: AT_ONCE, counted: now, asked: None }
    }

    /// Whether somebody asked after this time, so that asking again is needless.
    pub(super) fn asked_since(&self, time: Instant) -> bool {
        self.asked.is_some_and(|asked| asked >= time)
    }

    /// Takes a turn, or says when there is one again.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        while self.left < AT_ONCE && now.saturating_duration_since(self.counted) >= EVERY {
            self.left = self.left.saturating_add(1);
            self.counted += EVERY;
        }
        if self.left == AT_ONCE {
            self.counted = now;
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.counted + EVERY),
        }
    }

    /// Notes what came of a turn.
    pub(super) fn done(&mut self, began: Instant, learned: bool) {
        self.asked = Some(began);
        if learned {
            self.left = self.left.saturating_add(1).min(AT_ONCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_in_vain_is_limited_and_learning_is_not() {
        let now = Instant::now();
        let mut turns = Turns::new(now);
        for _ in 0..AT_ONCE {
            assert_eq!(turns.take(now), Ok(()));
            turns.done(now, false);
        }
        assert_eq!(turns.take(now), Err(now + EVERY));
        assert_eq!(turns.take(now + EVERY), Ok(()));
        assert_eq!(turns.take(now + EVERY), Err(now + EVERY * 2));
        turns.done(now + EVERY, true);
        assert_eq!(turns.take(now + EVERY), Ok(()));
        assert!(turns.asked_since(now + EVERY) && !turns.asked_since(now + EVERY * 2));
    }

    #[test]
    fn turns_do_not_pile_up() {
        let now = Instant::now();
        let mut turns = Turns::new(now);
        let later = now + EVERY * 100;
        let taken = (0..100).filter(|_| turns.take(later).is_ok()).count();
        assert_eq!(taken, usize::try_from(AT_ONCE).unwrap());
    }
}
