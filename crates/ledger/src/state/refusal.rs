//! Why an action cannot follow.

use theta_names::{KeyName, KeyState};

use super::MemberRefusal;

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
