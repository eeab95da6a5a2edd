//! Signature schemes whose signatures take k parties.

pub mod bls04;
pub mod ecdsa;
pub mod frost;
pub mod sh00;
