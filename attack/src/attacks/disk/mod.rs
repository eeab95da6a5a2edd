//! What somebody can do who handles a node's disk, its process, or its power.

mod full_disk;
mod killed_record;
mod set_back;

use crate::attack::Attack;

pub(super) fn all() -> Vec<Attack> {
    vec![set_back::ATTACK, killed_record::ATTACK, full_disk::ATTACK]
}
