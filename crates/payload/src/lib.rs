//! Payloads of any size, sealed under the 256-bit key that a threshold cipher wraps.
//!
//! A ciphertext is a [`Header`], which is all that the nodes need, and the sealed payload: chunks of 64 KiB under an
//! AEAD in the STREAM construction of Hoang, Reyhanitabar, Rogaway and Vizar ("Online authenticated-encryption and its
//! nonce-reuse misuse-resistance", Crypto 2015). The header commits to the payload's digest. See `spec/payload.md`.

mod chunk;
mod ciphertext;
mod header;
mod key;
mod memory;
mod parallel;
mod pipeline;
mod stream;

pub use chunk::{Aead, CHUNK_LEN, TAG_LEN, UnknownAead};
pub use ciphertext::{EncryptError, encrypt_bytes, encrypt_stream, open_bytes, read_header, split_ciphertext};
pub use header::{Header, MAX_HEADER_LEN};
pub use key::PayloadKey;
pub use stream::{OpenError, PayloadDigest, open_stream, seal_stream, sealed_len};
