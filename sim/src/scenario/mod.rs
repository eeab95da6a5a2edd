//! Scenarios as data, either drawn from a seed or written by a test.

mod chain;
mod draw;
mod ledger;
mod members;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use theta_names::{Delivery, KeyState};
use theta_schemes::Suite;
use theta_wan::Profile;

use crate::byzantine::{Behaviour, LedgerLie};

pub use chain::Chain;
pub use members::{Arrival, Departure, Exchange, Fate, Renewal, Word};

pub(crate) use draw::is_rsa;

/// A run, except for what its random generator decides on the way. Times are in milliseconds, nodes are numbers.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed of all randomness.
    pub seed: u64,
    /// The number of nodes, or of those that founded the group.
    pub n: u16,
    /// The number of shares that an operation takes.
    pub k: u16,
    /// Whether custodians hold the keys, so that there can be ceremonies. Otherwise the keys never change.
    pub kept: bool,
    /// The dealt keys.
    pub keys: Vec<HeldKey>,
    /// The requests of clients.
    pub requests: Vec<Asked>,
    /// The ceremonies of keys.
    pub ceremonies: Vec<Planned>,
    /// The changes of keys' states, in this order.
    pub changes: Vec<StateWish>,
    /// The time from which somebody sends all past requests of ceremonies and changes of states to all nodes, once a
    /// second.
    pub again_from: Option<u64>,
    /// The thefts of a thief, who also records all messages between nodes.
    pub thefts: Vec<Theft>,
    /// What the network does to all messages.
    pub weather: Weather,
    /// Whether delays are those between real places, with loss and rate on top of the weather's loss.
    pub distances: Option<Distances>,
    /// Whether messages go through hosts, which also bend frames, repeat old ones and mistake senders and receivers. Not with machines that are replaced.
    pub hosts: bool,
    /// Whether the hosts have a chain, and signing rules follow its order.
    pub chain: Option<Chain>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Machines that are lost for good, and replaced: with the liars k - 1 members at most, and where the others are too few to decide
    /// without them, no more than can be stood in for. If there is any change of the members, the group was founded with cards.
    pub exchanges: Vec<Exchange>,
    /// New cards of members.
    pub renewals: Vec<Renewal>,
    /// New members, by their numbers: the first is the one after the founders.
    pub arrivals: Vec<Arrival>,
    /// Members that leave.
    pub departures: Vec<Departure>,
    /// Byzantine nodes, k - 1 at most.
    pub liars: BTreeMap<u16, Behaviour>,
    /// The time from which nothing goes wrong any more.
    pub calm: u64,
    /// The time by which everything must have ended.
    pub end: u64,
    /// A bug of an honest node, for tests of the invariants.
    pub sabotage: Option<Sabotage>,
}

/// A dealt key.
#[derive(Clone, Debug)]
pub struct HeldKey {
    /// Its suite, whose name is also the name of the key.
    pub suite: Suite,
    /// Who makes shares for a request.
    pub delivery: Delivery,
    /// The nodes whose policies refuse its use.
    pub refused_by: BTreeSet<u16>,
    /// Whether a signing rule gives it slots.
    pub slots: bool,
    /// Whether two of three approvers must approve each use.
    pub consents: bool,
    /// Whether a node limits its uses to a burst of two and two a second.
    pub rated: bool,
    /// A node that has lost its share.
    pub lost_by: Option<u16>,
}

impl HeldKey {
    /// So many willing honest nodes certainly have a result, k being the key's. With an honest majority presignatures of ECDSA are made by 2t + 1 holders:
    /// fewer can use what is in stock, and no more is promised.
    pub(crate) fn takes(&self, k: u16) -> usize {
        let k = usize::from(k);
        let by_most = [Delivery::All, Delivery::Passive].contains(&self.delivery);
        if self.suite.scheme() == "ECDSA" && by_most { 2 * k - 1 } else { k }
    }
}

/// The uses of a rated key that may come at once.
pub(crate) const BURST: u64 = 2;
/// The uses of a rated key that each second adds.
pub(crate) const PER_SECOND: u64 = 2;
/// The number of approvers.
pub(crate) const APPROVERS: u8 = 3;
/// The number of approvals that a use takes.
pub(crate) const NEEDED: usize = 2;

