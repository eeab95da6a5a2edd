//! Why a call fails, as hosts read it.

use cryptoki_sys::{
    CK_RV, CKR_DATA_INVALID, CKR_DEVICE_ERROR, CKR_FUNCTION_FAILED, CKR_FUNCTION_REJECTED, CKR_GENERAL_ERROR,
    CKR_KEY_FUNCTION_NOT_PERMITTED, CKR_KEY_HANDLE_INVALID, CKR_TOKEN_NOT_PRESENT,
};
use theta_client::{ClientError, OpenError};

/// A return value other than `CKR_OK` (PKCS#11 2.40 base, section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PKCS#11 return value {0:#x}")]
pub(crate) struct Refusal(pub(crate) CK_RV);

/// The result of a call.
pub(crate) type Outcome<T> = Result<T, Refusal>;

impl From<&ClientError> for Refusal {
    /// What a host is told where the group gave no signature. Hosts know few reasons, so the log has the words.
    fn from(error: &ClientError) -> Self {
        // The codes of gRPC, by the numbers that its specification gives them.
        const NOT_FOUND: i32 = 5;
        const FAILED_PRECONDITION: i32 = 9;
        Self(match error {
            ClientError::Denied { .. } | ClientError::TurnedAway { .. } => CKR_FUNCTION_REJECTED,
            ClientError::NoAnswer { .. } | ClientError::KeyDisagreement { .. } | ClientError::Undecided { .. } => {
                CKR_DEVICE_ERROR
            }
            ClientError::Refused { code, .. } => match i32::from(*code) {
                NOT_FOUND => CKR_KEY_HANDLE_INVALID,
                FAILED_PRECONDITION => CKR_KEY_FUNCTION_NOT_PERMITTED,
                _ => CKR_FUNCTION_FAILED,
            },
            ClientError::Request(_) => CKR_DATA_INVALID,
            _ => CKR_GENERAL_ERROR,
        })
    }
}

impl From<&OpenError> for Refusal {
    fn from(error: &OpenError) -> Self {
        Self(match error {
            // The system gave no thread.
            OpenError::Runtime(_) => CKR_GENERAL_ERROR,
            _ => CKR_TOKEN_NOT_PRESENT,
        })
    }
}
