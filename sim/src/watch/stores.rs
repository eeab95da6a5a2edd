//! Checks that a node whose store was set back does nothing that must not be done twice, until a person confirms the store.
//!
//! What must hold (`docs/adr/0024-incarnation-chain.md`): if so many honest peers have seen more of a store than a copy
//! contains that the others are too few to confirm it, the node does not trust the copy, however often it is restarted.

use std::collections::{BTreeMap, BTreeSet};

use theta_custody::Custodian;
use theta_store::Incarnation;

/// The nodes whose stores were set back, and whether their peers are sure to contradict them.
#[derive(Default)]
pub(crate) struct Stores {
    set_back: BTreeMap<u16, bool>,
    /// The nodes with a new store, and those whose store a person has confirmed.
    emptied: BTreeSet<u16>,
    confirmed: BTreeSet<u16>,
}

impl Stores {
    /// A node's disk was replaced by a copy of this incarnation, or by an empty one (`None`). `peers` are the custodians of
    /// the honest nodes that run; `n` counts all nodes, of which `k` are needed for an operation.
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

    /// Another machine has the node's place, with a new store.
    pub(crate) fn replaced(&mut self, node: u16) {
        self.emptied.insert(node);
    }

    /// A person confirms the store.
    pub(crate) fn confirmed(&mut self, node: u16) {
        self.set_back.remove(&node);
        self.confirmed.insert(node);
    }

    /// Whether a person has confirmed the node's store: then it may have promised twice, and an accusation is not false.
    pub(crate) fn was_confirmed(&self, node: u16) -> bool {
        self.confirmed.contains(&node)
    }

    /// Whether a node runs on an old copy that nobody has confirmed.
    pub(crate) fn is_set_back(&self, node: u16) -> bool {
        self.set_back.contains_key(&node)
    }

    /// Whether a node has a new store, which lacks keys.
    pub(crate) fn has_forgotten(&self, node: u16) -> bool {
        self.emptied.contains(&node)
    }

    /// Whether it is certain that the node must not trust its store.
    pub(crate) fn is_found_out(&self, node: u16) -> bool {
        self.set_back.get(&node) == Some(&true)
    }
}

/// Whether a peer remembers more of a node's store than a copy of the store contains.
fn has_seen_more(peer: &Custodian, node: u16, copy: Option<Incarnation>) -> bool {
    let seen = peer.store().seen_of_peers().unwrap_or_default();
    let of_node = seen.iter().find(|(number, _)| *number == node).and_then(|(_, witness)| witness.remembered());
    of_node.is_some_and(|seen| copy.is_none_or(|copy| seen.sequence > copy.sequence))
}
