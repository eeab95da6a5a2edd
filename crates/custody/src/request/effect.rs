//! The inputs and effects of a custodian.

use bytes::Bytes;
use theta_ceremonies::CeremonyEvidence;
use theta_names::{NodeId, Version};
use theta_rounds::Offence;
use theta_schemes::keys::KeyName;

use super::CeremonyReport;

/// What a node did in a ceremony: what it signed is evidence that convinces anybody, what it sent unsigned convinces its receiver.
pub type CeremonyOffence = Offence<CeremonyEvidence>;

/// What happens to a custodian.
#[derive(Clone, Debug)]
pub enum CustodyInput {
    /// A message of another node's custodian.
    Message {
        /// Its sender, as the transport authenticated it.
        from: NodeId,
        /// Its bytes, of any content.
        bytes: Bytes,
    },
    /// Time passes, regularly; in seconds since 1970.
    Tick(u64),
    /// A connection to this node stands.
    Connected(NodeId),
}

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// All other nodes of the group.
    All,
    /// One of them.
    One(NodeId),
}

/// What a custodian wants done, in this order. Everything that it says has been made durable before.
#[derive(Clone, Debug)]
pub enum CustodyEffect {
    /// Send a message; a lost one costs time only.
    Send {
        /// To whom.
        to: To,
        /// Its bytes.
        bytes: Bytes,
    },
    /// The table has another entry for this version: what runs on the old one is to be started again, or dropped.
    KeyChanged {
        /// Which key.
        name: KeyName,
        /// Which version.
        version: Version,
    },
    /// A ceremony went on, or ended.
    Report(CeremonyReport),
    /// A node lied in a ceremony.
    Culprit {
        /// Who.
        node: NodeId,
        /// What it did; where a statement offends, with evidence that convinces anybody.
        offence: Box<CeremonyOffence>,
        /// In which ceremony.
        ceremony: [u8; 32],
    },
    /// A node's store is not the continuation of what was seen of it.
    RolledBack {
        /// Whose; it may be this node's own, which is not to be trusted then: see `Custodian::is_trusted`.
        node: NodeId,
        /// What was seen, for people.
        text: String,
    },
    /// A node did in the ledger what nobody honest does.
    LedgerOffence {
        /// Who.
        node: NodeId,
        /// What it did, for people.
        text: String,
    },
    /// The operator of a node has said that its store is meant, although it is not the continuation of what was seen of it.
    StoreConfirmed {
        /// Whose store.
        node: NodeId,
    },
    /// The store failed: what this input did is undone or unknown. Nothing more is done until it has recovered.
    StoreFailed(String),
    /// It has: everything goes on as after a restart.
    StoreRecovered,
}
