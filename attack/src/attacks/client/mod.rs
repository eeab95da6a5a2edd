//! Attacks by clients that the policy knows.

mod consents;
mod quotas;
mod rotated_request;
mod slot_race;
mod unread;

use crate::attack::Attack;

pub(super) fn all() -> Vec<Attack> {
    vec![unread::ATTACK, slot_race::ATTACK, quotas::ATTACK, consents::ATTACK, rotated_request::ATTACK]
}
