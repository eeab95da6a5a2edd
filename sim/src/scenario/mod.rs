//! What happens in a run, as data: drawn from a seed, or written down by a test.

mod draw;

use std::collections::{BTreeMap, BTreeSet};

use theta_names::KeyState;
use theta_schemes::Suite;

use crate::byzantine::Behaviour;

pub(crate) use draw::{below, is_rsa};

/// A whole run but for what its generator decides on the way: times in milliseconds, nodes by number.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Everything random follows from it.
    pub seed: u64,
    /// How many nodes there are.
    pub n: u16,
    /// How many shares it takes.
    pub k: u16,
    /// Whether keys are kept by custodians, so that there can be ceremonies, or fixed.
    pub kept: bool,
    /// The keys that were dealt before.
    pub keys: Vec<HeldKey>,
    /// What clients ask for.
    pub requests: Vec<Asked>,
    /// What becomes of keys.
    pub ceremonies: Vec<Planned>,
    /// What becomes of the states of keys, in this order.
    pub changes: Vec<StateWish>,
    /// From when on somebody sends all nodes, once a second, all requests of ceremonies and changes of states that were made.
    pub again_from: Option<u64>,
    /// What a thief copies who records all that nodes say to each other.
    pub thefts: Vec<Theft>,
    /// What the network does all the time.
    pub weather: Weather,
    /// What goes wrong besides.
    pub faults: Vec<Fault>,
    /// Nodes that do not what they should: k - 1 at most.
    pub liars: BTreeMap<u16, Behaviour>,
    /// From when on nothing goes wrong any more.
    pub calm: u64,
    /// By when all must have ended.
    pub end: u64,
    /// A bug that an honest node has, for tests of the tests.
    pub sabotage: Option<Sabotage>,
}

/// A dealt key.
#[derive(Clone, Debug)]
pub struct HeldKey {
    /// Its suite; the suite's name is its name.
    pub suite: Suite,
    /// Nodes whose policies let nobody use it.
    pub refused_by: BTreeSet<u16>,
    /// Whether a signing rule counts slots.
    pub slots: bool,
    /// Whether two of three approvers must consent to each use.
    pub consents: bool,
    /// Whether a node lets it be used twice at once and twice a second, and no more often.
    pub rated: bool,
    /// A node that has lost its share.
    pub lost_by: Option<u16>,
}

/// How many uses of a rated key may come at once.
pub(crate) const BURST: u64 = 2;
/// How many of them a second brings.
pub(crate) const PER_SECOND: u64 = 2;
/// Who may consent.
pub(crate) const APPROVERS: u8 = 3;
/// How many must.
pub(crate) const NEEDED: usize = 2;

/// A request, made to all nodes.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When.
    pub at: u64,
    /// Which of [`Scenario::keys`].
    pub key: usize,
    /// The message, coin or plaintext.
    pub text: String,
    /// For which slot.
    pub slot: Option<u64>,
    /// The nodes that are asked later than the others.
    pub later_at: BTreeSet<u16>,
    /// What comes with it.
    pub consents: Vec<Consent>,
    /// The nodes that it reaches without them.
    pub bare_at: BTreeSet<u16>,
}

impl Asked {
    /// Whether as many approvers as it takes have consented, as a node should see it.
    #[must_use]
    pub fn is_consented(&self, node: u16) -> bool {
        let sound = |consent: &&Consent| consent.fault.is_none() && consent.approver < APPROVERS;
        let approvers: BTreeSet<u8> = self.consents.iter().filter(sound).map(|consent| consent.approver).collect();
        approvers.len() >= NEEDED && !self.bare_at.contains(&node)
    }
}

/// A consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consent {
    /// Whose: the three of the policy are 0, 1 and 2, others are nobody.
    pub approver: u8,
    /// Why it is none.
    pub fault: Option<ConsentFault>,
}

/// What can be wrong with a consent.
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
    /// It was valid once.
    Expired,
    /// It will be valid.
    Early,
    /// It is valid for longer than a consent may be.
    TooLong,
    /// Its signature is false.
    Forged,
}

/// A ceremony.
#[derive(Clone, Debug)]
pub struct Planned {
    /// When.
    pub at: u64,
    /// What for.
    pub aim: Aim,
}

/// A change of a key's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateWish {
    /// When.
    pub at: u64,
    /// Which of [`Scenario::keys`].
    pub key: usize,
    /// What it is to be.
    pub state: KeyState,
}

/// A node is stolen whole, and goes on honestly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theft {
    /// When.
    pub at: u64,
    /// Which.
    pub node: u16,
}

/// What a ceremony is for; keys by their place in [`Scenario::keys`].
#[derive(Clone, Debug)]
pub enum Aim {
    /// A new key for all nodes.
    Create(Suite),
    /// A new version.
    Rotate(usize),
    /// New shares.
    Refresh(usize),
    /// New shares for these holders.
    Reshare(usize, u16, Vec<u16>),
    /// The lost share of this node.
    Recover(usize, u16),
}

/// What the network does to each message.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// The longest delay; each message has its own, so they overtake each other.
    pub delay: u64,
    /// How many of a thousand are lost.
    pub loss: u64,
    /// How many of a thousand arrive twice.
    pub duplicates: u64,
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub enum Fault {
    /// These nodes and the others do not hear each other for a while.
    Partition {
        /// From when.
        at: u64,
        /// Until when.
        until: u64,
        /// One side.
        side: BTreeSet<u16>,
    },
    /// A node loses power, after so many more writes to its disk if it is writing, and starts again.
    Crash {
        /// When.
        at: u64,
        /// When it starts again.
        until: u64,
        /// Which.
        node: u16,
        /// How many writes its disk still takes from half a second before.
        writes: u64,
    },
    /// A node's disk is exchanged for an older copy.
    SetBack {
        /// When the copy was taken; `None` for a disk with nothing but the node's identity.
        copied: Option<u64>,
        /// When the node loses power, and its disk is exchanged.
        at: u64,
        /// When it starts again.
        until: u64,
        /// Which.
        node: u16,
        /// When a person says that the store is meant, and starts the node again.
        confirmed: Option<u64>,
    },
    /// A node's wall clock is set, and its process stood still for a while.
    Jump {
        /// When.
        at: u64,
        /// Which.
        node: u16,
        /// By how many seconds the wall clock is set.
        seconds: i64,
        /// For how many milliseconds it stood still.
        pause: u64,
    },
}

/// Bugs to be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A node does not ask its policy.
    NoPolicy,
    /// A node forgets its slots when it starts again.
    ForgetsSlots,
    /// A node gives its share of a signature without waiting for the certificate of its slot.
    NoCertificates,
    /// A node draws the same nonces in each life.
    SameNonces,
    /// A node tells its clients something else than the others.
    OtherResult,
    /// A node hears nothing from half a second on.
    Deaf,
    /// A node reports another end of ceremonies.
    OtherOutcome,
    /// A node takes on more than it should.
    NoLimits,
    /// A node's policy lets a key be used at any rate.
    NoRates,
    /// A node takes its store for the latest, whatever its peers say.
    TrustsItself,
    /// A node's policy asks for no consents.
    NoConsents,
}

impl Scenario {
    /// The honest nodes.
    pub fn honest(&self) -> impl Iterator<Item = u16> {
        (1..=self.n).filter(|node| !self.liars.contains_key(node))
    }
}
