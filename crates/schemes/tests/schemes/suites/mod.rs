//! The schemes as their users see them.

#[macro_use]
pub(crate) mod fixture;

mod accomplice;
mod attacks;
mod every_suite;
mod keys;
mod known_answers;
mod public_bytes;
mod random_bytes;
mod share_bytes;
mod standard_bls;
