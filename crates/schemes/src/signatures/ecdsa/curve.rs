//! The curves, each with its hash function.

use core::fmt::Debug;

use theta_groups::{Group, P256, Secp256k1};

use crate::Suite;
use crate::keys::KeyGroup;

/// A curve of ECDSA. Elements are encoded in 33 bytes as SEC1 compresses them (section 2.3.3), scalars in 32, big-endian. Messages are
/// hashed by SHA-256, whose digests are as long as the group's order, so that none is cut.
pub trait EcdsaCurve: Copy + Debug + Eq + Send + Sync + 'static {
    /// The group of keys and nonces.
    type Group: KeyGroup + Group<Encoding = [u8; 33]>;
    /// The suite's name for keys.
    const SUITE: Suite;
    /// Whether of the two signatures (r, s) and (r, q - s), which are valid whenever one of them is, only the one with the lower s
    /// counts. Otherwise anyone makes the other of the one.
    const LOW_S: bool;

    /// A public key as SEC1 writes it without compression: 4, x, y. `None` for the identity.
    fn uncompressed(element: &<Self::Group as Group>::Element) -> Option<[u8; 65]>;
}

/// P-256 with SHA-256 (FIPS 186-5; RFC 7518 calls it ES256). Either s counts, as the standard has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P256Sha256;

impl EcdsaCurve for P256Sha256 {
    type Group = P256;
    const SUITE: Suite = Suite::EcdsaP256;
    const LOW_S: bool = false;

    fn uncompressed(element: &<P256 as Group>::Element) -> Option<[u8; 65]> {
        P256::encode_uncompressed(element)
    }
}

/// secp256k1 (SEC2) with SHA-256 (RFC 8812 calls it ES256K). The lower s counts alone: so Bitcoin (BIP-146) and Ethereum (EIP-2) have
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secp256k1Sha256;

impl EcdsaCurve for Secp256k1Sha256 {
    type Group = Secp256k1;
    const SUITE: Suite = Suite::EcdsaSecp256k1;
    const LOW_S: bool = true;

    fn uncompressed(element: &<Secp256k1 as Group>::Element) -> Option<[u8; 65]> {
        Secp256k1::encode_uncompressed(element)
    }
}