/// A request to all nodes.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The time of the request.
    pub at: u64,
    /// The position of the key in [`Scenario::keys`].
    pub key: usize,
    /// The message, coin or plaintext.
    pub text: String,
    /// The slot of the message.
    pub slot: Option<u64>,
    /// The nodes that receive it later than the others.
    pub later_at: BTreeSet<u16>,
    /// The approvals in the request.
    pub consents: Vec<Consent>,
    /// The nodes that receive the request without approvals.
    pub bare_at: BTreeSet<u16>,
    /// Whether the client brings the message's digest in its place; of keys of ECDSA.
    pub hashed: bool,
}

impl Asked {
    /// Whether enough approvers have approved the request, as this node should see it.
    #[must_use]
    pub fn is_consented(&self, node: u16) -> bool {
        let sound = |consent: &&Consent| consent.fault.is_none() && consent.approver < APPROVERS;
        let approvers: BTreeSet<u8> = self.consents.iter().filter(sound).map(|consent| consent.approver).collect();
        approvers.len() >= NEEDED && !self.bare_at.contains(&node)
    }
}

/// An approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consent {
    /// The approver: 0, 1 and 2 are those of the policy; the policy knows no others.
    pub approver: u8,
    /// What is wrong with it.
    pub fault: Option<ConsentFault>,
}

/// What can be wrong with an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentFault {
    /// It is for another message.
    OtherMessage,
    /// It is for another key.
    OtherKey,
    /// It is for another operation.
    OtherOperation,
    /// It is for another group.
    OtherGroup,
    /// It is no longer valid.
    Expired,
    /// It is not valid yet.
    Early,
    /// It is valid for longer than policies allow.
    TooLong,
    /// Its signature is invalid.
    Forged,
}

/// A ceremony.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The time of the request.
    pub at: u64,
    /// The aim of the ceremony.
    pub aim: Aim,
}

/// A change of a key's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateWish {
    /// The time of the request.
    pub at: u64,
    /// The position of the key in [`Scenario::keys`].
    pub key: usize,
    /// The new state.
    pub state: KeyState,
}

/// A node's whole store is stolen, and the node goes on honestly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theft {
    /// The time of the theft.
    pub at: u64,
    /// The node.
    pub node: u16,
}

/// The aim of a ceremony. Keys are given by their position in [`Scenario::keys`].
#[derive(Clone, Debug)]
pub enum Aim {
    /// A new key for all nodes.
    Create(Suite),
    /// A new version of a key.
    Rotate(usize),
    /// New shares of a key.
    Refresh(usize),
    /// New shares of a key, with this k and these holders.
    Reshare(usize, u16, Vec<u16>),
    /// The lost share of this node.
    Recover(usize, u16),
}

/// What lies between nodes that are far from each other.
#[derive(Clone)]
pub struct Distances(Arc<Profile>);

impl Distances {
    /// What this profile says, a tick being a millisecond.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self(Arc::new(profile))
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.0
    }
}

impl fmt::Debug for Distances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// What the network does to each message.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// The longest delay in milliseconds. Each message has its own delay, so messages overtake each other.
    pub delay: u64,
    /// How many of a thousand messages are lost.
    pub loss: u64,
    /// How many of a thousand messages arrive twice.
    pub duplicates: u64,
}

/// A fault.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Messages between these nodes and the others are lost for a while.
    Partition {
        /// The beginning.
        at: u64,
        /// The end.
        until: u64,
        /// The nodes on one side.
        side: BTreeSet<u16>,
    },
    /// A node loses power, if it is writing after this many more writes to its disk, and starts again.
    Crash {
        /// The time of the loss.
        at: u64,
        /// The time of the restart.
        until: u64,
        /// The node.
        node: u16,
        /// How many writes its disk still accepts, counted from half a second before.
        writes: u64,
    },
    /// An honest node loses power at a step of its own, and starts again. One of each node.
    Kill {
        /// The node.
        node: u16,
        /// The last step that it takes.
        step: Step,
        /// For how many milliseconds it is down.
        pause: u64,
    },
    /// A node's disk is replaced by an older copy.
    SetBack {
        /// The time at which the copy was made; `None` for a disk with nothing but the node's identity.
        copied: Option<u64>,
        /// The time at which the node loses power and its disk is replaced.
        at: u64,
        /// The time of the restart.
        until: u64,
        /// The node.
        node: u16,
        /// The time at which a person confirms the store and restarts the node.
        confirmed: Option<u64>,
    },
    /// A node's wall clock is set, and its process is paused for a while.
    Jump {
        /// The time of the fault.
        at: u64,
        /// The node.
        node: u16,
        /// By how many seconds the wall clock is set.
        seconds: i64,
        /// For how many milliseconds the process is paused.
        pause: u64,
    },
}

