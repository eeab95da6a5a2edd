//! Who did what: the words for blame.

use core::fmt::{self, Debug, Display};

use bytes::Bytes;
use theta_names::Channel;

use crate::{Malformed, PartyId, Slot};

/// A protocol's own reasons to blame a sender: an enum with one variant a reason, its `Display` for people.
pub trait Evidence: Clone + Debug + Display + Send + Sync + 'static {
    /// A stable `snake_case` name for metrics and logs.
    fn name(&self) -> &'static str;
}

/// What a party did wrong: `M` are the protocol's own reasons. Every variant is something that no honest party does.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Offence<M> {
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
    /// Two different messages in one slot. Both are kept, for the one who received them.
    #[error("two different messages where one is due")]
    Equivocation {
        /// The payload that came first.
        first: Bytes,
        /// The payload that contradicts it.
        second: Bytes,
    },
    /// A reason of the protocol's own.
    #[error("{0}")]
    Protocol(M),
}

impl<M> Offence<M> {
    /// The same offence, the protocol's own reasons in other words.
    pub fn map<N>(self, words: impl FnOnce(M) -> N) -> Offence<N> {
        match self {
            Self::Malformed(malformed) => Offence::Malformed(malformed),
            Self::UnknownSlot => Offence::UnknownSlot,
            Self::WrongChannel { expected, got } => Offence::WrongChannel { expected, got },
            Self::TooLong { len, most } => Offence::TooLong { len, most },
            Self::Equivocation { first, second } => Offence::Equivocation { first, second },
            Self::Protocol(reason) => Offence::Protocol(words(reason)),
        }
    }
}

impl<M: Evidence> Offence<M> {
    /// A stable `snake_case` name for metrics and logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed_message",
            Self::UnknownSlot => "unknown_slot",
            Self::WrongChannel { .. } => "wrong_channel",
            Self::TooLong { .. } => "too_long",
            Self::Equivocation { .. } => "equivocation",
            Self::Protocol(reason) => reason.name(),
        }
    }
}

/// Without the payloads, which may be long and, on private channels, are nobody else's business.
impl<M: Evidence> Debug for Offence<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({self})", self.name())
    }
}

/// An offence and its author, as one party saw it.
///
/// It convinces the party that saw it and nobody else: messages are authenticated by the connection that they came by, which a
/// third party has not seen, and are not signed. Portable evidence exists
/// where statements are signed: the statements of ceremonies and the promises of signing slots carry their signatures, and what contradicts itself
/// there convinces anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame<M: Evidence> {
    /// Who.
    pub party: PartyId,
    /// In which slot, if the offence was found in one message rather than when several were combined.
    pub slot: Option<Slot>,
    /// What.
    pub offence: Offence<M>,
}

impl<M: Evidence> Display for Blame<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "party {}: {}", self.party, self.offence)
    }
}
