//! What a node wants ordered, until it is.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::Notify;

use super::MOST_MESSAGE;
use crate::SendError;

/// The most messages that wait, and the most bytes.
const MOST_WAITING: usize = 1_024;
const MOST_BYTES: usize = 4 << 20;

/// The messages that are not in the order yet, oldest first, each with a number that rises.
#[derive(Debug, Default)]
pub struct Outgoing {
    queue: Mutex<Queue>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<(u64, Bytes)>,
    bytes: usize,
    next: u64,
}

impl Outgoing {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a message to the host. One that waits already is not added again.
    ///
    /// # Errors
    /// [`SendError::TooLarge`]. A full queue loses its oldest message: its author asks again if it still matters.
    pub fn add(&self, message: Bytes) -> Result<(), SendError> {
        if message.len() > MOST_MESSAGE {
            return Err(SendError::TooLarge(message.len()));
        }
        let mut queue = self.queue();
        if queue.waiting.iter().any(|(_, waits)| *waits == message) {
            return Ok(());
        }
        let number = queue.next;
        (queue.next, queue.bytes) = (number.wrapping_add(1), queue.bytes.saturating_add(message.len()));
        queue.waiting.push_back((number, message));
        while queue.waiting.len() > MOST_WAITING || queue.bytes > MOST_BYTES {
            let Some((_, oldest)) = queue.waiting.pop_front() else { break };
            queue.bytes = queue.bytes.saturating_sub(oldest.len());
        }
        drop(queue);
        self.added.notify_waiters();
        Ok(())
    }

    /// A message of this node is in the order.
    pub(super) fn ordered(&self, message: &Bytes) {
        let mut queue = self.queue();
        if let Some(at) = queue.waiting.iter().position(|(_, waits)| waits == message) {
            queue.waiting.remove(at);
            queue.bytes = queue.bytes.saturating_sub(message.len());
        }
    }

    /// The oldest message whose number is not below `from`, with its number; waits for one. Whoever begins at 0 gets all that are not
    /// in the order yet, also those that an earlier reader has had.
    pub async fn next(&self, from: u64) -> (u64, Bytes) {
        loop {
            // Registered before looking, so that nothing is missed in between.
            let added = self.added.notified();
            let mut added = std::pin::pin!(added);
            added.as_mut().enable();
            if let Some(found) = self.queue().waiting.iter().find(|(number, _)| *number >= from).cloned() {
                return found;
            }
            added.await;
        }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue().waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
