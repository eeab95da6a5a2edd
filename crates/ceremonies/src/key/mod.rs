//! Key generation, refresh and resharing: deal, agree on the dealings that count, derive the key, certify it.

mod derive;
mod judge;
mod logic;
mod steps;

pub(super) use derive::{Keys, Material, check_key, read_key};
pub(super) use judge::Selection;
pub(super) use steps::KeyLogic;
