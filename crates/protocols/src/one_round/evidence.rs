//! What a sender can be blamed for.

use theta_groups::DecodeError;
use theta_rounds::Evidence;

/// What is wrong with a party's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misbehaviour {
    /// The bytes are no share.
    #[error("malformed share: {0}")]
    MalformedShare(DecodeError),
    /// A share, but not the one that the party's verification key demands for this request.
    #[error("share fails verification")]
    InvalidShare,
}

impl Evidence for Misbehaviour {
    fn name(&self) -> &'static str {
        match self {
            Self::MalformedShare(_) => "malformed_share",
            Self::InvalidShare => "invalid_share",
        }
    }
}
