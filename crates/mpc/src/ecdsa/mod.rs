//! Threshold ECDSA on any black box: Dalskov, Keller, Orlandi, Shrishak and Shulman, "Securing DNSSEC Keys via Threshold ECDSA From
//! Generic MPC" (ESORICS 2020), figure 2. One file for each of its boxes.

mod curve;
mod dishonest;
mod disputes;
mod key;
mod nonces;
mod presignature;
mod sign;
mod signature;
mod tuple;

#[cfg(test)]
mod tests;

pub use curve::Curve;
pub use dishonest::{ROUNDS_TO_MEET, SetUps, presign_dishonest, presign_semi_ot};
pub use disputes::{Dispute, disputes};
pub use key::{KeyShare, generate};
pub use nonces::{Nonces, prepare_nonces};
pub(crate) use presignature::MEANT_APART;
pub use presignature::{Message, Presignature, Presigned, Presigning, presign, presign_passive};
pub use sign::{Blinded, Request, sign};
pub use signature::Signature;
pub use tuple::{Tuple, bind};
