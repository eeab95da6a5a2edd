//! TDH2, the threshold cipher of Shoup and Gennaro ("Securing threshold cryptosystems against chosen ciphertext
//! attack", J. Cryptology 2002, section 4.3), as a key encapsulation.
//!
//! What is encrypted is the 256-bit key of a payload. Beside it stands a commitment to that key, which lets nodes check a
//! combined result without checking a share, and clients check a node's answer. See `spec/sg02.md`.

mod capsule;
mod scheme;

use core::marker::PhantomData;
use std::sync::OnceLock;

use theta_groups::bls12_381::G1;
use theta_groups::{Group, Ristretto255};

use crate::Suite;

pub use scheme::DecapsulationRequest;

/// The cipher on group `G`.
#[derive(Clone, Copy, Debug)]
pub struct Sg02<G>(PhantomData<G>);

/// A group on which the cipher is defined.
pub trait CipherGroup: Group {
    /// The suite's name.
    const SUITE: Suite;

    /// The second generator, of which nobody knows the logarithm to the first: a hash to the group.
    fn second_generator() -> &'static Self::Element;
}

impl CipherGroup for Ristretto255 {
    const SUITE: Suite = Suite::Sg02Ristretto255;

    fn second_generator() -> &'static Self::Element {
        static ELEMENT: OnceLock<<Ristretto255 as Group>::Element> = OnceLock::new();
        let dst = b"THETA-V01-CS01-sg02-second-generator-with-ristretto255_XMD:SHA-512_R255MAP_RO_";
        ELEMENT.get_or_init(|| Self::hash_to_group(dst, &[SECOND_GENERATOR]))
    }
}

impl CipherGroup for G1 {
    const SUITE: Suite = Suite::Sg02Bls12381;

    fn second_generator() -> &'static Self::Element {
        static ELEMENT: OnceLock<<G1 as Group>::Element> = OnceLock::new();
        let dst = b"THETA-V01-CS02-sg02-second-generator-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
        ELEMENT.get_or_init(|| Self::hash_to_group(dst, &[SECOND_GENERATOR]))
    }
}

/// The message whose hash is the second generator.
const SECOND_GENERATOR: &[u8] = b"second generator";
