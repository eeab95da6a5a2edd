//! The attacks, by attacker. A new attack is a file in one of the folders and a line in its list.
//!
//! What cannot be done from outside a process is tested elsewhere, and listed here:
//!
//! - A machine that is resumed as a whole, with nonces in its memory: `resumed-memory` restores generators only, and
//!   `spec/frost.md` promises no more. `theta-orchestration` `entropy::tests` shows that each draw takes fresh bytes of
//!   the system.
//! - Nodes that give clients a false public key with a higher k, which takes a false API: `theta-client` `belief::tests`.
//! - Headers of BZ03 for a false share: no key of the usual group is one of BZ03. `theta-schemes` `accomplice`.
//! - Every theft open to the mobile adversary, and all linear relations among what it has: `theta-ceremonies` `mobile`.
//!   `stolen-stores` is one such adversary, with the files of real nodes.

mod client;
mod disk;
mod member;
mod stranger;

use crate::attack::Attack;

/// All attacks, in the order in which they run.
pub(crate) fn all() -> Vec<Attack> {
    [stranger::all(), client::all(), member::all(), disk::all()].into_iter().flatten().collect()
}
