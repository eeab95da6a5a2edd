//! Public-key ciphers whose decryption takes k parties, and the sealing of their payloads.

pub mod bz03;
pub mod payload;
pub mod sg02;
mod wrap;
