//! What somebody can do who handles nodes' disks, their processes and memory, or their power.

mod full_disk;
mod killed_record;
mod resumed_memory;
mod set_back;
mod stolen_stores;

use crate::attack::Attack;

pub(super) fn all() -> Vec<Attack> {
    vec![set_back::ATTACK, killed_record::ATTACK, full_disk::ATTACK, resumed_memory::ATTACK, stolen_stores::ATTACK]
}
