//! The suites: a group, a hash, and the encodings of the curve's verifiers.

mod hash;
mod rfc9591;
mod taproot;

use core::fmt::Debug;

use theta_groups::{DecodeError, Group};
use theta_sharing::Encoded;

use crate::Suite;
use crate::keys::KeyGroup;

pub use hash::SuiteHash;
pub use rfc9591::{Ed448Shake256, Ed25519Sha512, P256Sha256, Ristretto255Sha512, Secp256k1Sha256};
pub use taproot::Secp256k1Taproot;

/// A suite's scalars.
pub(crate) type ScalarOf<C> = <<C as FrostSuite>::Group as Group>::Scalar;
/// A suite's elements.
pub(crate) type ElementOf<C> = <<C as FrostSuite>::Group as Group>::Element;

/// A ciphersuite as in RFC 9591, section 6.
pub trait FrostSuite: Copy + Debug + Eq + Send + Sync + 'static {
    /// The group of keys and commitments.
    type Group: KeyGroup;
    /// The family of hash functions.
    type Hash: SuiteHash;
    /// The suite's name for keys.
    const SUITE: Suite;
    /// `contextString`, with which every hash but the challenge of standard signatures begins.
    const CONTEXT: &'static [u8];

    /// H2: the challenge c of a signature. `commitment` and `public_key` are [`FrostSuite::standard_encoding`]s.
    fn challenge(commitment: &[u8], public_key: &[u8], message: &[u8]) -> ScalarOf<Self> {
        Self::Hash::to_scalar(Self::CONTEXT, b"chal", &[commitment, public_key, message])(&[])
    }

    /// Whether the element of this encoding is replaced by its negative in keys and signatures, as points of odd y are in
    /// BIP-340.
    fn stands_for_negative(_encoding: &[u8]) -> bool {
        false
    }

    /// The part of an element's encoding that is in public keys and signatures of the suite.
    fn standard_encoding(encoding: &[u8]) -> &[u8] {
        encoding
    }

    /// Length of a [`FrostSuite::standard_encoding`] in bytes.
    const STANDARD_LEN: usize = <Self::Group as Group>::ENCODED_LEN;

    /// Reads a public key from its standard encoding.
    ///
    /// # Errors
    /// Any [`DecodeError`].
    fn decode_public_key(bytes: &[u8]) -> Result<Encoded<Self::Group>, DecodeError> {
        Encoded::decode(bytes)
    }
}
