//! Signatures and the keys that verify them.

use theta_groups::{DecodeError, Group, Scalar};
use theta_sharing::Encoded;

use super::{ElementOf, FrostSuite, ScalarOf};
use crate::VerifyError;

/// A Schnorr signature (R, z): RFC 9591, section 5.3. It has been verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature<C: FrostSuite> {
    commitment: Encoded<C::Group>,
    response: ScalarOf<C>,
}

impl<C: FrostSuite> Signature<C> {
    pub(super) const fn new(commitment: Encoded<C::Group>, response: ScalarOf<C>) -> Self {
        Self { commitment, response }
    }

    /// R, then z, as the curve's verifiers take them: 64 bytes for Ed25519 (RFC 8032), ristretto255 and Taproot (BIP-340),
    /// 65 for P-256 and secp256k1, 114 for Ed448 (RFC 8032).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [C::standard_encoding(self.commitment.bytes()), self.response.encode().as_ref()].concat()
    }
}

/// A public key of a standard verifier: in the prime-order group, not the identity, and in suites that use only one of a point and
/// its negative, that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyingKey<C: FrostSuite> {
    element: ElementOf<C>,
    encoding: <C::Group as Group>::Encoding,
}

impl<C: FrostSuite> VerifyingKey<C> {
    /// Reads a key in its standard encoding: RFC 8032 for Ed25519 and Ed448, 32 bytes of BIP-340 for Taproot, the group's
    /// encoding for the others.
    ///
    /// # Errors
    /// Any [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let key = C::decode_public_key(bytes)?;
        Ok(Self::normalised(*key.element(), key.bytes()).0)
    }

    /// The key of this element or of its negative, and whether it is the negative.
    pub(super) fn normalised(element: ElementOf<C>, encoding: &[u8]) -> (Self, bool) {
        let negated = C::stands_for_negative(encoding);
        let element = if negated { -element } else { element };
        let encoding = match encoding.try_into() {
            Ok(encoding) if !negated => encoding,
            _ => C::Group::encode(&element),
        };
        (Self { element, encoding }, negated)
    }

    /// The standard encoding.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        C::standard_encoding(self.encoding.as_ref())
    }

    /// The group's encoding, which binding factors hash.
    pub(super) fn group_encoding(&self) -> &[u8] {
        self.encoding.as_ref()
    }

    /// Whether a signature is valid, as strictly as the curve's verifiers are.
    ///
    /// R' = g z - c * key is computed, and its encoding must equal that of R, byte for byte. So an R is refused that is not
    /// canonical, has a component of small order, or is the identity; z must be canonical. For Ed25519 and Ed448 that is the
    /// cofactorless verification of RFC 8032, sections 5.1.7 and 5.2.7, with all optional checks, for Taproot the verification
    /// of BIP-340.
    ///
    /// # Errors
    /// [`VerifyError::Malformed`] for lengths and unreduced scalars, else [`VerifyError::Invalid`].
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
        let expected = C::STANDARD_LEN + ScalarOf::<C>::ENCODED_LEN;
        let wrong_length = DecodeError::Length { expected, got: signature.len() };
        if signature.len() != expected {
            return Err(wrong_length.into());
        }
        let (commitment, response) = signature.split_at_checked(C::STANDARD_LEN).ok_or(wrong_length)?;
        let response = ScalarOf::<C>::decode(response)?;
        let recomputed = self.commitment_for(&response, &C::challenge(commitment, self.bytes(), message));
        let encoding = C::Group::encode(&recomputed);
        let valid = !C::Group::is_identity(&recomputed)
            && !C::stands_for_negative(encoding.as_ref())
            && C::standard_encoding(encoding.as_ref()) == commitment;
        if valid { Ok(()) } else { Err(VerifyError::Invalid) }
    }

    /// g z - c * key: the R of a true signature.
    pub(super) fn commitment_for(&self, response: &ScalarOf<C>, challenge: &ScalarOf<C>) -> ElementOf<C> {
        C::Group::vartime_double_mul(response, &self.element, &-*challenge)
    }
}
