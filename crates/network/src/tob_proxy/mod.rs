//! Total-order broadcast through the host: a platform that orders messages for all, such as a blockchain node, hands this node its ordered
//! messages with their heights, and takes messages to be ordered from it.
//!
//! The node believes its own host about the order and about who sent what; other nodes' hosts have no say here. What a host may do
//! wrong without being dishonest, it is told: a gap, another past. What it repeats is taken once. Everything is bounded.

mod outgoing;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use theta_names::{Channel, NodeId};
use tokio::sync::mpsc;

pub use self::outgoing::Outgoing;
use crate::Inbound;

/// The longest message, in bytes.
pub const MOST_MESSAGE: usize = 64 << 10;
/// The most messages at one height.
pub const MOST_AT_HEIGHT: usize = 4_096;
/// For how many of the last heights the node knows what was there.
const REMEMBERED: usize = 1_024;
/// The messages that wait for whoever reads them.
const INBOX: usize = 1_024;

/// A message in the total order.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// The height of the block that has it.
    pub height: u64,
    /// The message, its sender, and [`Channel::Ordered`].
    pub message: Inbound,
}

/// The messages of one height, in their order, each with its sender as the host says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The height, from 1.
    pub height: u64,
    /// Senders and messages.
    pub messages: Vec<(NodeId, Bytes)>,
}

/// Why blocks were not taken. Nothing of them was, or only those before the mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// This process has taken nothing yet, and its host has not asked what it wants.
    #[error("this node has just begun: ask for its position first, since it wants again what was ordered lately")]
    Unasked,
    /// Heights between are missing.
    #[error("the heights after {position} are missing: deliver from there, the blocks begin after {after}")]
    Gap {
        /// The last height that was taken.
        position: u64,
        /// After which height the delivery begins.
        after: u64,
    },
    /// Heights do not rise, or are not within what the delivery says.
    #[error("heights rise, from above {after} up to {through}: {height} does not")]
    Heights {
        /// The delivery's beginning.
        after: u64,
        /// The delivery's end.
        through: u64,
        /// The height that does not fit.
        height: u64,
    },
    /// What is delivered for a height is not what was delivered for it before.
    #[error(
        "height {0} had other messages before: the host has changed the past, and is not believed any more until it takes that back"
    )]
    OtherPast(u64),
    /// A message or a block is too large.
    #[error("a message has {MOST_MESSAGE} bytes at most, and a height {MOST_AT_HEIGHT} messages")]
    TooLarge,
    /// The node is stopping.
    #[error("this node is shutting down")]
    Closed,
}

/// How far the order is known.
#[derive(Debug, Default)]
struct Taken {
    /// The last height that was taken; `None` before the first delivery of this process.
    position: Option<u64>,
    /// A host has been told the position. One that goes on from where the process before was has not asked this one.
    told: bool,
    /// The digests of the last heights that had messages.
    past: VecDeque<(u64, [u8; 32])>,
}

/// The order of a host, as one node has it.
#[derive(Debug)]
pub struct TobProxy {
    local: NodeId,
    /// Deliveries come one after the other.
    turn: tokio::sync::Mutex<mpsc::Sender<Ordered>>,
    taken: Mutex<Taken>,
    outgoing: Outgoing,
}

impl TobProxy {
    /// The proxy of node `local`, and what comes out of the order.
    #[must_use]
    pub fn new(local: NodeId) -> (Arc<Self>, mpsc::Receiver<Ordered>) {
        let (sender, receiver) = mpsc::channel(INBOX);
        let (turn, taken) = (tokio::sync::Mutex::new(sender), Mutex::default());
        (Arc::new(Self { local, turn, taken, outgoing: Outgoing::default() }), receiver)
    }

    /// The messages of this node that the host has to order.
    #[must_use]
    pub const fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }

    /// The last height that was taken.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.taken().position
    }

    /// Tells the host the last height that was taken. A process that has just begun has taken none: from then on the host begins where it likes, so that
    /// what was ordered lately is known again.
    #[must_use]
    pub fn tell_position(&self) -> Option<u64> {
        let mut taken = self.taken();
        taken.told = true;
        taken.position
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the messages of all heights above `after`, up to `through`: heights without a block had no messages. What was taken before
    /// is passed over. Waits while the node does not keep up. Returns the last height that was taken. A process that has just begun takes nothing
    /// before it has [told its position](Self::tell_position).
    ///
    /// # Errors
    /// [`OrderError`], which tells the host what to do.
    pub async fn deliver(&self, after: u64, through: u64, blocks: Vec<Block>) -> Result<u64, OrderError> {
        let inbox = self.turn.lock().await;
        check(after, through, &blocks)?;
        if !self.taken().told {
            return Err(OrderError::Unasked);
        }
        if let Some(position) = self.position().filter(|position| after > *position) {
            return Err(OrderError::Gap { position, after });
        }
        let digests: Vec<(u64, [u8; 32])> = blocks.iter().map(|block| (block.height, digest(block))).collect();
        self.compare(after, through, &digests)?;
        for (block, digest) in blocks.into_iter().zip(digests) {
            let height = block.height;
            if self.position().is_some_and(|position| height <= position) {
                continue;
            }
            for (from, bytes) in block.messages {
                if from == self.local {
                    self.outgoing.ordered(&bytes);
                }
                let message = Inbound { from, channel: Channel::Ordered, bytes };
                inbox.send(Ordered { height, message }).await.map_err(|_| OrderError::Closed)?;
            }
            // A caller that went away in the middle of a height delivers it again. Whoever reads the order takes repetitions.
            let mut taken = self.taken();
            taken.position = Some(height);
            taken.past.push_back(digest);
            while taken.past.len() > REMEMBERED {
                taken.past.pop_front();
            }
        }
        let mut taken = self.taken();
        let reached = taken.position.map_or(through, |position| position.max(through));
        taken.position = Some(reached);
        Ok(reached)
    }

    /// Refuses another past, as far as it is remembered: another block, a block that is missing, one where there was none.
    fn compare(&self, after: u64, through: u64, digests: &[(u64, [u8; 32])]) -> Result<(), OrderError> {
        let taken = self.taken();
        let Some(position) = taken.position else { return Ok(()) };
        // Before the oldest that is remembered nothing is known.
        let Some((oldest, _)) = taken.past.front().copied() else { return Ok(()) };
        let known = |height: u64| height > after && height >= oldest && height <= through.min(position);
        let now = digests.iter().copied().filter(|(height, _)| known(*height));
        let before = taken.past.iter().copied().filter(|(height, _)| known(*height));
        let differs =
            now.clone().find(|at| !taken.past.contains(at)).or_else(|| before.clone().find(|at| !digests.contains(at)));
        differs.map_or(Ok(()), |(height, _)| Err(OrderError::OtherPast(height)))
    }
}

fn check(after: u64, through: u64, blocks: &[Block]) -> Result<(), OrderError> {
    let mut last = after;
    for Block { height, messages } in blocks {
        if *height <= last || *height > through {
            return Err(OrderError::Heights { after, through, height: *height });
        }
        last = *height;
        if messages.len() > MOST_AT_HEIGHT || messages.iter().any(|(_, bytes)| bytes.len() > MOST_MESSAGE) {
            return Err(OrderError::TooLarge);
        }
    }
    if through < after { Err(OrderError::Heights { after, through, height: through }) } else { Ok(()) }
}

fn digest(block: &Block) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(block.height.to_be_bytes());
    for (from, bytes) in &block.messages {
        hasher.update(from.get().to_be_bytes());
        hasher.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(bytes);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests;
