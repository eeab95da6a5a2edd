//! A payload key that a cipher's mask hides, and how the parts of a capsule are read.

use core::mem;

use theta_groups::{Scalar, Secret, Transcript};

use super::PayloadKey;
use crate::keys::KeyId;
use crate::{CombineError, RequestError, Suite};

/// The wrapped key with its commitment: what both papers encrypt the message to.
pub(super) struct Wrap {
    key: [u8; 32],
    commitment: [u8; 32],
    /// The commitment's hash, begun.
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

    /// Reads what begins a capsule.
    pub(super) fn read(capsule: &mut &[u8], suite: Suite, key_id: &KeyId) -> Result<Self, RequestError> {
        let (key, commitment) = (array(capsule)?, array(capsule)?);
        Ok(Self { key, commitment, begun: PayloadKey::begin_commitment(suite, key_id) })
    }

    /// The key, if it is the one that was committed to. Whether it also is what the mask of *true* shares uncovers, is
    /// for the cipher to check: an encryptor can commit to what a false share of an accomplice uncovers.
    pub(super) fn open(&self, mask: &Secret<[u8; 32]>) -> Result<PayloadKey, CombineError> {
        let key = PayloadKey::unwrap_from(&self.key, mask.expose());
        if key.finish_commitment(self.begun.clone()) == self.commitment {
            Ok(key)
        } else {
            Err(CombineError::ResultInvalid)
        }
    }
}

/// Where all randomness of an encryption comes from (Fujisaki and Okamoto, "Secure integration of asymmetric and symmetric
/// encryption schemes", Crypto 1999): the payload key, the public key (by its id) and the whole envelope. Who has the
/// payload key can repeat the encryption and see whether it was made like that.
#[derive(Clone)]
pub(super) struct Coins(Transcript);

impl Coins {
    /// What everyone knows of their hash.
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
