//! Inputs for contracts that verify signatures of the form [`Bn254MinSig`] with the EVM's precompiled pairing check at address
//! 0x08 (EIP-197).
//!
//! The contract keeps the public key, computes H(m) or has it from a trusted party, and asks whether
//! e(signature, -g2) e(H(m), public key) = 1. Hashing on chain must be exactly `BN254G1_XMD:SHA-256_SVDW_RO_` with the domain
//! [`SIGN_DST`](super::Form::SIGN_DST), never a multiple of the generator: everybody can compute the signature of a known multiple
//! of a signed point. The precompile refuses points outside the groups; the contract must refuse the all-zero signature and key.

use theta_groups::bn254::{G1, G2};
use theta_groups::{DecodeError, Group};

use super::{Bn254MinSig, Form};
use crate::keys::PublicKeySet;

/// The public key as EIP-197 encodes it: x and y, each with the imaginary part first.
#[must_use]
pub fn public_key(public: &PublicKeySet<G2>) -> [u8; 128] {
    G2::encode_uncompressed_evm(public.public_key())
}

/// H(m) as EIP-196 encodes it: x and y.
#[must_use]
pub fn message_point(message: &[u8]) -> [u8; 64] {
    G1::encode_uncompressed_evm(&G1::hash_to_group(Bn254MinSig::SIGN_DST, &[message]))
}

/// A signature in its standard encoding (32 bytes) as EIP-196 encodes it: x and y.
///
/// # Errors
/// Any [`DecodeError`]. The signature is not verified.
pub fn signature(compressed: &[u8]) -> Result<[u8; 64], DecodeError> {
    Ok(G1::encode_uncompressed_evm(&G1::decode(compressed)?))
}

/// The input of the precompile that answers whether `signature` (32 bytes) signs `message`: the signature, -g2, H(m)
/// and the public key, 384 bytes in all. Its answer is 1 in 32 bytes, or 0.
///
/// # Errors
/// Any [`DecodeError`], for the signature.
pub fn pairing_input(public: &PublicKeySet<G2>, message: &[u8], signature: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let signature = self::signature(signature)?;
    let minus_g2 = G2::encode_uncompressed_evm(&-G2::generator());
    Ok([&signature[..], &minus_g2, &message_point(message), &public_key(public)].concat())
}
