//! The threshold cipher of Baek and Zheng ("Simple and efficient threshold cryptosystem from the gap Diffie-Hellman
//! group", GLOBECOM 2003), as a key encapsulation on pairings of type 3.
//!
//! The plaintext is the 256-bit key of a payload and a commitment to that key, which lets nodes check a combined result without
//! checking shares, and clients check a node's answer. Shares are single points of G1 and need no proofs, because a pairing
//! verifies them. See `spec/bz03.md`.

mod capsule;
mod scheme;

use core::marker::PhantomData;

use theta_groups::Pairing;
use theta_groups::bls12_381::Bls12_381;
use theta_groups::bn254::Bn254;

use crate::Suite;
use crate::keys::KeyGroup;

pub use scheme::DecapsulationRequest;

/// The cipher on the groups of pairing `P`. Keys and shares are in its G1.
#[derive(Clone, Copy, Debug)]
pub struct Bz03<P>(PhantomData<P>);

/// A pairing on which the cipher is defined.
pub trait CipherPairing: Pairing<G1: KeyGroup> {
    /// The suite's name.
    const SUITE: Suite;
    /// The suite's code in headers.
    const HEADER_CODE: u8;
    /// The domain of the hash to G1 by which a header is bound.
    const VALIDITY_DST: &'static [u8];
}

impl CipherPairing for Bls12_381 {
    const SUITE: Suite = Suite::Bz03Bls12381;
    const HEADER_CODE: u8 = 3;
    const VALIDITY_DST: &'static [u8] = b"THETA-V01-CS03-bz03-validity-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
}

impl CipherPairing for Bn254 {
    const SUITE: Suite = Suite::Bz03Bn254;
    const HEADER_CODE: u8 = 4;
    const VALIDITY_DST: &'static [u8] = b"THETA-V01-CS04-bz03-validity-with-BN254G1_XMD:SHA-256_SVDW_RO_";
}
