//! Whether a node whose store was set back does what must not be done twice before a person says that its store is meant.
//!
//! What has to hold (`docs/adr/0024-incarnation-chain.md`): if so many honest peers have seen more of a store than a copy knows that
//! those who have not are too few to vouch for it, the node does not trust the copy, however often it is started again.

use std::collections::{BTreeMap, BTreeSet};

use theta_custody::Custodian;
use theta_store::Incarnation;

/// Nodes whose stores were set back, and whether their peers are sure to contradict them.
#[derive(Default)]
pub(crate) struct Stores {
    set_back: BTreeMap<u16, bool>,
    /// Those that have a new store, and those that a person has confirmed.
    emptied: BTreeSet<u16>,
    confirmed: BTreeSet<u16>,
}

impl Stores {
    /// A node's disk was exchanged for a copy of this incarnation, or for an empty one (`None`). `peers` are the custodians of the
    /// honest nodes that run; `n` counts all nodes, of which `k` may act.
    pub(crate) fn set_back<'a>(
        &mut self,
        node: u16,
        copy: Option<Incarnation>,
        peers: impl Iterator<Item = &'a Custodian>,
        (k, n): (u16, u16),
    ) {
        if copy.is_none() {
            self.emptied.insert(node);
        }
        let contradict = peers.filter(|peer| has_seen_more(peer, node, copy)).count();
        let others = usize::from(n.saturating_sub(1));
        let needed = usize::from(k).min(others);
        self.set_back.insert(node, others.saturating_sub(contradict) < needed);
    }

    /// A person says that the store is meant as it is.
    pub(crate) fn confirmed(&mut self, node: u16) {
        self.set_back.remove(&node);
        self.confirmed.insert(node);
    }

    /// Whether a node may have promised twice by the word of a person: who says so does not accuse it falsely.
    pub(crate) fn was_confirmed(&self, node: u16) -> bool {
        self.confirmed.contains(&node)
    }

    /// Whether a node stands on an old copy that nobody has confirmed.
    pub(crate) fn is_set_back(&self, node: u16) -> bool {
        self.set_back.contains_key(&node)
    }

    /// Whether a node's store is a new one, in which keys are missing.
    pub(crate) fn has_forgotten(&self, node: u16) -> bool {
        self.emptied.contains(&node)
    }

    /// Whether it is certain that the node must not trust its store.
    pub(crate) fn is_found_out(&self, node: u16) -> bool {
        self.set_back.get(&node) == Some(&true)
    }
}

/// Whether a peer has written down more of a node's store than a copy of it knows.
fn has_seen_more(peer: &Custodian, node: u16, copy: Option<Incarnation>) -> bool {
    let seen = peer.store().seen_of_peers().unwrap_or_default();
    let of_node = seen.iter().find(|(number, _)| *number == node).and_then(|(_, witness)| witness.remembered());
    of_node.is_some_and(|seen| copy.is_none_or(|copy| seen.sequence > copy.sequence))
}
