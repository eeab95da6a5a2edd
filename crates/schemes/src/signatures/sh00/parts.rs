//! RSA keys from and to their parts as bytes.

use theta_groups::DecodeError;
use theta_groups::modular::{Integer, Modulus, Residue};
use theta_sharing::{ShareIndex, Threshold};

use super::{MODULUS_BITS, RsaKeyShare, RsaPublicKey, RsaScheme};
use crate::keys::{Part, PartsError, PublicKeyError, PublicParts, ShareError};

impl RsaPublicKey {
    /// Checks all that can be checked of parts from outside: N has one of the sizes and no small factor; v and the n verification
    /// keys are units; the keys lie on one polynomial of degree k - 1 at most in the exponent whose value at zero is Delta / e.
    /// Only the dealer can know that N is a product of two safe primes.
    ///
    /// # Errors
    /// The [`PublicKeyError`] that names the first part that is wrong.
    pub fn new<S: RsaScheme>(
        threshold: Threshold,
        modulus: Modulus,
        base: Residue,
        verification_keys: Vec<Residue>,
    ) -> Result<Self, PublicKeyError> {
        Self::checked(S::SUITE, threshold, modulus, base, verification_keys)
    }

    /// The key from its parts, checked.
    pub(crate) fn from_parts<S: RsaScheme>(parts: &PublicParts) -> Result<Self, PartsError> {
        let PublicParts::Rsa { threshold, modulus, verification_base, verification_keys } = parts else {
            return Err(PartsError::Kind(S::SUITE));
        };
        let modulus = decode_modulus(modulus).map_err(|error| PartsError::Encoding { part: Part::Modulus, error })?;
        let residue = |part, bytes: &[u8]| modulus.decode(bytes).map_err(|error| PartsError::Encoding { part, error });
        let base = residue(Part::VerificationBase, verification_base)?;
        let verification_keys = (1..)
            .zip(verification_keys)
            .map(|(party, bytes)| residue(Part::VerificationKey(party), bytes))
            .collect::<Result<_, _>>()?;
        Ok(Self::new::<S>(*threshold, modulus, base, verification_keys)?)
    }

    pub(super) fn to_parts(&self) -> PublicParts {
        let modulus = self.modulus();
        PublicParts::Rsa {
            threshold: self.threshold(),
            modulus: modulus.value().to_be_bytes(modulus.encoded_len()).unwrap_or_default(),
            verification_base: modulus.encode(self.verification_base()),
            verification_keys: self.verification_keys().iter().map(|key| modulus.encode(key)).collect(),
        }
    }
}

impl RsaKeyShare {
    /// The share with this secret, checked against the verification key.
    pub(crate) fn from_secret(public: &RsaPublicKey, index: ShareIndex, secret: &[u8]) -> Result<Self, ShareError> {
        let (expected, got) = (public.modulus().encoded_len(), secret.len());
        if expected != got {
            return Err(ShareError::Encoding(DecodeError::Length { expected, got }));
        }
        // Exponents are below N / 4.
        if secret.first().is_none_or(|first| *first >= 0x40) {
            return Err(ShareError::Encoding(DecodeError::NotCanonical));
        }
        let share = Self::new(*public.key_id(), index, theta_groups::Secret::new(secret.to_vec()));
        if public.matches(&share) { Ok(share) } else { Err(ShareError::Mismatch(index)) }
    }
}

/// Reads N; its size is checked before anything is computed with it.
fn decode_modulus(bytes: &[u8]) -> Result<Modulus, DecodeError> {
    let sized = MODULUS_BITS.iter().any(|bits| usize::try_from(bits / 8) == Ok(bytes.len()));
    if !sized {
        return Err(DecodeError::Length { expected: 256, got: bytes.len() });
    }
    Modulus::new(Integer::from_be_bytes(bytes)).ok_or(DecodeError::NotCanonical)
}
