//! Attacks by somebody who controls nodes' disks, processes, memory or power.

mod full_disk;
mod killed_record;
mod resumed_memory;
mod set_back;
mod stolen_stores;

use crate::attack::Attack;

pub(super) fn all() -> Vec<Attack> {
    vec![set_back::ATTACK, killed_record::ATTACK, full_disk::ATTACK, resumed_memory::ATTACK, stolen_stores::ATTACK]
}
