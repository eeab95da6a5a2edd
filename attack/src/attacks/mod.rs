//! The attacks, by who commits them. A new one is a file in one of the folders and a line in its list.
//!
//! What cannot be committed from outside a process is tested elsewhere, and named here so that nobody takes it for forgotten:
//!
//! - A machine resumed as a whole, with the nonces that stood in its memory: `resumed-memory` puts back generators alone, and
//!   `spec/frost.md` promises no more. That a draw takes fresh bytes of the system: `theta-orchestration` `entropy::tests`.
//! - Nodes that tell clients a false public key of a higher k: it takes a liar's API. `theta-client` `belief::tests`.
//! - Headers of BZ03 for a false share: no key of the usual group is one. `theta-schemes` `accomplice`.
//! - Every theft that the mobile adversary may choose, and what follows by linear algebra from all that it has: `theta-ceremonies`
//!   `mobile`. `stolen-stores` has one such adversary, with the files of real nodes.

mod client;
mod disk;
mod member;
mod stranger;

use crate::attack::Attack;

/// All of them, in the order in which they are committed.
pub(crate) fn all() -> Vec<Attack> {
    [stranger::all(), client::all(), member::all(), disk::all()].into_iter().flatten().collect()
}
