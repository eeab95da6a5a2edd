//! Keys of ECDSA: presignatures sign once, and holders that lie.

mod asked;
mod lies;
mod presignatures;
mod steps;
mod whole;
