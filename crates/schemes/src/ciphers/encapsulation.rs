//! Headers made and recognised with a public key alone, whatever the cipher.

use super::header::{total_len, write_envelope};
use super::{Aead, PayloadDigest, PayloadKey};
use crate::keys::AnyPublicKey;
use crate::statement::{MAX_LABEL_LEN, check_size};
use crate::{Purpose, RequestError, ThresholdCipher, with_key};

impl AnyPublicKey {
    /// The length in bytes of a header that [`encapsulate`](Self::encapsulate) makes with a label.
    ///
    /// # Errors
    /// [`RequestError`] if the key is not for encryption or the label is too long.
    pub fn header_len(&self, label: &[u8]) -> Result<usize, RequestError> {
        let capsule_len = capsule_len(self)?;
        check_size("label", label, MAX_LABEL_LEN)?;
        Ok(total_len(label, capsule_len))
    }

    /// The header of a payload that is sealed under `key`: wraps the key and binds all that the header says. The key must
    /// be new, since all randomness follows from it.
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
        let envelope = write_envelope(self.suite(), aead, self.key_id(), digest, label, capsule_len(self)?)?;
        complete(self, envelope, key)
    }

    /// Whether `header` is what an honest encryption of `payload_key` to this key makes, byte for byte: then k true shares
    /// unwrap that key and nothing else does. Whoever is told a payload key checks this before believing it: a commitment
    /// that fits says less, since the encryptor may have committed to a key that no shares unwrap.
    #[must_use]
    pub fn encapsulates(&self, header: &[u8], payload_key: &PayloadKey) -> bool {
        let Ok(capsule_len) = capsule_len(self) else { return false };
        let Some((envelope, _)) = header.split_at_checked(header.len().saturating_sub(capsule_len)) else {
            return false;
        };
        complete(self, envelope.to_vec(), payload_key).is_ok_and(|honest| honest == header)
    }
}

fn capsule_len(public: &AnyPublicKey) -> Result<usize, RequestError> {
    with_key!(public, |key: S| if cipher { Ok(S::CAPSULE_LEN) } else { Err(not_a_cipher(public)) })
}

fn complete(public: &AnyPublicKey, envelope: Vec<u8>, payload_key: &PayloadKey) -> Result<Vec<u8>, RequestError> {
    with_key!(public, |key: S| if cipher {
        Ok(S::encapsulate(key, envelope, payload_key))
    } else {
        Err(not_a_cipher(public))
    })
}

fn not_a_cipher(public: &AnyPublicKey) -> RequestError {
    RequestError::Purpose { key: public.suite().purpose(), asked: Purpose::Decrypt }
}
