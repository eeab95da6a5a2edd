//! What is wrong with a card or a founding, in words for those who put a group together.

use theta_names::{AddressError, NodeNameError, codec::DecodeError};

/// Why a card or a founding was refused. Each message is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoundingError {
    /// It is damaged, or something else.
    #[error("it is damaged, or something else: {0}")]
    Encoding(#[from] DecodeError),
    /// The text has no block of that kind, or one that is cut or damaged.
    #[error("{0}")]
    Text(&'static str),
    /// It is longer than any there can be.
    #[error("it has more than {0} bytes, and nothing of its kind has as many")]
    TooLong(usize),
    /// A node's name.
    #[error(transparent)]
    Name(#[from] NodeNameError),
    /// A group's name.
    #[error("the group's name {0:?} is not allowed: use 1 to 64 of a-z A-Z 0-9 . _ -, the first a letter or digit")]
    GroupName(String),
    /// An address.
    #[error("the address {address:?} is not one: {reason}")]
    Address {
        /// As given.
        address: String,
        /// What is wrong with it.
        reason: AddressError,
    },
    /// One address for nodes and clients.
    #[error("the card of {0:?} has one address for nodes and for clients: each needs its own")]
    OneAddress(String),
    /// One key for a node and its operator.
    #[error("the card of {0:?} has one key for the node and for its operator: the operator's is kept off the node")]
    OneKey(String),
    /// A card that ends before it begins.
    #[error("the card of {0:?} ends before it was made")]
    Period(String),
    /// Nobody, or more than there may be.
    #[error("a group has 1 to {most} members, not {got}", most = super::MOST_MEMBERS)]
    Members {
        /// How many there are.
        got: usize,
    },
    /// k is not between 1 and n.
    #[error("a threshold of {k} is not possible with {n} members: it is between 1 and {n}")]
    Threshold {
        /// As given.
        k: u16,
        /// Number of members.
        n: usize,
    },
    /// The signature is not that of the card's key: something was changed.
    #[error("the card of {0:?} was changed after it was made: its signature is not that of its key; ask for it again")]
    Signature(String),
    /// Two members share something that each needs for itself.
    #[error("{first:?} and {second:?} have the same {what}: each member needs its own, and gives one card")]
    Double {
        /// One of them.
        first: String,
        /// The other one.
        second: String,
        /// What they share.
        what: &'static str,
    },
    /// The members are not in their order.
    #[error("its members are not in the order of their names")]
    Order,
    /// The card's time is over.
    #[error("the card of {0:?} has ended: it was made to be used within its time; ask for a new one (theta node card)")]
    Ended(String),
}
