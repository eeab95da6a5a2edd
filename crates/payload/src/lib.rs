//! Payloads of any size, sealed under the 256-bit key that a threshold cipher wraps.
//!
//! A ciphertext is a [`Header`], which is all that the nodes need, and the sealed payload: chunks of 64 KiB under an
//! AEAD in the STREAM construction of Hoang, Reyhanitabar, Rogaway and Vizar ("Online authenticated-encryption and its
//! nonce-reuse misuse-resistance", CRYPTO 2015). The header commits to the payload's digest. See `spec/payload.md`.
//!
//! Headers are defined in [`theta_schemes::ciphers`]; a node, which sees nothing else, does not need this crate.
//!
//! A file for any 2 of 3 parties, from the dealer to the plaintext:
//!
//! ```
//! use theta_payload::{Aead, Encrypt, PayloadKey, open_bytes, split_ciphertext};
//! use theta_schemes::{Statement, Suite, keys::deal_any};
//! use theta_sharing::Threshold;
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! # let mut rng = ChaCha20Rng::seed_from_u64(1); // A fixed seed is for examples only.
//!
//! let (public, shares) = deal_any(Suite::Sg02Ristretto255, Threshold::new(2, 3)?, &mut rng);
//! let ciphertext = public.encrypt(b"the contents", b"report 7", Aead::default(), &mut rng)?;
//!
//! // The parties see the header alone.
//! let (header, _payload) = split_ciphertext(&ciphertext)?;
//! let statement = Statement::Decapsulate(header);
//! let first = public.create_share(&shares[0], statement, &mut rng)?;
//! let third = public.create_share(&shares[2], statement, &mut rng)?;
//!
//! let answers = [(shares[0].index(), &first[..]), (shares[2].index(), &third[..])];
//! let combined = public.combine(statement, &answers, &mut rng)?;
//! let key = PayloadKey::from_bytes(combined.result.expose())?;
//! assert_eq!(open_bytes(&key, &ciphertext)?.expose(), b"the contents");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chunk;
mod ciphertext;
mod memory;
mod parallel;
mod pipeline;
mod stream;

pub use chunk::{CHUNK_LEN, TAG_LEN};
pub use ciphertext::{
    Encrypt, EncryptError, encrypt_bytes, encrypt_stream, open_bytes, open_payload, read_header, split_ciphertext,
};
pub use stream::{OpenError, open_stream, seal_stream, sealed_len};
pub use theta_schemes::ciphers::{Aead, Header, HeaderBytes, MAX_HEADER_LEN, PayloadDigest, PayloadKey, UnknownAead};
