//! Messages on their way to one peer, kept until the peer has acknowledged them.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::{frame, latency::Latency};

/// The approximate size of one write, in bytes.
const BATCH_BYTES: usize = 256 * 1024;

/// Up to this size, copying a message into the buffer is cheaper than a write of its own. In bytes.
const COPY_BYTES: usize = 32 * 1024;

/// A bounded queue. Any thread may push to it; one connection at a time empties it.
#[derive(Debug)]
pub(super) struct SendQueue {
    state: Mutex<State>,
    wake: Notify,
    max_messages: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct State {
    /// Not yet acknowledged, oldest first.
    messages: VecDeque<Bytes>,
    bytes: usize,
    /// Sequence number of the first of `messages`, or of the next one if there is none.
    oldest: u64,
    /// How many of `messages` the present connection has taken.
    taken: usize,
    /// Sequence number below which everything was taken by some connection.
    untaken: u64,
    latency: Latency,
}

/// What the connection writes after the buffer that it had filled.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// A message too large to be copied; its header ends the buffer.
    pub(super) large: Option<Bytes>,
    /// Messages that were never sent before.
    pub(super) fresh: usize,
    /// The bytes of these.
    pub(super) fresh_bytes: usize,
    /// Messages that an earlier connection had taken.
    pub(super) resent: usize,
}

/// The queue has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// The peer acknowledges a message that was never sent, or takes an acknowledgement back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it acknowledges message {delivered}, but {oldest} to {newest} are under way")]
pub(super) struct BadAcknowledgement {
    delivered: u64,
    oldest: u64,
    newest: u64,
}

impl SendQueue {
    pub(super) fn new(max_messages: usize, max_bytes: usize) -> Self {
        let (messages, latency) = (VecDeque::new(), Latency::default());
        let state = State { messages, bytes: 0, oldest: 1, taken: 0, untaken: 1, latency };
        Self { state: Mutex::new(state), wake: Notify::const_new(), max_messages, max_bytes }
    }

