//! Attacks by somebody whom the nodes do not know.

mod half_open;
mod headers_only;

use crate::attack::Attack;

pub(super) fn all() -> Vec<Attack> {
    vec![headers_only::ATTACK, half_open::API, half_open::MESH]
}
