//! Signature schemes whose signatures take k parties.

pub mod bls04;
pub mod frost;
pub mod sh00;
