//! BLS12-381: two groups of the same 255-bit prime order and a pairing between them, on top of `blst`.
//!
//! Encodings are the compressed ones of the IETF BLS draft (ZCash's format): 48 bytes in [`G1`], 96 in [`G2`],
//! big-endian, flags in the three highest bits. Hashing is RFC 9380 with `BLS12381G1_XMD:SHA-256_SSWU_RO_` and its G2
//! twin.

mod comb;
mod ffi;
mod pairing;
mod point;
mod scalar;

pub use pairing::Bls12_381;
pub use point::{G1, G1Element, G2, G2Element};
pub use scalar::BlsScalar;
