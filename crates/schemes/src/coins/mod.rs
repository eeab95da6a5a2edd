//! Common coins: unpredictable values that k parties draw together.

pub mod cks05;
pub mod cks05_bls;
pub mod cks05_rsa;
mod from_signature;
