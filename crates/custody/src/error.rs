//! Why a custodian refuses. Each text is one line, with what would help.

use theta_ceremonies::{JoinError, PlanError};
use theta_ledger::GenesisError;
use theta_names::codec::DecodeError;
use theta_names::{KeyRef, NodeId};
use theta_rounds::Malformed;
use theta_schemes::keys::{KeyName, PublicBytesError, ShareBytesError};
use theta_schemes::{Suite, UnfitThreshold, UnknownSuite, UnsupportedDelivery};
use theta_store::{JournalError, KeyError, StoreError};

use crate::KeyTableError;

/// Why a custodian cannot begin or go on: the store failed, or its content is unusable.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CustodyError {
    /// The disk, the file or the sealing key.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A key cannot be stored.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The journal of a ceremony cannot be written or read.
    #[error("the journal of a ceremony: {0}")]
    Journal(#[from] JournalError),
    /// A share in the store, or one to be stored, is not of its key.
    #[error("key {key} in the store: its share: {error}")]
    Share {
        /// Which key, and which version if that is known.
        key: KeyRef,
        /// What is wrong with it.
        error: Box<ShareBytesError>,
    },
    /// The public part of a key in the store does not decode.
    #[error("key {key} in the store: its public part: {error}")]
    Public {
        /// Which version of which key.
        key: KeyRef,
        /// What is wrong with it.
        error: Box<PublicBytesError>,
    },
    /// The keys of the store do not go together.
    #[error(transparent)]
    Table(#[from] KeyTableError),
    /// A share in the store belongs to another node.
    #[error("key {key} in the store: the share is not the one of node {node}")]
    OtherNode {
        /// Which version of which key.
        key: KeyRef,
        /// This node.
        node: NodeId,
    },
    /// A ceremony in the journal does not decode.
    #[error("a ceremony in the journal: {0}: the file was changed, or is of another release")]
    Malformed(#[from] Malformed),
    /// The store failed while ceremonies were resumed.
    #[error("the store failed: {0}")]
    Unusable(String),
    /// The group file and the founding in it do not go together.
    #[error(transparent)]
    Genesis(GenesisError),
    /// An entry of the ledger is not one, or does not follow.
    #[error("entry {0} of the ledger in the store: the file was changed, or is of another release")]
    Ledger(u64),
    /// The identity in the store is not the one in the group file.
    #[error(
        "the group file has another ceremony key for node {0} than its store: take the one that its store was made with"
    )]
    OtherIdentity(NodeId),
}

