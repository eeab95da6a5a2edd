//! The bounds of a certifier, and what it wants done.

use bytes::Bytes;
use theta_names::NodeId;
use theta_rounds::Malformed;

use super::promise::Equivocation;
use super::refusal::SlotRefusal;
use crate::request::To;

/// The bounds of a certifier's memory, and its delays in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct CertifierLimits {
    /// The most requests that wait.
    pub waiting: usize,
    /// The most slots that one peer may promise before they are asked for here.
    pub early: usize,
    /// For how long such promises are kept.
    pub early_age: u64,
    /// The most slots that are kept for peers that ask again.
    pub kept: usize,
    /// The most bytes of those slots.
    pub kept_bytes: usize,
    /// How long a slot stays undecided before all are asked for what they know; each further time twice as long.
    pub ask_after: u64,
}

impl Default for CertifierLimits {
    fn default() -> Self {
        Self { waiting: 10_000, early: 1_024, early_age: 10_000, kept: 16_384, kept_bytes: 32 << 20, ask_after: 250 }
    }
}

/// The number of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(super) u64);

/// What a certifier wants done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertifierEffect {
    /// Send a message. If it is lost, that costs only time.
    Send {
        /// The recipients.
        to: To,
        /// The payload.
        bytes: Bytes,
    },
    /// A request has all its certificates, or will never have them.
    Decided {
        /// The request.
        ticket: Ticket,
        /// `Err` with the reason if it will not have its certificates.
        verdict: Result<(), SlotRefusal>,
    },
    /// A peer sent what no honest node sends.
    Culprit {
        /// The peer.
        node: NodeId,
        /// The offence.
        offence: PromiseOffence,
    },
    /// A node promised one slot to two messages.
    Equivocation(Box<Equivocation>),
}

/// An offence in a peer's message about promises. It proves nothing to others: the message itself is not signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromiseOffence {
    /// The bytes are no promises.
    #[error("malformed promises: {}", .0.0)]
    Malformed(Malformed),
    /// A promise in the name of that node which it has not signed.
    #[error("a false promise of node {0}")]
    FalseSignature(NodeId),
}

pub(super) type Effects = Vec<CertifierEffect>;
