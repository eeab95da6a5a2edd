//! The inputs and effects of a custodian.

use bytes::Bytes;
use theta_ceremonies::CeremonyEvidence;
use theta_ledger::ReplicaOffence;
use theta_names::{NodeId, Version};
use theta_rounds::Offence;
use theta_schemes::keys::KeyName;
use theta_statements::{CancelRequest, CeremonyRequest, MemberRequest, StateChange};
use theta_store::Rollback;

use super::CeremonyReport;
use crate::Members;

/// An offence in a ceremony. A signed statement is evidence that convinces anybody; an unsigned message convinces only
/// its receiver.
pub type CeremonyOffence = Offence<CeremonyEvidence>;

/// An offence in the ledger. It comes without the signed votes that show it, so it convinces this node alone.
pub type LedgerOffence = ReplicaOffence;

/// What a custodian takes.
#[derive(Clone, Debug)]
pub enum CustodyInput {
    /// A message of another node's custodian.
    Message {
        /// Its bytes, of any content.
        from: NodeId,
        /// Its bytes, of any content.
        bytes: Bytes,
    },
    /// Time passes, at regular intervals; the time is in seconds since 1970.
    Tick(u64),
    /// A connection to this node is up.
    Connected(NodeId),
}

/// The recipients of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// All other nodes of the group.
    All,
    /// One of them.
    One(NodeId),
}

/// What clients ask a group for, and the group decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRequest {
    /// A ceremony.
    Ceremony(CeremonyRequest),
    /// The end of a ceremony.
    Cancel(CancelRequest),
    /// Another state of a key.
    State(StateChange),
    /// A change of the members.
    Members(MemberRequest),
}

/// What a custodian wants done, in this order. Everything that an effect reveals has been made durable before.
#[derive(Clone, Debug)]
pub enum CustodyEffect {
    /// Send a message. If it is lost, that costs only time.
    Send {
        /// The recipients.
        to: To,
        /// The payload.
        bytes: Bytes,
    },
    /// The entry of this version was replaced: requests that run on the old one must be started again, or dropped.
    KeyChanged {
        /// The key.
        name: KeyName,
        /// The version.
        version: Version,
    },
    /// A peer says that a client has asked for this, and this node's consent would count. If this node's policy grants what the client
    /// signed, it goes on as if the client had asked here.
    Asked {
        /// What was asked for.
        request: GroupRequest,
        /// What the client signed, and others approved, as the ledger would have it.
        reason: Vec<u8>,
    },
    /// A ceremony went on, or ended.
    Report(CeremonyReport),
    /// A node offended in a ceremony.
    Culprit {
        /// The node.
        node: NodeId,
        /// What it did; if a statement is the offence, with evidence that convinces anybody.
        offence: Box<CeremonyOffence>,
        /// The id of the ceremony.
        ceremony: [u8; 32],
    },
    /// A node's store does not continue what was seen of it.
    RolledBack {
        /// The node; it may be this one, whose store is not to be trusted then: see `Custodian::is_trusted`.
        node: NodeId,
        /// How it does not.
        rollback: Rollback,
        /// The peer that remembers more of this node's store than the store knows; `None` if this node has seen it itself, of a peer's.
        witness: Option<NodeId>,
    },
    /// A node did in the ledger what nobody honest does.
    LedgerOffence {
        /// Who.
        node: NodeId,
        /// What it did.
        offence: LedgerOffence,
    },
    /// The group has other members, or other machines speak for some.
    Members(Box<Members>),
    /// A fault of this program, for its makers. It goes on.
    Fault(String),
    /// The operator of a node has confirmed its store, although it does not continue what was seen of it.
    StoreConfirmed {
        /// The node.
        node: NodeId,
    },
    /// The store failed: the changes of this input are undone or unknown. The custodian does nothing more until the
    /// store has recovered.
    StoreFailed(String),
    /// The store has recovered: everything goes on as after a restart.
    StoreRecovered,
}
