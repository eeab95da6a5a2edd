//! Public-key ciphers whose decryption takes k parties. They encrypt the key of a payload, bound to the payload's [`Header`];
//! `theta-payload` seals the payload itself.

mod aead;
pub mod bz03;
mod cipher_key;
mod encapsulation;
mod header;
mod payload_key;
pub mod sg02;
mod wrap;

pub use aead::{Aead, UnknownAead};
pub use cipher_key::CipherKey;
pub use header::{Header, HeaderBytes, MAX_HEADER_LEN, PayloadDigest};
pub use payload_key::PayloadKey;
