//! Payload keys hidden by a cipher's mask, the randomness of encryption, and the reading of capsules' parts.

use core::mem;

use theta_groups::{Scalar, Secret, Transcript};

use super::PayloadKey;
use crate::keys::KeyId;
use crate::{CombineError, RequestError, Suite};

/// The wrapped key with its commitment: the encrypted message of both papers.
pub(super) struct Wrap {
    key: [u8; 32],
    commitment: [u8; 32],
    /// The part of the commitment's hash that does not depend on the key.
    begun: Transcript,
}

impl Wrap {
    /// Length of the encoding in bytes.
    pub(super) const ENCODED_LEN: usize = 64;

    /// Hides `key` behind `mask` and commits to it.
    pub(super) fn seal(key: &PayloadKey, mask: &Secret<[u8; 32]>, suite: Suite, key_id: &KeyId) -> [u8; 64] {
        let commitment = key.commitment(suite, key_id);
        let mut encoding = [0; Self::ENCODED_LEN];
        let (first, second) = encoding.split_at_mut(32);
        first.copy_from_slice(&key.wrap(mask.expose()));
        second.copy_from_slice(&commitment);
        encoding
    }

    /// Reads the first part of a capsule.
    pub(super) fn read(capsule: &mut &[u8], suite: Suite, key_id: &KeyId) -> Result<Self, RequestError> {
        let (key, commitment) = (array(capsule)?, array(capsule)?);
        Ok(Self { key, commitment, begun: PayloadKey::begin_commitment(suite, key_id) })
    }

    /// The key, if it is the one that was committed to. The cipher must check in addition that the mask came from *true* shares:
    /// an encryptor can commit to the key that an accomplice's false share uncovers.
    pub(super) fn open(&self, mask: &Secret<[u8; 32]>) -> Result<PayloadKey, CombineError> {
        let key = PayloadKey::unwrap_from(&self.key, mask.expose());
        if key.finish_commitment(self.begun.clone()) == self.commitment {
            Ok(key)
        } else {
            Err(CombineError::ResultInvalid)
        }
    }
}

/// The randomness of an encryption, derived from the payload key, the public key (by its id) and the whole envelope (Fujisaki and
/// Okamoto, "Secure integration of asymmetric and symmetric encryption schemes", CRYPTO 1999). Everyone who has the payload key
/// can repeat the encryption and check that it was made so.
#[derive(Clone)]
pub(super) struct Coins(Transcript);

impl Coins {
    /// The public part of the hash.
    pub(super) fn begin(suite: Suite, key_id: &KeyId, envelope: &[u8]) -> Self {
        Self(
            Transcript::new("theta/cipher/coins/v1")
                .with("suite", suite.name().as_bytes())
                .with("key id", key_id.as_bytes())
                .with("envelope", envelope),
        )
    }

    /// The scalar for one use.
    pub(super) fn scalar<S: Scalar>(&self, key: &PayloadKey, purpose: &'static str) -> Secret<S> {
        let transcript = self.0.clone().with("payload key", key.secret().expose());
        Secret::new(transcript.with("purpose", purpose.as_bytes()).challenge())
    }
}

/// The next `len` bytes.
pub(super) fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], RequestError> {
    let (head, tail) = mem::take(rest).split_at_checked(len).ok_or(RequestError::Header("it is cut short"))?;
    *rest = tail;
    Ok(head)
}

fn array(rest: &mut &[u8]) -> Result<[u8; 32], RequestError> {
    take(rest, 32)?.try_into().map_err(|_| RequestError::Header("it is cut short"))
}
