//! The key that a threshold cipher wraps.

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Secret, Transcript};

use crate::{Suite, keys::KeyId};

/// A 256-bit key, made for one payload and never used for another.
#[derive(Debug)]
pub struct PayloadKey(Secret<[u8; 32]>);

impl PayloadKey {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// A new key.
    pub fn random(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut key = Secret::new([0; Self::LEN]);
        rng.fill_bytes(key.expose_mut());
        Self(key)
    }

    /// A key that came out of a decapsulation.
    ///
    /// # Errors
    /// [`DecodeError::Length`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut key = Secret::new([0; Self::LEN]);
        if bytes.len() != Self::LEN {
            return Err(DecodeError::Length { expected: Self::LEN, got: bytes.len() });
        }
        key.expose_mut().copy_from_slice(bytes);
        Ok(Self(key))
    }

    /// The bytes.
    #[must_use]
    pub const fn secret(&self) -> &Secret<[u8; 32]> {
        &self.0
    }

    /// The commitment to this key in a header, by which a combined key is recognised. The key is uniform, so its hash reveals
    /// nothing about it; and nobody finds two keys with one commitment.
    #[must_use]
    pub fn commitment(&self, suite: Suite, key_id: &KeyId) -> [u8; 32] {
        self.finish_commitment(Self::begin_commitment(suite, key_id))
    }

    /// The part of the commitment's hash that does not depend on the payload key.
    pub(crate) fn begin_commitment(suite: Suite, key_id: &KeyId) -> Transcript {
        Transcript::new("theta/payload-key-commitment/v1")
            .with("suite", suite.name().as_bytes())
            .with("key id", key_id.as_bytes())
    }

    /// Completes the commitment's hash.
    pub(crate) fn finish_commitment(&self, begun: Transcript) -> [u8; 32] {
        begun.with("payload key", self.0.expose()).finish32()
    }

    /// The key under a mask.
    pub(crate) fn wrap(&self, mask: &[u8; 32]) -> [u8; 32] {
        let mut wrapped = *mask;
        for (byte, key) in wrapped.iter_mut().zip(self.0.expose()) {
            *byte ^= key;
        }
        wrapped
    }

    /// The key that is under a mask.
    pub(crate) fn unwrap_from(wrapped: &[u8; 32], mask: &[u8; 32]) -> Self {
        let mut key = Secret::new(*wrapped);
        for (byte, mask) in key.expose_mut().iter_mut().zip(mask) {
            *byte ^= mask;
        }
        Self(key)
    }
}
