//! The attacks, by who commits them. A new one is a file in one of the folders and a line in its list.

mod client;
mod disk;
mod member;
mod stranger;

use crate::attack::Attack;

/// All of them, in the order in which they are committed.
pub(crate) fn all() -> Vec<Attack> {
    [stranger::all(), client::all(), member::all(), disk::all()].into_iter().flatten().collect()
}
