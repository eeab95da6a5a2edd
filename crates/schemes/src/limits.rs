//! The sizes that are accepted.

use crate::RequestError;

/// The longest message that is signed, in bytes: 64 MiB. For larger ones, sign a digest.
pub const MAX_MESSAGE_LEN: usize = 64 << 20;
/// The longest label of a ciphertext, in bytes: 64 KiB.
pub const MAX_LABEL_LEN: usize = theta_names::MOST_LABEL;
/// The longest name of a coin, in bytes: 64 KiB.
pub const MAX_COIN_NAME_LEN: usize = 64 << 10;

/// Refuses more than `limit` bytes.
pub(crate) const fn check_size(what: &'static str, bytes: &[u8], limit: usize) -> Result<(), RequestError> {
    if bytes.len() > limit { Err(RequestError::TooLarge { what, limit, got: bytes.len() }) } else { Ok(()) }
}
