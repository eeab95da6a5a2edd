//! Prime-order groups, pairings, hash-to-group, secrets and transcripts.
//!
//! The schemes are generic over [`Group`] and read like the papers: `h * r + g * s`. (The papers write groups multiplicatively;
//! the code, like curve libraries, writes them additively: `g^x` is `g * x`.)
//!
//! A group wraps a crate for its curve. The schemes above see [`Group`] alone, so that the choice of that crate stays reversible
//! (see `docs/adr/0001-groups.md`).

mod addend;
pub mod bls12_381;
pub mod bn254;
mod comb;
mod ed25519;
mod ed448;
mod expand;
mod fixed_base;
mod group;
pub mod modular;
mod msm;
mod p256;
mod ristretto;
mod secp256k1;
mod secret;
mod transcript;
mod weierstrass;

pub use addend::Addend;
pub use ed448::{Ed448, Ed448Element, Ed448Scalar};
pub use ed25519::{Ed25519, Ed25519Element, Ed25519Scalar};
pub use fixed_base::FixedBase;
pub use group::{DecodeError, Group, PairOf, Pairing, Scalar, Table};
pub use p256::{P256, P256Element, P256Scalar};
pub use ristretto::{Ristretto255, RistrettoElement, RistrettoScalar};
pub use secp256k1::{Secp256k1, Secp256k1Element, Secp256k1Scalar};
pub use secret::{Secret, SecretRng};
pub use transcript::Transcript;

/// Bits of the longest of some short scalars: 0 to 128.
fn bit_length<'a>(scalars: impl Iterator<Item = &'a u128>) -> usize {
    // An or is as long as its longest operand; at most 128 leading zeros fit any usize.
    let all = scalars.fold(0, |all, scalar| all | scalar);
    128 - usize::try_from(all.leading_zeros()).unwrap_or(0)
}

/// Writes `Name(hex)`: what public elements and scalars show in logs and failed assertions.
fn hex_debug(f: &mut core::fmt::Formatter<'_>, name: &str, bytes: &[u8]) -> core::fmt::Result {
    write!(f, "{name}(")?;
    for byte in bytes {
        write!(f, "{byte:02x}")?;
    }
    f.write_str(")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_encoding() {
        let scalar = RistrettoScalar::from_u64(0x2a);
        assert_eq!(format!("{scalar:?}"), format!("RistrettoScalar(2a{})", "00".repeat(31)));
        assert!(format!("{:?}", bls12_381::G1::generator()).starts_with("G1Element(97f1d3a7"));
    }
}
