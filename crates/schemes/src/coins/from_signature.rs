//! Coins from unique signatures: the coin is the hash of the signature, which is its proof.

use sha2::{Digest, Sha256};
use theta_groups::DecodeError;

use crate::VerifyError;
use crate::limits::MAX_COIN_NAME_LEN;

/// The coin that a signature makes.
pub(super) fn value(signature: &[u8]) -> [u8; 32] {
    Sha256::digest(signature).into()
}

/// Verifies a coin except for its signature.
pub(super) fn check(name: &[u8], coin: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
    if coin.len() != 32 {
        return Err(DecodeError::Length { expected: 32, got: coin.len() }.into());
    }
    if name.len() > MAX_COIN_NAME_LEN || value(signature) != coin {
        return Err(VerifyError::Invalid);
    }
    Ok(())
}
