//! The suites of RFC 9591, section 6.

use theta_groups::{Ed448, Ed25519, P256, Ristretto255, Secp256k1};

use super::hash::{Sha256Hash, Sha512Hash, Shake256Hash, SuiteHash};
use super::{FrostSuite, ScalarOf};
use crate::Suite;

/// FROST(Ed25519, SHA-512), section 6.1: signatures of RFC 8032.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ed25519Sha512;

impl FrostSuite for Ed25519Sha512 {
    type Group = Ed25519;
    type Hash = Sha512Hash;
    const SUITE: Suite = Suite::FrostEd25519;
    const CONTEXT: &'static [u8] = b"FROST-ED25519-SHA512-v1";

    fn challenge(commitment: &[u8], public_key: &[u8], message: &[u8]) -> ScalarOf<Self> {
        Sha512Hash::to_scalar(b"", b"", &[commitment, public_key, message])(&[])
    }
}

/// FROST(ristretto255, SHA-512): section 6.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ristretto255Sha512;

impl FrostSuite for Ristretto255Sha512 {
    type Group = Ristretto255;
    type Hash = Sha512Hash;
    const SUITE: Suite = Suite::FrostRistretto255;
    const CONTEXT: &'static [u8] = b"FROST-RISTRETTO255-SHA512-v1";
}

/// FROST(Ed448, SHAKE256), section 6.3: signatures of RFC 8032, without a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ed448Shake256;

impl FrostSuite for Ed448Shake256 {
    type Group = Ed448;
    type Hash = Shake256Hash;
    const SUITE: Suite = Suite::FrostEd448;
    const CONTEXT: &'static [u8] = b"FROST-ED448-SHAKE256-v1";

    fn challenge(commitment: &[u8], public_key: &[u8], message: &[u8]) -> ScalarOf<Self> {
        // dom4 of no prehash and an empty context.
        Shake256Hash::to_scalar(b"SigEd448", &[0, 0], &[commitment, public_key, message])(&[])
    }
}

/// FROST(P-256, SHA-256): section 6.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P256Sha256;

impl FrostSuite for P256Sha256 {
    type Group = P256;
    type Hash = Sha256Hash;
    const SUITE: Suite = Suite::FrostP256;
    const CONTEXT: &'static [u8] = b"FROST-P256-SHA256-v1";
}

/// FROST(secp256k1, SHA-256): section 6.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secp256k1Sha256;

impl FrostSuite for Secp256k1Sha256 {
    type Group = Secp256k1;
    type Hash = Sha256Hash;
    const SUITE: Suite = Suite::FrostSecp256k1;
    const CONTEXT: &'static [u8] = b"FROST-secp256k1-SHA256-v1";
}
