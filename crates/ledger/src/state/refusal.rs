//! Why an action cannot follow.

use theta_names::{KeyName, KeyState};

use crate::founding::MOST_MEMBERS;

/// Why an action does not follow from the history. Nobody honest proposes such a one, unless something else was decided first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name was given to a key before; names are not given twice.
    #[error("there is, or was, a key {0}")]
    Exists(KeyName),
    /// No such key or version.
    #[error("there is no key {0}")]
    Unknown(String),
    /// The state forbids it.
    #[error("{key} is {}", state.name())]
    State {
        /// Which key or version.
        key: String,
        /// Its state.
        state: KeyState,
    },
    /// A ceremony of the version runs.
    #[error("ceremony {0} of this key runs: wait for its end, or cancel it")]
    Busy(u64),
    /// A request that was used before.
    #[error("this request began ceremony {0}: a request is used once, ask again with a new one")]
    Used(u64),
    /// A node that is no member.
    #[error("node {0} is no member of the group")]
    NoMember(u16),
    /// Holders that cannot be.
    #[error("{0}")]
    Holders(&'static str),
    /// A node without a share of the key.
    #[error("node {node} is no holder of {key}")]
    NotHolder {
        /// Which node.
        node: u16,
        /// Of which key.
        key: String,
    },
    /// No ceremony of that number runs.
    #[error("no ceremony {0} runs")]
    NoCeremony(u64),
    /// An end that the ceremony cannot have.
    #[error("the ceremony cannot end so: {0}")]
    Outcome(&'static str),
    /// A change of state that names another than the next generation.
    #[error("the key is at generation {at}: a change must name {}, this one names {named}; look at the key again", at.saturating_add(1))]
    Generation {
        /// The key's generation.
        at: u64,
        /// What the change names.
        named: u64,
    },
    /// Too few of those whose word it takes have given it, or one of them falsely.
    #[error("it takes the consent of {needed} nodes and has {got}, or one of these is false")]
    Consents {
        /// How many it takes.
        needed: usize,
        /// How many it has.
        got: usize,
    },
    /// Members who cannot be.
    #[error(transparent)]
    Member(#[from] MemberRefusal),
    /// All numbers are used up.
    #[error("there are no more {0}")]
    Exhausted(&'static str),
}

/// Why a change of members cannot follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberRefusal {
    /// The ledger began with a list of keys.
    #[error("this group was not founded with cards: its members are those of its group file")]
    NoFounding,
    /// There are too many.
    #[error("a group has {MOST_MEMBERS} members at most")]
    TooMany,
    /// Another member has that, or had that key.
    #[error("node {node} has this {what}, or had it: each member needs its own")]
    Double {
        /// The member.
        node: u16,
        /// What both have.
        what: &'static str,
    },
    /// A key of ceremonies that was a member's before.
    #[error("this key of ceremonies was a member's before: the machine needs a new one (theta node init)")]
    SpentKey,
    /// The card is of another member.
    #[error("the card is not of node {node}: it has another {what}")]
    OtherCard {
        /// The member.
        node: u16,
        /// In what it differs.
        what: &'static str,
    },
    /// The card was changed after it was made.
    #[error("the card was changed after it was made: its signature is not that of its key")]
    Signature,
    /// The card is not newer.
    #[error("node {0} has a card that was made then or later")]
    OldCard(u16),
    /// It comes with somebody's word, and that is not the one that it takes.
    #[error(
        "it does not prove itself: it takes a signature of the member's present operator, or a warrant that serves"
    )]
    Unproven,
    /// The card's time is over.
    #[error("the card has ended: ask for a new one (theta node card)")]
    Ended,
    /// The same member changes again and again.
    #[error("node {0} has changed too often by its own word alone, within a day or a month: wait")]
    TooOften(u16),
    /// The card says that it is of the future.
    #[error("the card says that it was made later than now: see whether the clock of its machine is right")]
    Future,
    /// It holds a share.
    #[error("node {node} holds a share of {keys}: reshare first, to holders without it, or destroy")]
    Holder {
        /// The member.
        node: u16,
        /// The keys.
        keys: String,
    },
    /// It takes part in a ceremony.
    #[error("node {node} takes part in ceremony {ceremony}: wait for its end, or cancel it")]
    Busy {
        /// The member.
        node: u16,
        /// The ceremony.
        ceremony: u64,
    },
    /// Too few would be left.
    #[error("it takes {k} nodes to act, and there are no more: none can leave")]
    TooFew {
        /// The group's k.
        k: usize,
    },
}
