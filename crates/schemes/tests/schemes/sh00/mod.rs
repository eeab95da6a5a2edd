//! Threshold RSA signatures and the coin made of them.

mod attacks;
mod dealing;
pub(crate) mod fixture;
mod known_answers;
mod shares;
mod standard;