/// Why a ceremony does not run at this node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CeremonyError {
    /// The store has no identity.
    #[error("this node has no ceremony key: it cannot take part in ceremonies; give it one with `theta group`")]
    NoIdentity,
    /// The group file has no identity for a node.
    #[error("node {0} has no ceremony_key in the group file: it cannot take part in ceremonies")]
    NoCeremonyKey(NodeId),
    /// The key is an RSA key.
    #[error(
        "keys of suite {0} take a trusted dealer: RSA keys are not made or renewed by ceremonies; `theta keys deal` makes them while the directories of all nodes are together (theta group init)"
    )]
    TakesDealer(Suite),
    /// The scheme's results do not prove themselves.
    #[error(transparent)]
    UnsupportedDelivery(#[from] UnsupportedDelivery),
    /// The scheme takes an honest majority, and the key would not have it.
    #[error(transparent)]
    UnfitThreshold(#[from] UnfitThreshold),
    /// A suite that this build does not have.
    #[error(transparent)]
    UnknownSuite(UnknownSuite),
    /// There is no such key.
    #[error("there is no key {name} here; the known ones are: {known}")]
    UnknownKey {
        /// What was asked for.
        name: String,
        /// The names of the keys that exist.
        known: String,
    },
    /// The ledger does not have the key yet.
    #[error(transparent)]
    NotInLedger(#[from] NotInLedger),
    /// The name was given before.
    #[error("a key {0} exists or existed: choose another name")]
    Exists(KeyName),
    /// The key is destroyed, or disabled where that matters.
    #[error("key {name} is {state}: {help}")]
    State {
        /// Which key.
        name: String,
        /// Its state.
        state: &'static str,
        /// What would help, in words.
        help: &'static str,
    },
    /// It cannot follow from what the group has decided.
    #[error("{0}")]
    Refused(String),
    /// The node to recover is no holder.
    #[error("node {node} is no holder of key {name}: there is no share to recover")]
    NotHolder {
        /// Which node.
        node: u16,
        /// Which key.
        name: String,
    },
    /// No share is lost.
    #[error("node {0} has its share of this key: nothing is to be recovered")]
    HasShare(NodeId),
    /// Another ceremony of this key and version runs.
    #[error("a ceremony of this key runs, its aim is {aim}, its id {id}: wait for its end", id = hex::encode(id))]
    Busy {
        /// Its id.
        id: [u8; 32],
        /// Its aim.
        aim: &'static str,
    },
    /// A ceremony for this very request has run and ended.
    #[error(
        "this request was used up by a ceremony that is over: what was approved or signed stands for one ceremony; ask for \
         another with a new nonce, and new approvals of it"
    )]
    Used,
    /// There is no such ceremony.
    #[error("the group has begun no such ceremony: what waits for more nodes to agree ends by itself if they do not")]
    NotBegun,
    /// Nodes take no part before their stores are confirmed, and too few others are left.
    #[error(
        "the stores of these nodes are not what their peers remember of them: {nodes}; they say nothing before that is settled, and it takes \
         {needed} where {left} others are left: {help}"
    )]
    Unconfirmed {
        /// The nodes, in words.
        nodes: String,
        /// How many others there are.
        left: usize,
        /// How many are needed.
        needed: usize,
        /// What would help, in words.
        help: &'static str,
    },
    /// A threshold or list of holders is impossible.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// A holder that the group does not have.
    #[error("the group has no node {0}")]
    NoNode(u16),
    /// This node's identity or share does not fit.
    #[error("{0}")]
    Join(#[from] JoinError),
    /// The store has failed and not yet recovered.
    #[error("the store failed, and this node waits for its disk to work again: {0}")]
    StoreFailed(String),
    /// The number of an epoch or version would exceed its range.
    #[error("the key has been renewed as often as can be")]
    TooManyEpochs,
}

/// The ledger does not have a key yet: a dealer brought it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the group has not taken key {name} into its ledger yet: that takes the nodes that hold it, {k} of them at least and as many as its \
     threshold, all running; ask again in a moment"
)]
pub struct NotInLedger {
    /// Which key.
    pub name: String,
    /// How many nodes it takes at least.
    pub k: u16,
}

/// Why a key's state is not changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ChangeError {
    /// The store refuses.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The ledger does not have the key yet.
    #[error(transparent)]
    NotInLedger(#[from] NotInLedger),
    /// The change follows on another one that this node does not know.
    #[error(
        "the change names generation {named} and key {name} is at {at} here: this node may lack what was decided last, ask again in a moment"
    )]
    Early {
        /// Which key.
        name: KeyName,
        /// The generation that was named.
        named: u64,
        /// The key's.
        at: u64,
    },
    /// It cannot follow from what the group has decided.
    #[error("{0}")]
    Refused(String),
    /// The store cannot be read, or failed earlier.
    #[error(transparent)]
    Custody(#[from] CustodyError),
}

/// Why a change of the members, or a warrant, is not looked at.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MembersError {
    /// It cannot be read.
    #[error("not a change of members: {0}")]
    Change(DecodeError),
    /// It cannot be read.
    #[error("not a warrant: {0}")]
    Warrant(DecodeError),
    /// The store failed.
    #[error("the store failed: {0}")]
    StoreFailed(String),
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        Self::Key(KeyError::Store(error))
    }
}
