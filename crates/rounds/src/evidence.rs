//! Who did what: the words for blame.

use core::fmt::{self, Debug, Display};

use bytes::Bytes;

use crate::{Channel, Malformed, PartyId, Slot};

/// A protocol's own reasons to blame a sender: an enum with one variant a reason, its `Display` for people.
pub trait Evidence: Clone + Debug + Display + Send + 'static {
    /// A stable `snake_case` name for metrics and logs.
    fn name(&self) -> &'static str;
}

/// What a party did wrong, whatever the protocol. Every variant is something that no honest party does.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Offence {
    /// Bytes that are no message of this protocol.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A message for a slot that the protocol does not have.
    #[error("message for a slot that does not exist")]
    UnknownSlot,
    /// A message that came another way than its slot demands, for example a private one in the open.
    #[error("message came over the wrong channel")]
    WrongChannel {
        /// How the slot's messages travel.
        expected: Channel,
        /// How this one came.
        got: Channel,
    },
    /// A message that is longer than any that an honest party sends there. Nothing of it is kept or read.
    #[error("message of {len} bytes where {most} are the most")]
    TooLong {
        /// Its length.
        len: usize,
        /// The longest of its slot.
        most: usize,
    },
    /// Two different messages in one slot. Both are kept: with the transport's signatures they convince anyone.
    #[error("two different messages where one is due")]
    Equivocation {
        /// The payload that came first.
        first: Bytes,
        /// The payload that contradicts it.
        second: Bytes,
    },
    /// A reason of the protocol's own, see its `Misbehaviour` type.
    #[error("{text}")]
    Protocol {
        /// [`Evidence::name`].
        name: &'static str,
        /// Its text for people.
        text: String,
    },
}

impl Offence {
    /// Erases a protocol's own evidence.
    #[must_use]
    pub fn protocol(evidence: &impl Evidence) -> Self {
        Self::Protocol { name: evidence.name(), text: evidence.to_string() }
    }

    /// A stable `snake_case` name for metrics and logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed_message",
            Self::UnknownSlot => "unknown_slot",
            Self::WrongChannel { .. } => "wrong_channel",
            Self::TooLong { .. } => "too_long",
            Self::Equivocation { .. } => "equivocation",
            Self::Protocol { name, .. } => name,
        }
    }
}

/// Without the payloads, which may be long and, on private channels, are nobody else's business.
impl Debug for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({self})", self.name())
    }
}

/// An offence and its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// Who.
    pub party: PartyId,
    /// In which slot, if the offence was found in one message rather than when several were combined.
    pub slot: Option<Slot>,
    /// What.
    pub offence: Offence,
}

impl Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "party {}: {}", self.party, self.offence)
    }
}
