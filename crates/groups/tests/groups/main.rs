//! The laws of all groups, and each group against its standard and against malicious encodings.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    clippy::eq_op,
    reason = "tests fail by panicking, in their helpers too"
)]

mod bls12_381;
mod bn254;
mod edwards;
mod laws;
mod modular;
mod weierstrass;
