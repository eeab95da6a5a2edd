//! Taproot: signatures of BIP-340 under keys of BIP-341, compatible with the crate `frost-secp256k1-tr` 3.
//!
//! Keys and signatures have x coordinates alone, each of which stands for the point of even y. A key or nonce whose point has odd
//! y is therefore negated for signing. The first byte of SEC1's compressed encoding tells: 2 is even, 3 odd.

use sha2::{Digest, Sha256};
use theta_groups::{DecodeError, Scalar, Secp256k1, Secret};
use theta_sharing::Encoded;

use super::hash::Sha256Hash;
use super::{FrostSuite, ScalarOf};
use crate::Suite;
use crate::keys::PublicKeySet;
use crate::signatures::frost::{DerivedKey, PackageError};

/// FROST(secp256k1, SHA-256) as in RFC 9591, section 6.5, with the challenge, keys and signatures of BIP-340.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secp256k1Taproot;

impl FrostSuite for Secp256k1Taproot {
    type Group = Secp256k1;
    type Hash = Sha256Hash;
    const SUITE: Suite = Suite::FrostSecp256k1Tr;
    const CONTEXT: &'static [u8] = b"FROST-secp256k1-SHA256-TR-v1";
    const STANDARD_LEN: usize = 32;

    fn challenge(commitment: &[u8], public_key: &[u8], message: &[u8]) -> ScalarOf<Self> {
        Scalar::from_uniform_bytes(&tagged_hash(b"BIP0340/challenge", &[commitment, public_key, message]))
    }

    fn stands_for_negative(encoding: &[u8]) -> bool {
        encoding.first() == Some(&3)
    }

    fn standard_encoding(encoding: &[u8]) -> &[u8] {
        encoding.get(1..).unwrap_or_default()
    }

    /// `lift_x`.
    fn decode_public_key(bytes: &[u8]) -> Result<Encoded<Secp256k1>, DecodeError> {
        if bytes.len() == Self::STANDARD_LEN {
            Encoded::decode(&[&[2], bytes].concat())
        } else {
            Err(DecodeError::Length { expected: Self::STANDARD_LEN, got: bytes.len() })
        }
    }
}

impl DerivedKey<Secp256k1Taproot> {
    /// The output key of BIP-341 whose internal key is the group's: P + g H("TapTweak", P || root) for the P of even y. The Merkle
    /// root is that of the scripts, if there are any; without it, the key's signatures are the only way to spend.
    ///
    /// # Errors
    /// [`PackageError::Tweak`] if the hash is no scalar or the key is zero, both of negligible probability.
    pub fn taproot(public: &PublicKeySet<Secp256k1>, merkle_root: Option<&[u8; 32]>) -> Result<Self, PackageError> {
        let internal_key = public.public_key_bytes();
        let root = merkle_root.map_or(&[][..], |root| &root[..]);
        let hash = tagged_hash(b"TapTweak", &[Secp256k1Taproot::standard_encoding(internal_key), root]);
        let tweak = Scalar::decode(&hash).map_err(|_| PackageError::Tweak)?;
        Self::tweaked(public, Secp256k1Taproot::stands_for_negative(internal_key), Secret::new(tweak))
    }
}

/// BIP-340: SHA-256 of the tag's hash, twice, and the message.
fn tagged_hash(tag: &[u8], message: &[&[u8]]) -> [u8; 32] {
    let tag = Sha256::digest(tag);
    let mut hash = Sha256::new().chain_update(tag).chain_update(tag);
    message.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}
