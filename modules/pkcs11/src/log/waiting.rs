//! Lines that are being written.

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Those of one log. Numbers count up, so that the first is the oldest.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    lines: Mutex<Lines>,
    /// Told when one is written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    since: BTreeMap<u64, Instant>,
    last: u64,
    /// How many were lost since the last one that was written.
    lost: u64,
}

/// A line that is being written; it is when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    of: Arc<Waiting>,
}

impl Place {
    pub(super) const fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.lines().since.remove(&self.number);
        self.of.written.notify_all();
    }
}

impl Waiting {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more line, and how many were lost before it; `None` if it is lost, too, since one has been waiting for so long.
    pub(super) fn begin(this: &Arc<Self>, patience: Duration) -> Option<(Place, u64)> {
        let mut lines = this.lines();
        let now = Instant::now();
        if lines.since.first_key_value().is_some_and(|(_, since)| now.saturating_duration_since(*since) >= patience) {
            lines.lost = lines.lost.saturating_add(1);
            return None;
        }
        lines.last = lines.last.wrapping_add(1);
        let number = lines.last;
        lines.since.insert(number, now);
        let lost = std::mem::take(&mut lines.lost);
        drop(lines);
        Some((Place { number, of: Arc::clone(this) }, lost))
    }

    /// Waits until the line of this number is written, so long at most.
    pub(super) fn wait(&self, number: u64, patience: Duration) {
        let is_waiting = |lines: &mut Lines| lines.since.contains_key(&number);
        let waited = self.written.wait_timeout_while(self.lines(), patience, is_waiting);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