    /// Appends a message and wakes the connection if it sleeps.
    pub(super) fn push(&self, message: Bytes) -> Result<(), Full> {
        let mut state = self.lock();
        let bytes = state.bytes.saturating_add(message.len());
        let has_room = bytes <= self.max_bytes || state.messages.is_empty();
        if !has_room || state.messages.len() >= self.max_messages {
            return Err(Full);
        }
        // The connection sleeps only when it has taken everything.
        let asleep = state.taken == state.messages.len();
        let sequence = state.sequence(state.messages.len());
        state.latency.queued(sequence, Instant::now());
        state.bytes = bytes;
        state.messages.push_back(message);
        drop(state);
        if asleep {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Waits until something is pushed. May return early.
    pub(super) async fn pushed(&self) {
        self.wake.notified().await;
    }

    /// Messages not yet acknowledged.
    pub(super) fn len(&self) -> usize {
        self.lock().messages.len()
    }

    /// How long messages take until they are acknowledged, as far as it was measured.
    pub(super) fn latency(&self) -> Option<Duration> {
        self.lock().latency.at(Instant::now())
    }

    /// The lowest sequence number that may still be sent.
    pub(super) fn oldest(&self) -> u64 {
        self.lock().oldest
    }

    /// A new connection begins: the peer has everything up to `delivered`, and the rest is sent again.
    pub(super) fn resume(&self, delivered: u64) -> Result<(), BadAcknowledgement> {
        let mut state = self.lock();
        // Until now any earlier connection may have delivered a message.
        state.taken = state.before_untaken();
        if delivered.saturating_add(1) < state.oldest {
            return Err(state.refuse(delivered));
        }
        state.latency.restart();
        state.acknowledge(delivered)?;
        state.taken = 0;
        Ok(())
    }

    /// The peer has everything up to `delivered`, which is dropped.
    pub(super) fn acknowledge(&self, delivered: u64) -> Result<(), BadAcknowledgement> {
        self.lock().acknowledge(delivered)
    }

    /// Takes the waiting messages, as data frames, into `buffer`; `None` if there are none.
    pub(super) fn fill(&self, buffer: &mut BytesMut) -> Option<Batch> {
        let mut state = self.lock();
        let mut batch = Batch::default();
        while buffer.len() < BATCH_BYTES && batch.large.is_none() {
            let Some(message) = state.messages.get(state.taken) else { break };
            let sequence = state.sequence(state.taken);
            frame::put_data_header(buffer, sequence, message.len());
            if message.len() <= COPY_BYTES {
                buffer.extend_from_slice(message);
            } else {
                batch.large = Some(message.clone());
            }
            if sequence < state.untaken {
                batch.resent = batch.resent.saturating_add(1);
            } else {
                batch.fresh = batch.fresh.saturating_add(1);
                batch.fresh_bytes = batch.fresh_bytes.saturating_add(message.len());
                state.untaken = sequence.saturating_add(1);
            }
            state.taken = state.taken.saturating_add(1);
        }
        (!buffer.is_empty()).then_some(batch)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn acknowledge(&mut self, delivered: u64) -> Result<(), BadAcknowledgement> {
        // An acknowledgement without news is the peer's sign of life.
        let count = delivered.saturating_add(1).saturating_sub(self.oldest);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > self.taken {
            return Err(self.refuse(delivered));
        }
        for message in self.messages.drain(..count) {
            self.bytes = self.bytes.saturating_sub(message.len());
        }
        self.latency.delivered(delivered, Instant::now());
        self.oldest = self.sequence(count);
        self.taken = self.taken.saturating_sub(count);
        Ok(())
    }

    /// How many of the queued messages were taken by some connection.
    fn before_untaken(&self) -> usize {
        usize::try_from(self.untaken.saturating_sub(self.oldest)).unwrap_or(usize::MAX).min(self.messages.len())
    }

    fn sequence(&self, position: usize) -> u64 {
        self.oldest.saturating_add(u64::try_from(position).unwrap_or(u64::MAX))
    }

    fn refuse(&self, delivered: u64) -> BadAcknowledgement {
        BadAcknowledgement { delivered, oldest: self.oldest, newest: self.sequence(self.taken).saturating_sub(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::frame::Frame;

    fn message(number: u8) -> Bytes {
        Bytes::from(vec![number])
    }

    fn drain(queue: &SendQueue) -> Vec<u64> {
        let mut buffer = BytesMut::new();
        queue.fill(&mut buffer);
        let mut sequences = Vec::new();
        while let Some(Frame::Data { sequence, .. }) = frame::take(&mut buffer, 100).unwrap() {
            sequences.push(sequence);
        }
        sequences
    }

    #[test]
    fn unacknowledged_messages_are_sent_again_and_only_those() {
        let queue = SendQueue::new(10, 100);
        (1..=4).for_each(|number| queue.push(message(number)).unwrap());
        queue.resume(0).unwrap();
        assert_eq!(drain(&queue), [1, 2, 3, 4]);
        queue.acknowledge(1).unwrap();
        queue.push(message(5)).unwrap();
        queue.resume(2).unwrap();
        let mut buffer = BytesMut::new();
        let batch = queue.fill(&mut buffer).unwrap();
        assert_eq!(batch, Batch { large: None, fresh: 1, fresh_bytes: 1, resent: 2 });
        assert_eq!(drain(&queue), []);
        queue.acknowledge(5).unwrap();
        assert_eq!((queue.len(), queue.oldest()), (0, 6));
    }

    #[test]
    fn bounds_hold_and_room_comes_back() {
        let queue = SendQueue::new(3, 4);
        queue.push(Bytes::from_static(b"longer than the bound")).unwrap();
        assert_eq!(queue.push(message(2)), Err(Full));
        drain(&queue);
        queue.acknowledge(1).unwrap();
        (1..=3).for_each(|number| queue.push(message(number)).unwrap());
        assert_eq!(queue.push(message(4)), Err(Full), "by count");
    }

    #[test]
    fn false_acknowledgements_are_refused() {
        let queue = SendQueue::new(10, 100);
        (1..=3).for_each(|number| queue.push(message(number)).unwrap());
        assert!(queue.acknowledge(1).is_err(), "nothing was sent yet");
        assert!(queue.resume(1).is_err(), "nothing was sent yet");
        queue.resume(0).unwrap();
        assert_eq!(drain(&queue), [1, 2, 3]);
        assert!(queue.acknowledge(4).is_err());
        assert!(queue.acknowledge(u64::MAX).is_err());
        queue.acknowledge(2).unwrap();
        queue.acknowledge(1).unwrap();
        assert!(queue.resume(0).is_err(), "2 was acknowledged before");
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn large_messages_are_not_copied() {
        let queue = SendQueue::new(10, usize::MAX);
        let large = Bytes::from(vec![0; COPY_BYTES + 1]);
        queue.push(message(1)).unwrap();
        queue.push(large.clone()).unwrap();
        queue.push(message(2)).unwrap();
        let mut buffer = BytesMut::new();
        let batch = queue.fill(&mut buffer).unwrap();
        assert_eq!(batch.large.unwrap().as_ptr(), large.as_ptr());
        assert_eq!(buffer.len(), 2 * frame::DATA_HEADER_BYTES + 1);
        assert_eq!(drain(&queue), [3]);
    }
}
