//! Why an orchestrator cannot start, and why it refuses orders.

use std::io;

use theta_custody::{CeremonyError, ChangeError, MembersError};

use crate::ConfigError;

/// Why an orchestrator cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A limit is out of its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The keys belong to another node.
    #[error(
        "the key shares are those of node {keys}, this is node {local}: take the keys that were dealt to node {local}"
    )]
    WrongNode {
        /// The node to which the shares belong.
        keys: u16,
        /// This node.
        local: u16,
    },
    /// Used nonces cannot be recorded.
    #[error(
        "burn_nonces puts on record in the node's store which nonces are used up, and this node has no store: take it out of \
         [limits], or let the node keep its keys in a store"
    )]
    NoStore,
    /// The operating system gives no randomness.
    #[error("the operating system gives no randomness: {0}")]
    Entropy(String),
    /// The operating system gives no thread.
    #[error("cannot start a CPU thread: {0}")]
    Thread(io::Error),
}

/// Why a computation did not run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// Too many computations wait already.
    #[error("this node is at its limit of {0}: try again later or ask another node")]
    Overloaded(&'static str),
    /// The node is stopping.
    #[error("this node is shutting down")]
    ShuttingDown,
    /// A mistake of this program.
    #[error("bug: the computation panicked; please report it")]
    Panicked,
}

/// Why a ceremony does not begin here.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The custodian's refusal.
    #[error(transparent)]
    Ceremony(#[from] CeremonyError),
    /// There is no custodian.
    #[error(transparent)]
    NoCustodian(#[from] NoCustodian),
}

/// Why a key's state is not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeKeyError {
    /// The custodian's refusal.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// There is no custodian.
    #[error(transparent)]
    NoCustodian(#[from] NoCustodian),
}

/// Why a change of the members, or a warrant, is not looked at.
#[derive(Debug, thiserror::Error)]
pub enum ChangeMembersError {
    /// The custodian's refusal.
    #[error(transparent)]
    Members(#[from] MembersError),
    /// There is no custodian.
    #[error(transparent)]
    NoCustodian(#[from] NoCustodian),
}

/// Why no custodian answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCustodian {
    /// The node has no store.
    #[error("this node's keys are fixed: it keeps no store to change them in")]
    Fixed,
    /// The node is stopping.
    #[error("this node is shutting down")]
    ShuttingDown,
}
