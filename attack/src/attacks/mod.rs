//! The attacks, by what they try to break. A new one is a file here and a line below.

mod doors;

use crate::attack::Attack;

/// All of them, in the order in which they are committed.
pub(crate) fn all() -> Vec<Attack> {
    [doors::all()].into_iter().flatten().collect()
}
