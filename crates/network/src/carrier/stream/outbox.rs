//! Messages that wait to be sent to one peer. Any thread may add to it.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::mesh::latency::Latency;

/// A bounded queue: what is in it counts until the peer has it.
#[derive(Debug)]
pub struct Outbox {
    state: Mutex<State>,
    wake: Notify,
    max_messages: usize,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Bytes>,
    /// The messages that were taken and are not done.
    taken: VecDeque<Bytes>,
    /// Who empties it now.
    turn: u64,
    bytes: usize,
    /// How many messages are done.
    done: u64,
    latency: Latency,
}

/// The queue has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full")]
pub struct Full;

impl Outbox {
    /// An empty one, with room for so many messages and bytes.
    #[must_use]
    pub fn new(max_messages: usize, max_bytes: usize) -> Self {
        Self { state: Mutex::default(), wake: Notify::const_new(), max_messages, max_bytes }
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`Full`].
    pub fn push(&self, message: Bytes, now: Instant) -> Result<(), Full> {
        let mut state = self.lock();
        let bytes = state.bytes.saturating_add(message.len());
        let (count, empty) = (state.len(), state.len() == 0);
        if count >= self.max_messages || (bytes > self.max_bytes && !empty) {
            return Err(Full);
        }
        let asleep = state.waiting.is_empty();
        let sequence = state.done.saturating_add(u64::try_from(count).unwrap_or(u64::MAX)).saturating_add(1);
        state.latency.queued(sequence, now);
        state.bytes = bytes;
        state.waiting.push_back(message);
        drop(state);
        if asleep {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Waits until something is pushed. May return early.
    pub(in crate::carrier) async fn pushed(&self) {
        self.wake.notified().await;
    }

    /// Whether nothing waits to be sent for the first time.
    pub(in crate::carrier) fn is_drained(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Another one empties it from now on: what is not done begins anew with it.
    pub(super) fn reopen(&self) -> u64 {
        let mut state = self.lock();
        let mut waiting = core::mem::take(&mut state.taken);
        waiting.append(&mut state.waiting);
        (state.waiting, state.turn) = (waiting, state.turn.wrapping_add(1));
        state.latency.restart();
        state.turn
    }

    pub(super) fn take(&self, turn: u64) -> Option<Bytes> {
        let mut state = self.lock();
        let message = if state.turn == turn { state.waiting.pop_front()? } else { return None };
        state.taken.push_back(message.clone());
        Some(message)
    }

    /// The peer has the oldest message that was taken.
    pub(super) fn done(&self, turn: u64) {
        let mut state = self.lock();
        if turn != state.turn {
            return;
        }
        if let Some(message) = state.taken.pop_front() {
            state.bytes = state.bytes.saturating_sub(message.len());
            state.done = state.done.saturating_add(1);
            let done = state.done;
            state.latency.delivered(done, Instant::now());
        }
    }

    pub(super) fn restarted(&self) {
        self.lock().latency.restart();
    }

    /// Messages that the peer does not have yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether the peer has everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(in crate::carrier) fn latency(&self) -> Option<Duration> {
        self.lock().latency.at(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn len(&self) -> usize {
        self.waiting.len().saturating_add(self.taken.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_done_counts() {
        let (outbox, now) = (Outbox::new(3, 10), Instant::now());
        outbox.push(Bytes::from_static(b"longer than its bound"), now).unwrap();
        assert_eq!(outbox.push(Bytes::from_static(b"x"), now), Err(Full));
        let turn = outbox.reopen();
        assert!(outbox.take(turn).is_some() && outbox.is_drained());
        assert_eq!(outbox.push(Bytes::from_static(b"x"), now), Err(Full), "taken and not done");
        let next = outbox.reopen();
        outbox.done(turn);
        assert_eq!((outbox.take(turn), outbox.len()), (None, 1), "it is another one's turn");
        assert!(outbox.take(next).is_some());
        outbox.done(next);
        assert_eq!(outbox.len(), 0);
        (0..3).for_each(|_| outbox.push(Bytes::from_static(b"x"), now).unwrap());
        assert_eq!(outbox.push(Bytes::new(), now), Err(Full), "by number");
        assert!(outbox.latency().is_some());
    }
}
