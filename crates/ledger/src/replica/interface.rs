//! What goes into a replica and comes out of it.

use theta_agreement::Verdict;
use theta_names::NodeId;

use super::Said;
use crate::{Action, CertifiedEntry, Digest, Entry, LedgerError, LedgerState, Warrant, WarrantRefusal};

/// What a replica asks of the node that it runs in.
pub trait Host {
    /// Whether this node wants the entry, which follows from the state: its own policy, or that the entry proves itself.
    fn judge(&self, state: &LedgerState, entry: &Entry) -> Verdict;
    /// The certified entry of a height, as it was given out with [`Effect::Decided`].
    fn entry(&self, height: u64) -> Option<CertifiedEntry>;
}

/// What happens to a replica.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Time passes; in seconds since 1970.
    Tick(u64),
    /// A connection to this node stands.
    Connected(NodeId),
    /// A message of another replica, of any content, from the node that the transport authenticated.
    Message(NodeId, &'a [u8]),
    /// This node wants an action decided. For [`Action`]s of clients, [`Host::judge`] must say so, too.
    Propose(Action, Vec<u8>),
    /// An operator brings a warrant, under which another machine votes in the place of one that is gone.
    Warrant(Warrant),
    /// The same for an action that follows from what many members have, so that they all want it without being told.
    Expect(Action),
    /// This node wants an action decided no more, whoever told it of that.
    Withdraw(Digest),
    /// Entries one after the other, from whoever had them: those that follow and are certified are taken, and prove themselves.
    Entries(Vec<CertifiedEntry>),
}

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// All other members.
    All,
    /// One of them.
    One(NodeId),
}

/// What a replica wants done, in this order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Make it durable before anything that follows leaves the node.
    Record(Said),
    /// Send a message; a lost one costs time only.
    Send(Recipient, Vec<u8>),
    /// This node votes again after it had lost its memory: it need not be told of that at its next start.
    Remembers,
    /// The store lacks what this node has said, as an entry shows: the node must be told so at each start until it remembers.
    Forgot,
    /// An entry was decided. Make it durable; what was recorded of its height may go.
    Decided(Box<CertifiedEntry>),
    /// A peer says that a client has asked for an action, and this node's consent would count: if its policy grants what the client
    /// signed, the host proposes it as if the client had asked here.
    Asked(Action, Vec<u8>),
    /// Nothing comes of an action that this node wanted decided.
    Dropped(Action, DropReason),
    /// These warrants serve, and those of before no more: make that durable with what this input changed, since only who has them can tell
    /// others after a restart.
    Warrants(Vec<Warrant>),
    /// A warrant that an operator brought does not serve.
    Unserving(WarrantRefusal),
    /// The votes of a quorum have come together that decide nothing, which is a fault of ours: the height begins anew, as after a restart.
    Undecided(LedgerError),
    /// A member did what nobody honest does.
    Blame(NodeId, ReplicaOffence),
}

/// Why nothing comes of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Something else was decided first, and it does not follow any more.
    Refused(crate::Refusal),
    /// Too few members agreed to it in time.
    TooFew,
    /// It is longer than an entry can be.
    TooLong,
    /// Too much waits already.
    Full,
}

/// What a member did to this one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicaOffence {
    /// It voted for two things under one ballot; both votes are signed by it.
    #[error("it said two things under one ballot at height {0}")]
    Equivocation(u64),
    /// It sent a vote that it did not sign.
    #[error("it sent a vote with a false signature")]
    FalseSignature,
    /// It showed prevotes that are no quorum's.
    #[error("it showed prevotes that are false, or too few")]
    FalsePrevotes,
    /// It signed what cannot be read.
    #[error("it sent what no honest member sends: {0}")]
    Malformed(&'static str),
    /// It passed on an entry that is not certified.
    #[error("it passed on an entry that is not certified: {0}")]
    FalseEntry(LedgerError),
}

impl ReplicaOffence {
    /// Whether it is one under the keys that are known here alone.
    pub(super) const fn is_of_signatures(&self) -> bool {
        matches!(self, Self::FalseSignature | Self::FalsePrevotes)
    }
}

/// Whether a store has all that its node has said in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It has.
    Kept,
    /// Nobody has confirmed it yet. The node votes when somebody has: see [`Replica::confirm`](super::Replica::confirm).
    Unconfirmed,
    /// The store was lost or set back. The node votes again at heights at which it cannot have voted.
    Lost,
    /// From this height on.
    From(u64),
}
