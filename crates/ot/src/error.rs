//! What can go wrong: the other party's doing, and our caller's.

use theta_groups::DecodeError;

/// What the other party did. Whoever sees one of these ends the session with that party: everything made in it is dropped.
///
/// None says which bit of a secret the other party had guessed wrong. That a check failed is all that it may learn, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misbehaviour {
    /// A message has another length than the parameters of the session give it.
    #[error("a message of {got} bytes where {expected} are due")]
    Length {
        /// Its length in bytes.
        got: usize,
        /// The length that is due.
        expected: usize,
    },
    /// An element of a base OT is none of the group, or the identity.
    #[error("the element of base OT {index}: {why}")]
    Element {
        /// Which base OT, from 0.
        index: usize,
        /// What is wrong with it.
        why: DecodeError,
    },
    /// An integer is not below the order of the group.
    #[error("correction {index} is no canonical scalar")]
    Scalar {
        /// Which one of the message, from 0.
        index: usize,
    },
    /// The trees of seeds do not have the leaves that their check says.
    #[error("the trees of seeds fail their check")]
    Trees,
    /// The extension's corrections do not come from one vector of choices.
    #[error("the corrections of the extension fail their check")]
    Correlation,
}

/// What our caller did wrong. No message of another party causes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// Sender and receiver are the same party.
    #[error("a party transfers nothing to itself")]
    OneParty,
    /// The field size is not one that is supported.
    #[error("k is {0}; 1 to 8 are supported")]
    FieldSize(u8),
    /// There are more, or fewer, items than a call can take.
    #[error("{got} items in one call; {most} at most, and one at least")]
    Count {
        /// How many there were.
        got: usize,
        /// How many there may be.
        most: usize,
    },
    /// Transfers and what is to be done with them do not have the same number.
    #[error("{got} transfers where {needed} are needed")]
    Transfers {
        /// How many there are.
        got: usize,
        /// How many it takes.
        needed: usize,
    },
    /// The choices with which the transfers were made are not those of the input.
    #[error("the transfers were made with other choices")]
    Choices,
    /// A round was given messages of other parties than those of the run.
    #[error("a round takes one message of each other party")]
    Parties,
    /// The session has made as many transfers as its bounds of security allow.
    #[error("the session is used up; set up a new one")]
    UsedUp,
}

/// Why a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The other party misbehaved.
    #[error("the other party: {0}")]
    Theirs(#[from] Misbehaviour),
    /// The caller made a mistake.
    #[error("misuse: {0}")]
    Ours(#[from] Misuse),
}

/// Whether a message has the length that is due.
pub(crate) const fn expect_len(bytes: &[u8], expected: usize) -> Result<(), Misbehaviour> {
    if bytes.len() == expected { Ok(()) } else { Err(Misbehaviour::Length { got: bytes.len(), expected }) }
}
