//! What public keys of ciphers can do that others cannot.

use super::PayloadKey;

/// The operations of ciphers' public keys.
pub trait CipherKey {
    /// Length in bytes of the capsule, which the cipher adds to a header.
    fn capsule_len(&self) -> usize;
    /// Completes a header.
    fn encapsulate(&self, envelope: Vec<u8>, key: &PayloadKey) -> Vec<u8>;
}
