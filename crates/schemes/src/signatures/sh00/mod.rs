//! Threshold RSA signatures (Shoup, *Practical Threshold Signatures*, Eurocrypt 2000): the result is an ordinary RSA
//! signature with public exponent 65537, accepted by every verifier of PKCS#1.
//!
//! N = p q with safe primes p = 2 p' + 1, q = 2 q' + 1; the squares modulo N are a cyclic group of order m = p' q', which
//! only the dealer knows. A share is x_i = x^(2 s_i); interpolation in the exponent works over integers, because nobody
//! can divide modulo m. The combined signature is verified by itself, so the proof that x_i is right (section 2.2 of the paper,
//! with signs removed by squaring) is made on demand only. See `spec/sh00.md`.

mod combine;
mod consistency;
mod dealer;
mod der;
mod encoding;
mod interpolation;
mod keys;
mod parts;
mod proof;
mod scheme;
mod share;

pub use dealer::{ModulusSize, RsaDealError, RsaDealt, RsaPrimes, deal, deal_primes};
pub use encoding::{Encoding, Pkcs1Sha256, Pkcs1Sha512, PssSha256};
pub use keys::{RsaKeyShare, RsaPublicKey};
pub use scheme::{RsaRequest, RsaScheme, RsaSignature, Sh00};
pub use share::RsaShare;

pub(crate) use combine::{accept, combine};
pub(crate) use scheme::verify;
pub(crate) use share::{check, create_bare, create_proven, decode, false_among, pending, vartime_off_polynomial};

/// The public exponent of all keys. It is prime and larger than any number of parties, as the scheme requires.
pub const PUBLIC_EXPONENT: u64 = 65_537;

/// The sizes of a modulus, in bits.
pub const MODULUS_BITS: [u32; 3] = [2048, 3072, 4096];

/// The size of moduli in tests, in bits, which is too short to be secure.
pub const TEST_MODULUS_BITS: u32 = 1024;
