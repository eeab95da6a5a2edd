//! TDH2, the threshold cipher of Shoup and Gennaro ("Securing threshold cryptosystems against chosen ciphertext
//! attack", J. Cryptology 2002, section 4.3), as a key encapsulation.
//!
//! The plaintext is the 256-bit key of a payload and a commitment to that key, which lets nodes check a combined result without
//! checking shares, and clients check a node's answer. See `spec/sg02.md`.

mod capsule;
mod scheme;

use core::marker::PhantomData;
use std::sync::OnceLock;

use theta_groups::{Ed25519, FixedBase, Group, P256, Ristretto255, Secp256k1, bls12_381, bn254};

use crate::Suite;
use crate::keys::KeyGroup;

pub use scheme::DecapsulationRequest;

/// The cipher on group `G`.
#[derive(Clone, Copy, Debug)]
pub struct Sg02<G>(PhantomData<G>);

/// A group on which the cipher is defined.
pub trait CipherGroup: KeyGroup {
    /// The suite's name.
    const SUITE: Suite;
    /// The suite's code in headers.
    const HEADER_CODE: u8;

    /// The second generator, a hash to the group, so that nobody knows its logarithm to the first.
    fn second_generator() -> &'static Self::Element {
        Self::second_base().element()
    }

    /// The second generator with the table of its multiples, which all keys share.
    fn second_base() -> &'static FixedBase<Self>;
}

/// The cipher's suites, each with its code in headers and the domain of the hash that makes its second generator.
macro_rules! cipher_groups {
    ($($group:ty, $suite:ident, $code:literal, $dst:literal;)*) => {
        $(impl CipherGroup for $group {
            const SUITE: Suite = Suite::$suite;
            const HEADER_CODE: u8 = $code;

            fn second_base() -> &'static FixedBase<Self> {
                static BASE: OnceLock<FixedBase<$group>> = OnceLock::new();
                BASE.get_or_init(|| FixedBase::new(Self::hash_to_group($dst, &[SECOND_GENERATOR])))
            }
        })*
    };
}

cipher_groups! {
    Ristretto255, Sg02Ristretto255, 1,
        b"THETA-V01-CS01-sg02-second-generator-with-ristretto255_XMD:SHA-512_R255MAP_RO_";
    bls12_381::G1, Sg02Bls12381, 2,
        b"THETA-V01-CS02-sg02-second-generator-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
    Ed25519, Sg02Ed25519, 5,
        b"THETA-V01-CS05-sg02-second-generator-with-edwards25519_XMD:SHA-512_ELL2_RO_";
    bn254::G1, Sg02Bn254, 6,
        b"THETA-V01-CS06-sg02-second-generator-with-BN254G1_XMD:SHA-256_SVDW_RO_";
    P256, Sg02P256, 7,
        b"THETA-V01-CS07-sg02-second-generator-with-P256_XMD:SHA-256_SSWU_RO_";
    Secp256k1, Sg02Secp256k1, 8,
        b"THETA-V01-CS08-sg02-second-generator-with-secp256k1_XMD:SHA-256_SSWU_RO_";
}

/// The message whose hash is the second generator.
const SECOND_GENERATOR: &[u8] = b"second generator";
