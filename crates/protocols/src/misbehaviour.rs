//! The reasons for which any protocol here blames a party.

use theta_groups::DecodeError;
use theta_rounds::Evidence;
use theta_schemes::signatures::frost::PackageError;

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// The bytes are no share.
    #[error("malformed share: {0}")]
    MalformedShare(DecodeError),
    /// A well-formed share that is not the one that the party owes for this request or session: it does not fit its
    /// verification key.
    #[error("share fails verification")]
    InvalidShare,
    /// A combined value that is not the one of the request.
    #[error("combined value fails verification")]
    InvalidResult,
    /// A coordinator announced a signature that does not verify.
    #[error("signature does not verify")]
    InvalidSignature,
    /// A package is no list of commitments.
    #[error("malformed message: a package is a list of commitments")]
    MalformedPackage,
    /// A package for a set of signers that no honest coordinator chooses.
    #[error("invalid package: {0}")]
    InvalidPackage(PackageError),
    /// A package without this party's commitments, or with others in their place.
    #[error("package without the commitments that it claims to use")]
    AlteredCommitments,
    /// Holders that no honest coordinator names for a program, or named out of turn.
    #[error("a program of holders that cannot run it, or out of turn")]
    InvalidProgram,
    /// A message that is none of the program that runs.
    #[error("malformed message: not what the program sends in this round")]
    MalformedRound,
    /// The program's own reasons.
    #[error("{0}")]
    Program(theta_mpc::Misbehaviour),
    /// All holders of a program that failed have shown what they know of it, and this one has said or heard there what it cannot have by its own account; or it
    /// says that a check failed where none did.
    #[error("a round of a program that is not what its own account of it makes")]
    FalseRound,
    /// It is in so many sets of signers whose shares made no signature, and of holders whose accounts of a program differ, that, with at most t liars, it must be one of them: no message shows it, but no t
    /// others are in all of these sets.
    #[error(
        "false shares or rounds: so many signatures and programs failed with it that others alone cannot be the cause"
    )]
    Eliminated,
    /// More messages of a kind than an honest party sends, however often it restarts.
    #[error("more messages than an honest party sends")]
    TooMany,
}

impl Evidence for Misbehaviour {
    fn name(&self) -> &'static str {
        match self {
            Self::MalformedShare(_) => "malformed_share",
            Self::InvalidShare => "invalid_share",
            Self::InvalidResult => "invalid_result",
            Self::InvalidSignature => "invalid_signature",
            Self::MalformedPackage => "malformed_message",
            Self::InvalidPackage(_) => "invalid_package",
            Self::AlteredCommitments => "altered_commitments",
            Self::InvalidProgram => "invalid_program",
            Self::MalformedRound => "malformed_message",
            Self::Program(misbehaviour) => misbehaviour.name(),
            Self::FalseRound => "false_round",
            Self::Eliminated => "false_shares",
            Self::TooMany => "too_many_messages",
        }
    }
}
