//! Why a program ends without a result, and what it blames parties for.

use core::fmt;

use theta_rounds::{Abort, Bug, Evidence};

/// Why a program ends without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The caller gave something that does not fit; no party is to blame.
    #[error("{0}")]
    Input(&'static str),
    /// A party without which the program cannot go on was banned; its blame says why.
    #[error("a party that is needed was excluded")]
    Lost,
    /// A check failed in this phase: somebody cheated, and the messages do not show who.
    #[error("somebody cheated: {0}")]
    Cheated(&'static str),
    /// A mistake of this program.
    #[error(transparent)]
    Bug(#[from] Bug),
}

impl Stop {
    /// The reason in the words of `theta-rounds`; `remaining` of n parties are left.
    pub(crate) const fn into_abort(self, remaining: usize, needed: usize) -> Abort {
        match self {
            Self::Input(reason) => Abort::Input(reason),
            Self::Lost => Abort::TooFewHonest { remaining, needed },
            Self::Cheated(phase) => Abort::Cheated(phase),
            Self::Bug(bug) => Abort::Bug(bug),
        }
    }
}

/// What a program blames a party for. No honest party does any of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// It sent bytes that are no canonical scalar.
    NotAScalar,
    /// It sent bytes that are no canonical group element.
    NotAnElement,
    /// What it sent in an oblivious transfer fails a check of the transfer.
    FalseTransfer,
    /// It opened a commitment to something else than it had committed to.
    FalseOpening,
    /// It confirmed something else than all that have not lied have found.
    FalseConfirmation,
    /// Its share is not the one that belongs to a result which is known to be right, or to what was dealt.
    FalseShare,
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAScalar => "a scalar that is not canonical",
            Self::NotAnElement => "a group element that is not canonical",
            Self::FalseTransfer => "an oblivious transfer that fails its check",
            Self::FalseOpening => "a false opening of a commitment",
            Self::FalseConfirmation => "a confirmation of something else than was found",
            Self::FalseShare => "a share that contradicts what is known to be right",
        })
    }
}

impl Evidence for Misbehaviour {
    fn name(&self) -> &'static str {
        match self {
            Self::NotAScalar => "not_a_scalar",
            Self::NotAnElement => "not_an_element",
            Self::FalseTransfer => "false_transfer",
            Self::FalseOpening => "false_opening",
            Self::FalseConfirmation => "false_confirmation",
            Self::FalseShare => "false_share",
        }
    }
}
