//! Attacks by a node of the group, or by somebody with a node's certificate.

mod contradictions;
mod divided_recovery;
mod ecdsa_lies;
mod few_tellers;
mod frost_packages;
mod greetings;
mod oversized_items;
mod split_header;
mod token_thief;

use crate::attack::Attack;

pub(super) fn all() -> Vec<Attack> {
    vec![
        oversized_items::ATTACK,
        contradictions::ATTACK,
        greetings::ATTACK,
        frost_packages::ATTACK,
        ecdsa_lies::ATTACK,
        divided_recovery::ATTACK,
        few_tellers::ATTACK,
        split_header::ATTACK,
        token_thief::ATTACK,
    ]
}
