//! Messages of peers that wait for a thread: a queue for each peer, emptied in turns.
//!
//! A single queue would fill with the messages of one peer, and a sender that waits for room in it would delay all.
//! Here each peer has its own room with its own bounds, and the thread takes one message of each in turn: a peer that
//! sends a hundred times as much as the others loses what exceeds its room, and delays the others by one message each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use theta_names::NodeId;
use tokio::sync::mpsc;

/// The estimated size of a message beside its payload, in bytes: its place in the queue, and its wrapping.
const OVERHEAD: usize = 256;

/// How much of one peer may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MailLimits {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// Messages that wait for one thread.
#[derive(Debug)]
pub(crate) struct Mail<T> {
    limits: MailLimits,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    peers: BTreeMap<NodeId, Queue<T>>,
    /// The peer whose turn was last.
    last: Option<NodeId>,
    /// Whether the thread has been notified that something waits.
    told: bool,
}

#[derive(Debug)]
struct Queue<T> {
    messages: VecDeque<(usize, T)>,
    bytes: usize,
}

/// The result of adding a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It waits, and the thread knows that something does.
    Waits,
    /// It waits, and the thread has to be told.
    Tell,
    /// Its sender has no more room.
    Refused,
}

impl<T> Mail<T> {
    pub(crate) const fn new(limits: MailLimits) -> Self {
        let state = State { peers: BTreeMap::new(), last: None, told: false };
        Self { limits, state: Mutex::new(state) }
    }

    /// The state. Nothing that holds the lock panics, so a panic elsewhere leaves it intact.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message of so many bytes to its sender's queue, if there is room.
    pub(crate) fn put(&self, from: NodeId, bytes: usize, message: T) -> Put {
        let cost = bytes.saturating_add(OVERHEAD);
        let mut state = self.state();
        let queue = state.peers.entry(from).or_insert(Queue { messages: VecDeque::new(), bytes: 0 });
        let sum = queue.bytes.saturating_add(cost);
        // One message always fits, so that a bound below the longest message excludes no peer.
        if !queue.messages.is_empty() && (sum > self.limits.bytes || queue.messages.len() >= self.limits.messages) {
            return Put::Refused;
        }
        queue.bytes = sum;
        queue.messages.push_back((cost, message));
        if core::mem::replace(&mut state.told, true) { Put::Waits } else { Put::Tell }
    }

    /// Takes at most `most` messages, one of each peer in turn; returns whether there are more.
    pub(crate) fn take(&self, most: usize, out: &mut Vec<T>) -> bool {
        let mut state = self.state();
        for _ in 0..most {
            let after =
                state.last.and_then(|last| last.get().checked_add(1)).and_then(|next| NodeId::try_from(next).ok());
            let next =
                after.and_then(|after| state.peers.range(after..).next()).or_else(|| state.peers.first_key_value());
            let Some(peer) = next.map(|(peer, _)| *peer) else { break };
            state.last = Some(peer);
            let Some(queue) = state.peers.get_mut(&peer) else { break };
            if let Some((cost, message)) = queue.messages.pop_front() {
                queue.bytes = queue.bytes.saturating_sub(cost);
                out.push(message);
            }
            if queue.messages.is_empty() {
                state.peers.remove(&peer);
            }
        }
        state.told = !state.peers.is_empty();
        state.told
    }

    /// Fills a batch with at most `most` orders of the thread's inbox, and as many messages of peers. Sleeps while
    /// there is nothing. Returns `false` when the inbox is closed and both are empty.
    pub(crate) fn next(&self, inbox: &mut mpsc::Receiver<T>, most: usize, batch: &mut Vec<T>) -> bool {
        if self.is_empty() {
            if inbox.blocking_recv_many(batch, most) == 0 {
                return false;
            }
        } else {
            batch.extend(core::iter::from_fn(|| inbox.try_recv().ok()).take(most));
        }
        self.take(most, batch);
        true
    }

    fn is_empty(&self) -> bool {
        self.state().peers.is_empty()
    }

    /// How many messages wait.
    pub(crate) fn len(&self) -> usize {
        self.state().peers.values().map(|queue| queue.messages.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    fn taken(mail: &Mail<u32>, most: usize) -> (Vec<u32>, bool) {
        let mut out = Vec::new();
        let more = mail.take(most, &mut out);
        (out, more)
    }

    #[test]
    fn one_that_floods_waits_for_itself() {
        let mail = Mail::new(MailLimits { messages: 100, bytes: 1 << 20 });
        let mut refused = 0;
        for number in 0..100_000 {
            refused += u32::from(mail.put(party(3), 10, number) == Put::Refused);
        }
        assert_eq!((refused, mail.len()), (99_900, 100));
        for peer in [1, 2, 4, u16::MAX] {
            assert_ne!(mail.put(party(peer), 10, u32::from(peer) << 16), Put::Refused);
        }
        // The others are served in the first round, however much waits of the third.
        let (first, more) = taken(&mail, 5);
        let mut first: Vec<u32> = first.into_iter().map(|message| message >> 16).collect();
        first.sort_unstable();
        assert_eq!((first, more), (vec![0, 1, 2, 4, u32::from(u16::MAX)], true));
        let (rest, more) = taken(&mail, 1_000);
        assert_eq!((rest, more), ((1..100).collect(), false));
    }

    #[test]
    fn bytes_are_bounded_and_given_back() {
        let mail = Mail::new(MailLimits { messages: 1_000, bytes: 10_000 });
        assert_eq!(mail.put(party(1), 1 << 20, 0), Put::Tell);
        assert_eq!(mail.put(party(1), 1, 1), Put::Refused);
        assert_eq!(mail.put(party(2), 4_000, 2), Put::Waits);
        assert_eq!(mail.put(party(2), 4_000, 3), Put::Waits);
        assert_eq!(mail.put(party(2), 4_000, 4), Put::Refused);
        assert_eq!(taken(&mail, 10), (vec![0, 2, 3], false));
        assert_eq!(mail.put(party(1), 1, 5), Put::Tell);
        assert_eq!(mail.put(party(1), 1, 6), Put::Waits);
        assert_eq!(taken(&mail, 1), (vec![5], true));
        assert_eq!(mail.put(party(1), 1, 7), Put::Waits);
        assert_eq!(taken(&mail, 10), (vec![6, 7], false));
    }
}
