//! Key generation, refresh and resharing: deal, agree on the dealings that count, derive the key, certify it.

mod claims;
mod derive;
mod judge;
#[cfg(test)]
mod last_word;
mod logic;
mod phase;
mod steps;

pub(super) use derive::{Keys, Material, check_key, read_key};
pub(super) use judge::Selection;
pub(super) use steps::KeyLogic;
