//! Blame: which party did what.

use core::fmt::{self, Debug, Display};

use bytes::Bytes;
use theta_names::Channel;

use crate::{Malformed, PartyId, Slot};

/// A protocol's own reasons to blame a sender: an enum with one variant a reason, its `Display` for people.
pub trait Evidence: Clone + Debug + Display + Send + Sync + 'static {
    /// A stable `snake_case` name for metrics and logs.
    fn name(&self) -> &'static str;
}

/// What a party did wrong; `M` holds the protocol's own reasons. No honest party does any of these.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Offence<M> {
    /// The bytes are no message of this protocol.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A message for a slot that the protocol does not have.
    #[error("message for a slot that does not exist")]
    UnknownSlot,
    /// A message came by another channel than its slot demands, for example a private one in the open.
    #[error("message came over the wrong channel")]
    WrongChannel {
        /// The channel of the slot's messages.
        expected: Channel,
        /// The channel that this one came by.
        got: Channel,
    },
    /// A message is longer than any that an honest party sends in its slot. None of it is kept or read.
    #[error("message of {len} bytes where {most} are the most")]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The longest payload of its slot, in bytes.
        most: usize,
    },
    /// Two different messages in one slot. Both are kept as evidence for the receiver.
    #[error("two different messages where one is due")]
    Equivocation {
        /// The payload that came first.
        first: Bytes,
        /// The payload that contradicts it.
        second: Bytes,
    },
    /// One of the protocol's own reasons.
    #[error("{0}")]
    Protocol(M),
}

impl<M> Offence<M> {
    /// The same offence, with the protocol's own reason mapped to another type.
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

/// Leaves out the payloads: they may be long, and private ones must not be shown.
impl<M: Evidence> Debug for Offence<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({self})", self.name())
    }
}

/// An offence and its author, as one party saw it.
///
/// It convinces the party that saw it and nobody else: messages are not signed, and are authenticated only by the
/// connection that they came by, which a third party has not seen. Portable evidence exists where statements are
/// signed: ceremonies' statements and the promises of signing slots carry signatures, so two that contradict each other
/// convince anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame<M: Evidence> {
    /// The party that committed it.
    pub party: PartyId,
    /// The slot, if the offence was found in one message rather than when several were combined.
    pub slot: Option<Slot>,
    /// The offence.
    pub offence: Offence<M>,
}

impl<M: Evidence> Display for Blame<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "party {}: {}", self.party, self.offence)
    }
}
