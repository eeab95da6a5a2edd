//! Headers made and recognised with a public key alone, whatever the cipher.

use super::header::{total_len, write_envelope};
use super::{Aead, CipherKey, PayloadDigest, PayloadKey};
use crate::keys::AnyPublicKey;
use crate::limits::{MAX_LABEL_LEN, check_size};
use crate::registry::Keyed;
use crate::{Purpose, RequestError, ThresholdCipher};

impl AnyPublicKey {
    /// The length in bytes of a header that [`encapsulate`](Self::encapsulate) makes with a label.
    ///
    /// # Errors
    /// [`RequestError`] if the key is not for encryption or the label is too long.
    pub fn header_len(&self, label: &[u8]) -> Result<usize, RequestError> {
        let capsule_len = self.cipher()?.capsule_len();
        check_size("label", label, MAX_LABEL_LEN)?;
        Ok(total_len(label, capsule_len))
    }

    /// The header of a payload that is sealed under `key`: wraps the key and binds all of the header. The key must be new,
    /// because all randomness follows from it.
    ///
    /// # Errors
    /// [`RequestError`] if the key is not for encryption or the label is too long.
    pub fn encapsulate(
        &self,
        key: &PayloadKey,
        aead: Aead,
        digest: &PayloadDigest,
        label: &[u8],
    ) -> Result<Vec<u8>, RequestError> {
        let cipher = self.cipher()?;
        let envelope = write_envelope(self.suite(), aead, self.key_id(), digest, label, cipher.capsule_len())?;
        Ok(cipher.encapsulate(envelope, key))
    }

    /// Whether `header` is byte for byte the honest encryption of `payload_key` to this key, so that k true shares unwrap that
    /// key and no shares unwrap another. Check this before trusting a payload key that somebody else gives: the commitment alone
    /// says less, because an encryptor can commit to a key that no shares unwrap.
    #[must_use]
    pub fn encapsulates(&self, header: &[u8], payload_key: &PayloadKey) -> bool {
        let Ok(cipher) = self.cipher() else { return false };
        let (envelope, _) = header.split_at(header.len().saturating_sub(cipher.capsule_len()));
        cipher.encapsulate(envelope.to_vec(), payload_key) == header
    }

    fn cipher(&self) -> Result<&dyn CipherKey, RequestError> {
        let other = RequestError::Purpose { key: self.suite().purpose(), asked: Purpose::Decrypt };
        self.object().cipher().ok_or(other)
    }
}

impl<S: ThresholdCipher> CipherKey for Keyed<S> {
    fn capsule_len(&self) -> usize {
        S::CAPSULE_LEN
    }

    fn encapsulate(&self, envelope: Vec<u8>, key: &PayloadKey) -> Vec<u8> {
        S::encapsulate(&self.public, envelope, key)
    }
}
