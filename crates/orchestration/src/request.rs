//! What the orchestrator answers.

use theta_authority::InstanceId;
use theta_custody::{CeremonyOffence, Equivocation, PromiseOffence, ResolveError, SlotRefusal};
use theta_groups::Secret;
use theta_names::NodeId;
use theta_protocols::Misbehaviour;
use theta_rounds::{Abort, Offence};
use theta_schemes::signatures::frost::SeedError;

use crate::instances::EnvelopeError;

/// A finished instance.
#[derive(Debug)]
pub struct Finished {
    /// The payload key, signature or coin value.
    pub result: Secret<Vec<u8>>,
    /// The coin's proof; for a signature under a re-randomised key the commitments that it is made of; else empty, for the
    /// result proves itself.
    pub proof: Vec<u8>,
    /// The nodes whose shares are in the result.
    pub contributors: Vec<NodeId>,
    /// Who misbehaved in this instance without stopping it.
    pub culprits: Vec<Culprit>,
}

/// A node that misbehaved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Who.
    pub party: NodeId,
    /// What it did.
    pub misdeed: Misdeed,
    /// In which instance, or ceremony.
    pub instance: InstanceId,
}

/// What a node did that no honest node does. Shown, it says what exactly, for example `share fails verification`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misdeed {
    /// In an instance. It convinces nobody but this node: see [`theta_rounds::Blame`].
    #[error("{0}")]
    Instance(Offence<Misbehaviour>),
    /// In a ceremony. Where a signed statement offends, it convinces anybody who has the group file.
    #[error("{0}")]
    Ceremony(Box<CeremonyOffence>),
    /// It promised one slot to two messages, and both promises are signed: that convinces anybody who has the group file.
    #[error("promised slot {} of key {} (rule {}) to two messages", .0.subject.slot, .0.subject.key, .0.subject.rule)]
    Slot(Box<Equivocation>),
    /// What it said of promises is none, or not of those in whose name it is.
    #[error(transparent)]
    Promise(#[from] PromiseOffence),
    /// What it sent is no envelope.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
}

impl Misdeed {
    /// A stable `snake_case` name for metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Instance(offence) => offence.name(),
            Self::Ceremony(_) => "ceremony",
            Self::Slot(_) => "slot_equivocation",
            Self::Promise(_) => "promise",
            Self::Envelope(error) => error.name(),
        }
    }
}

/// Where an instance stands.
#[derive(Clone, Debug)]
pub struct InstanceSnapshot {
    /// The key, as it was asked for.
    pub key: String,
    /// `decapsulate`, `sign` or `flip_coin`.
    pub operation: &'static str,
    /// Shares it has.
    pub shares: usize,
    /// Shares it takes, k.
    pub needed: usize,
    /// Running, finished or failed.
    pub state: InstanceState,
}

/// The life of an instance.
#[derive(Clone, Debug)]
pub enum InstanceState {
    /// Waiting for shares.
    Running,
    /// There is a result.
    Finished(std::sync::Arc<Finished>),
    /// There will be none; the text says why and what to do.
    Failed(String),
}

/// Why a request was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// No such key here, or none that serves.
    #[error(transparent)]
    Key(#[from] ResolveError),
    /// The statement is not one that the key answers.
    #[error(transparent)]
    Request(#[from] theta_schemes::RequestError),
    /// The key does not sign with such a seed.
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// A bound is reached: instances running, or the CPU pool's queue.
    #[error("this node is at its limit of {0}: try again later or ask another node")]
    Overloaded(&'static str),
    /// The node's store failed: it cannot keep what it must not forget.
    #[error("this node's store failed, ask another node: {0}")]
    Store(String),
    /// The node is stopping.
    #[error("this node is shutting down")]
    ShuttingDown,
    /// Our own mistake.
    #[error(transparent)]
    Bug(#[from] theta_rounds::Bug),
}

/// Why there is no outcome to give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstanceError {
    /// Never started here, or its result has been dropped by age or size.
    #[error(
        "no instance {0} on this node: it was never started here or its result has expired; send the request again"
    )]
    Unknown(InstanceId),
    /// The protocol ended without a result: the input was unusable, too few could contribute, or a bug of ours.
    #[error(transparent)]
    Aborted(#[from] Abort),
    /// Its time ran out; the text says what was missing.
    #[error("{0}")]
    Expired(String),
    /// Its slot is not certified for it.
    #[error(transparent)]
    Slot(#[from] SlotRefusal),
    /// Its key went away while it ran.
    #[error("the key went away meanwhile: {0}")]
    Key(#[from] ResolveError),
    /// The node is stopping.
    #[error("this node is shutting down")]
    ShuttingDown,
}