/// A step of a node, counted from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It has sent so many messages of instances: of all that it would send then, the others are lost.
    Sent(u64),
    /// Its disk has taken so many writes, changes of length and syncs.
    Written(u64),
}

/// Bugs that the invariants must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A node does not ask its policy.
    NoPolicy,
    /// A node forgets its slots when it restarts.
    ForgetsSlots,
    /// A node gives its share of a signature without waiting for the certificate of its slot.
    NoCertificates,
    /// A node draws the same nonces after each restart.
    SameNonces,
    /// A node signs with a presignature that it has used before.
    SignsAgain,
    /// A node returns a wrong result to its clients.
    OtherResult,
    /// A node receives nothing after the first half second.
    Deaf,
    /// A node reports a wrong end of ceremonies.
    OtherOutcome,
    /// A node accepts more than its bounds.
    NoLimits,
    /// No node that was not drawn to do the work of a key in quorum mode begins with it, however long those take that were. (One alone does no
    /// harm: it is asked by others.)
    NeverHedges,
    /// A node's policy limits no rates.
    NoRates,
    /// A node trusts its store whatever its peers say.
    TrustsItself,
    /// A client that follows the ledger believes entries without looking at their votes.
    Credulous,
    /// A node's policy asks for no approvals.
    NoConsents,
    /// No node waits for the order of the hosts' chain before it promises a slot. (One alone is one of those who may lie.)
    NoOrder,
}

impl Sabotage {
    /// Whether all nodes have the bug, and not one alone.
    pub(crate) const fn is_everybodys(self) -> bool {
        matches!(self, Self::NeverHedges | Self::NoOrder)
    }
}

impl Fault {
    /// The node that it befalls, if it befalls one.
    pub(crate) const fn node(&self) -> Option<u16> {
        match self {
            Self::Partition { .. } => None,
            Self::Crash { node, .. }
            | Self::Kill { node, .. }
            | Self::SetBack { node, .. }
            | Self::Jump { node, .. } => Some(*node),
        }
    }
}

impl Scenario {
    /// A group of nobody in which nothing happens.
    const fn empty(seed: u64) -> Self {
        Self {
            seed,
            n: 0,
            k: 0,
            kept: false,
            keys: Vec::new(),
            requests: Vec::new(),
            ceremonies: Vec::new(),
            changes: Vec::new(),
            again_from: None,
            thefts: Vec::new(),
            weather: Weather { delay: 1, loss: 0, duplicates: 0 },
            distances: None,
            hosts: false,
            chain: None,
            faults: Vec::new(),
            exchanges: Vec::new(),
            renewals: Vec::new(),
            arrivals: Vec::new(),
            departures: Vec::new(),
            liars: BTreeMap::new(),
            calm: 0,
            end: 0,
            sabotage: None,
        }
    }

    /// Whether the group was founded with cards.
    pub(crate) fn is_founded(&self) -> bool {
        let lie = Behaviour::Ledger(LedgerLie::FalseMembers);
        self.liars.values().any(|liar| *liar == lie) || !self.renewals.is_empty() || self.has_other_machines()
    }

    /// Whether machines come into the group, or go.
    pub(crate) const fn has_other_machines(&self) -> bool {
        !self.exchanges.is_empty() || !self.arrivals.is_empty() || !self.departures.is_empty()
    }

    /// The highest number of a node, from the beginning to the end.
    pub(crate) fn last(&self) -> u16 {
        self.n.saturating_add(u16::try_from(self.arrivals.len()).unwrap_or(u16::MAX))
    }

    /// When a node joins; `None` of those that founded the group.
    pub(crate) fn arrival_of(&self, node: u16) -> Option<&Arrival> {
        let place = node.checked_sub(self.n)?.checked_sub(1)?;
        self.arrivals.get(usize::from(place))
    }

    /// How many machines that are lost can be stood in for at once (`spec/ledger.md`, Small groups).
    pub(crate) fn most_stand_ins(&self) -> u16 {
        let t = self.k - 1;
        if self.n > 3 * t { 0 } else { (3 * t + 1 - self.n).min(self.n.saturating_sub(t + 1)) }
    }

    /// The honest nodes, those that come later and those that leave among them.
    pub fn honest(&self) -> impl Iterator<Item = u16> {
        (1..=self.last()).filter(|node| !self.liars.contains_key(node))
    }
}
