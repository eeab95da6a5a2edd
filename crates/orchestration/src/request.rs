//! The answers of the orchestrator.

use theta_authority::InstanceId;
use theta_custody::{CeremonyOffence, Equivocation, KeyEntry, PromiseOffence, ResolveError, SlotRefusal};
use theta_groups::Secret;
use theta_names::NodeId;
use theta_protocols::{Misbehaviour, ecdsa};
use theta_rounds::{Abort, Offence};
use theta_schemes::signatures::frost::SeedError;

use crate::instances::EnvelopeError;

/// A finished instance.
#[derive(Debug)]
pub struct Finished {
    /// The payload key, signature or coin value.
    pub result: Secret<Vec<u8>>,
    /// The coin's proof; for a signature under a re-randomised key, the commitments from which that key follows;
    /// otherwise empty, since the result proves itself.
    pub proof: Vec<u8>,
    /// The nodes whose shares are in the result.
    pub contributors: Vec<NodeId>,
    /// Nodes that misbehaved in this instance without stopping it.
    pub culprits: Vec<Culprit>,
}

/// A node that misbehaved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// The node.
    pub party: NodeId,
    /// What it did.
    pub offence: NodeOffence,
    /// The instance, or the ceremony.
    pub instance: InstanceId,
}

/// An offence: what no honest node does. Its `Display` says what exactly, for example `share fails verification`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeOffence {
    /// An offence in an instance. It convinces only this node: see [`theta_rounds::Blame`].
    #[error("{0}")]
    Instance(Offence<Misbehaviour>),
    /// An offence in a ceremony. If a signed statement is the offence, it convinces anybody with the group file.
    #[error("{0}")]
    Ceremony(Box<CeremonyOffence>),
    /// The node promised one slot to two messages. Both promises are signed, which convinces anybody with the group
    /// file.
    #[error("promised slot {} of key {} (rule {}) to two messages", .0.subject.slot, .0.subject.key, .0.subject.rule)]
    Slot(Box<Equivocation>),
    /// The node sent bytes that are no promises, or promises that were not signed by those in whose names they are.
    #[error(transparent)]
    Promise(#[from] PromiseOffence),
    /// The node sent its part of a request whose contents an agent of this node refuses. The two operators go by
    /// different things, one of them is in other hands, or a client has asked the two at different times or for different things: which, this does not
    /// say, nor does it convince anybody else.
    #[error("took part in a request that an agent of this node refuses")]
    Consent,
    /// The node sent bytes that are no envelope.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
}

impl NodeOffence {
    /// A stable `snake_case` name for metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Instance(offence) => offence.name(),
            Self::Ceremony(_) => "ceremony",
            Self::Slot(_) => "slot_equivocation",
            Self::Promise(_) => "promise",
            Self::Consent => "consent",
            Self::Envelope(error) => error.name(),
        }
    }
}

/// What a node has ahead of signatures with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stock {
    /// `presignatures` of ECDSA, or `commitments` of other holders for FROST.
    pub kind: &'static str,
    /// How many there are.
    pub ready: usize,
    /// How many there should be.
    pub level: usize,
}

/// Holders of a key with a dishonest majority among whom somebody cheated. This node computes no more with them in this epoch of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// The holders, this node among them.
    pub nodes: Vec<NodeId>,
    /// What was found false.
    pub phase: String,
    /// Who cheated, if that is known.
    pub culprit: Option<NodeId>,
}

impl Quarantine {
    /// All that this node knows of for a key.
    #[must_use]
    pub fn of(entry: &KeyEntry) -> Vec<Self> {
        let node = |index| entry.holders.node_of(index);
        let seen = |it: ecdsa::Quarantine| Self {
            nodes: it.holders.iter().filter_map(|index| node(*index)).collect(),
            phase: it.phase.into_owned(),
            culprit: it.party.and_then(|party| node(party.share())),
        };
        entry.stock.quarantined().into_iter().map(seen).collect()
    }
}

/// The state of an instance.
#[derive(Clone, Debug)]
pub struct InstanceSnapshot {
    /// The key, as the request named it.
    pub key: String,
    /// `decapsulate`, `sign` or `flip_coin`.
    pub operation: &'static str,
    /// The number of shares it has.
    pub shares: usize,
    /// The number of shares it needs, k.
    pub needed: usize,
    /// Running, finished or failed.
    pub state: InstanceState,
}

/// The life of an instance.
#[derive(Clone, Debug)]
pub enum InstanceState {
    /// Waiting for shares.
    Running,
    /// It has a result.
    Finished(std::sync::Arc<Finished>),
    /// There is no result; the text says why and what to do.
    Failed(String),
}

/// Why a request was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// There is no such key here, or none that is in use.
    #[error(transparent)]
    Key(#[from] ResolveError),
    /// The key does not answer such a statement.
    #[error(transparent)]
    Request(#[from] theta_schemes::RequestError),
    /// The key cannot sign under a seed.
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// A limit is reached: of running instances, or of the CPU threads' queue.
    #[error("this node is at its limit of {0}: try again later or ask another node")]
    Overloaded(&'static str),
    /// The node's store failed, so the node cannot record anything.
    #[error("this node's store failed, ask another node: {0}")]
    Store(String),
    /// The machine is not its member's any more, or not yet.
    #[error("{0}")]
    Departed(String),
    /// The node is stopping.
    #[error("this node is shutting down")]
    ShuttingDown,
    /// A mistake of this program.
    #[error(transparent)]
    Bug(#[from] theta_rounds::Bug),
}

/// Why an instance has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstanceError {
    /// It was never started here, or its result has been dropped by age or size.
    #[error(
        "no instance {0} on this node: it was never started here or its result has expired; send the request again"
    )]
    Unknown(InstanceId),
    /// The protocol ended without a result: the input was unusable, too few could contribute, or there is a bug.
    #[error(transparent)]
    Aborted(#[from] Abort),
    /// Its time ran out; the text says what was missing.
    #[error("{0}")]
    Expired(String),
    /// Its slot is not certified for its message.
    #[error(transparent)]
    Slot(#[from] SlotRefusal),
    /// Its key was removed or disabled while it ran.
    #[error("the key went away meanwhile: {0}")]
    Key(#[from] ResolveError),
    /// The node is stopping.
    #[error("this node is shutting down")]
    ShuttingDown,
}
