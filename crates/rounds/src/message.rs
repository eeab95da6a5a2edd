//! What parties send each other.

use core::fmt;

use bytes::Bytes;
use theta_names::{Channel, codec::DecodeError};

use crate::PartyId;

/// Where in a protocol a message belongs. Each party fills each slot at most once.
///
/// Slots are ordered by number first, so that early messages are delivered in the order of their rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Which of the protocol's message types it is.
    pub kind: u16,
    /// Which message of that kind. In a [lock-step protocol](crate::RoundProtocol) it is the round; elsewhere it is a
    /// counter of the protocol's own, such as the number of a session.
    pub number: u16,
}

impl Ord for Slot {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.number, self.kind).cmp(&(other.number, other.kind))
    }
}

impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind, self.number)
    }
}

/// Bytes that are not a message of this protocol; the sender is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct Malformed(pub &'static str);

impl From<DecodeError> for Malformed {
    fn from(error: DecodeError) -> Self {
        Self(error.problem())
    }
}

/// A protocol's message type: one variant for each kind.
pub trait ProtocolMessage: Sized + Send {
    /// The slot in which this message belongs.
    fn slot(&self) -> Slot;
    /// How messages of a slot must travel; `None` for a slot that the protocol does not have.
    fn channel(slot: Slot) -> Option<Channel>;
    /// Whether a message of that slot is a question: it changes no state and is answered in any round, also after the
    /// end. See [`Replies`](crate::Replies).
    fn is_question(_slot: Slot) -> bool {
        false
    }
    /// Encodes the payload; the slot travels beside it.
    fn encode(&self) -> Bytes;
    /// Parses the payload of a slot that `from` sent.
    ///
    /// # Errors
    /// [`Malformed`] on anything that an honest party does not send.
    fn decode(from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed>;
}

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// One party.
    Party(PartyId),
    /// All the others.
    All,
    /// Those of the others that ask for it, because they have waited longer than they should; nobody else.
    OnRequest,
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct Outgoing<M> {
    /// The recipient.
    pub to: Recipient,
    /// The message.
    pub message: M,
}
