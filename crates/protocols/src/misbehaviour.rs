//! What a party can be blamed for, in whatever protocol.

use theta_groups::DecodeError;
use theta_rounds::Evidence;
use theta_schemes::signatures::frost::PackageError;

/// What is wrong with what a party sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// The bytes are no share.
    #[error("malformed share: {0}")]
    MalformedShare(DecodeError),
    /// A share, but not the one that the party owes: its verification key demands another for this request, or this session.
    #[error("share fails verification")]
    InvalidShare,
    /// What a coordinator calls the signature does not verify.
    #[error("signature does not verify")]
    InvalidSignature,
    /// A package that is no list of commitments.
    #[error("malformed message: a package is a list of commitments")]
    MalformedPackage,
    /// A set of signers that no honest coordinator chooses.
    #[error("invalid package: {0}")]
    InvalidPackage(PackageError),
    /// A package that has other commitments in the place of ours, or none.
    #[error("package without the commitments that it claims to use")]
    AlteredCommitments,
    /// More messages of a kind than an honest party has reason for, however often it restarts.
    #[error("more messages than an honest party sends")]
    TooMany,
}

impl Evidence for Misbehaviour {
    fn name(&self) -> &'static str {
        match self {
            Self::MalformedShare(_) => "malformed_share",
            Self::InvalidShare => "invalid_share",
            Self::InvalidSignature => "invalid_signature",
            Self::MalformedPackage => "malformed_message",
            Self::InvalidPackage(_) => "invalid_package",
            Self::AlteredCommitments => "altered_commitments",
            Self::TooMany => "too_many_messages",
        }
    }
}
