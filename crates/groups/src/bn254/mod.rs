//! BN254 (also called alt_bn128 and bn256): the pairing-friendly curve of Ethereum's precompiled contracts, EIP-196 and
//! EIP-197, whose two groups share a 254-bit prime order.
//!
//! Its security is estimated at 100 bits (Barbulescu and Duquesne, J. Cryptology 2019): choose it for a verifier in the
//! EVM, BLS12-381 otherwise.
//!
//! The field arithmetic and the pairing are those of the crate `halo2curves`, whose additions, subtractions and
//! multiplications run in constant time. Its points are not used: their conditional selection allocates memory, their
//! comparison stops at the first difference and their inversion takes variable time. The points here use the complete
//! formulas of Renes, Costello and Batina and select by masks.
//!
//! Encodings are those of gnark-crypto: the big-endian x-coordinate (in [`G2`] the imaginary part first) in 32 or 64
//! bytes, and in its two highest bits, which no coordinate uses, `10` for the smaller y, `11` for the larger, `01` for
//! the identity, whose other bits are zero. Hashing is RFC 9380 with `BN254G1_XMD:SHA-256_SVDW_RO_` and its G2 twin, the
//! suites of gnark-crypto.

mod curve;
mod encoding;
mod field;
mod groups;
mod hash;
mod mul;
mod pairing;
mod scalar;

pub use curve::Point;
pub use groups::{G1, G1Element, G2, G2Element};
pub use pairing::Bn254;
pub use scalar::Bn254Scalar;
