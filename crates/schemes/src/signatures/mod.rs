//! Signature schemes whose signatures take k parties.

pub mod bls04;
