//! What nodes have seen of each other's stores.
//!
//! With n nodes, t = k - 1 of which may lie, this node has p = n - 1 peers. Its store is distrusted when min(k, p) of
//! them contradict it, and trusted when min(k, p) agree: of k peers one is honest. Where k > p (k = n), all peers have
//! to agree or to contradict. All of them may lie then, and no other node can be asked.

mod sight;

use std::collections::{BTreeMap, BTreeSet};

use theta_names::NodeId;
use theta_store::{Contradiction, Incarnation, Lineage, Rollback, Seen, Witness};

/// What this node has seen of its peers' stores, and what they remember of its own.
#[derive(Default)]
pub(super) struct Witnesses {
    seen: BTreeMap<NodeId, Witness>,
    /// What the store has recorded of `seen`.
    written: BTreeMap<NodeId, (Option<Incarnation>, Option<Incarnation>)>,
    /// Peers that remember nothing that this store does not know.
    agree: BTreeSet<NodeId>,
    /// Peers that remember more than this store knows, and what they remember. The store records it with the next tick.
    contradict: BTreeMap<NodeId, Incarnation>,
    unwritten: BTreeSet<NodeId>,
    /// Claims that a person has overruled.
    overruled: Vec<(NodeId, Incarnation)>,
    /// Whether a person trusts this opening before peers have confirmed it.
    vouched: bool,
    /// What was reported already: of a peer's store (`false`), or by a peer of this node's store (`true`).
    told: BTreeSet<(NodeId, bool)>,
    /// Peers whose present store is not what is remembered of it.
    doubted: BTreeSet<NodeId>,
    /// When a peer was last sent the lineage of this store.
    shown: BTreeMap<NodeId, u64>,
    /// Whether a peer has decided something once and for all, so that its store's incarnation is recorded with the next
    /// tick.
    hasty: bool,
}

/// The comparison of a peer's memory with this store's history: `Err` with the claim that contradicts it.
pub(super) type Judged = Result<(), (Incarnation, Rollback)>;

fn state(witness: &Witness) -> (Option<Incarnation>, Option<Incarnation>) {
    (witness.remembered().copied(), witness.fork().copied())
}

impl Witnesses {
    pub(super) fn new(
        seen: impl IntoIterator<Item = (NodeId, Witness)>,
        contradictions: impl IntoIterator<Item = Contradiction>,
        vouched: bool,
    ) -> Self {
        let seen: BTreeMap<_, _> = seen.into_iter().collect();
        let written = seen.iter().map(|(peer, witness)| (*peer, state(witness))).collect();
        let mut witnesses = Self { seen, written, vouched, ..Self::default() };
        for Contradiction { peer, claim, overruled } in contradictions {
            let Ok(peer) = NodeId::try_from(peer) else { continue };
            if overruled {
                witnesses.overruled.push((peer, claim));
            } else {
                witnesses.contradict.insert(peer, claim);
            }
        }
        witnesses
    }

    /// What is remembered of a peer's store, and the fork that was seen of it.
    pub(super) fn of(&self, peer: NodeId) -> (Option<Incarnation>, Option<Incarnation>) {
        self.seen.get(&peer).map(state).unwrap_or_default()
    }

    /// Takes the incarnation that a peer states. The error is what is new to report.
    pub(super) fn observe(&mut self, peer: NodeId, now: &Incarnation) -> Result<Seen, Option<Rollback>> {
        let observed = self.seen.entry(peer).or_default().observe(now);
        if observed.as_ref().is_ok_and(|seen| *seen == Seen::Continues) {
            self.doubted.remove(&peer);
        }
        observed.map_err(|rollback| self.news(peer, rollback))
    }

    /// Makes sure that what was seen is recorded soon.
    pub(super) const fn hasten(&mut self) {
        self.hasty = true;
    }

    /// Takes a peer's lineage. The error is what is new to report.
    pub(super) fn prove(&mut self, peer: NodeId, lineage: &Lineage) -> Result<(), Option<Rollback>> {
        let Some(witness) = self.seen.get_mut(&peer) else { return Ok(()) };
        let proved = witness.prove(lineage);
        proved.map(|_| ()).map_err(|rollback| self.news(peer, rollback))
    }

    fn news(&mut self, peer: NodeId, rollback: Rollback) -> Option<Rollback> {
        self.doubted.insert(peer);
        self.told.insert((peer, false)).then_some(rollback)
    }

    /// Whether a peer has shown a store that is not what is remembered of it, and no other since. It takes no part in anything until a person
    /// has settled that.
    pub(super) fn doubts(&self, peer: NodeId) -> bool {
        self.doubted.contains(&peer)
    }

    /// Takes a peer's message that its operator confirms its store. Returns whether that answers what is remembered
    /// here, and is news: nothing is if nothing but its present store is remembered.
    pub(super) fn confirmed(&mut self, peer: NodeId, claim: &Incarnation, now: &Incarnation) -> bool {
        let settled = !self.doubts(peer) && !self.told.contains(&(peer, false));
        if settled && self.of(peer) == (Some(*now), None) {
            return false;
        }
        let known = self.seen.get_mut(&peer).is_some_and(|witness| witness.overrule(claim, now));
        if known {
            self.told.remove(&(peer, false));
            self.doubted.remove(&peer);
        }
        known
    }

    /// Forgets all of a peer: there is another machine in its place.
    pub(super) fn forget(&mut self, peer: NodeId) {
        self.seen.remove(&peer);
        self.written.remove(&peer);
        self.agree.remove(&peer);
        self.contradict.remove(&peer);
        self.unwritten.remove(&peer);
        self.shown.remove(&peer);
        self.doubted.remove(&peer);
        self.told.retain(|(node, _)| *node != peer);
    }

    /// What the store has not recorded yet: new openings and forks only, or also new commits (`all`).
    pub(super) fn unwritten(&mut self, all: bool) -> Vec<(NodeId, Witness)> {
        let all = all | core::mem::take(&mut self.hasty);
        let mut due = Vec::new();
        for (peer, witness) in &self.seen {
            let now = state(witness);
            let written = self.written.get(peer);
            let opening =
                |state: &(Option<Incarnation>, Option<Incarnation>)| (state.0.map(|seen| seen.opening), state.1);
            if written.is_none_or(|written| opening(written) != opening(&now) || (all && *written != now)) {
                self.written.insert(*peer, now);
                due.push((*peer, witness.clone()));
            }
        }
        due
    }

    /// The peers whose claims about this node's store have changed since they were recorded, with their present claims.
    pub(super) fn unwritten_contradictions(&mut self) -> Vec<(NodeId, Option<Incarnation>)> {
        let peers = core::mem::take(&mut self.unwritten).into_iter();
        peers.map(|peer| (peer, self.contradict.get(&peer).copied())).collect()
    }

    /// Forgets what was recorded: after a failure of the store the last records may be missing.
    pub(super) fn write_again(&mut self) {
        self.written.clear();
        self.unwritten.extend(self.contradict.keys().chain(&self.agree));
    }

    /// Takes the result of checking what a peer remembers of this node's store. Returns what is new to report.
    pub(super) fn answered(&mut self, peer: NodeId, judged: Judged) -> Option<Rollback> {
        match judged {
            Ok(()) => {
                if self.contradict.remove(&peer).is_some() {
                    self.unwritten.insert(peer);
                }
                self.agree.insert(peer);
                None
            }
            Err((claim, rollback)) => {
                self.agree.remove(&peer);
                if self.contradict.insert(peer, claim) != Some(claim) {
                    self.unwritten.insert(peer);
                }
                self.told.insert((peer, true)).then_some(rollback)
            }
        }
    }

    /// Whether a person has overruled this claim.
    pub(super) fn is_overruled(&self, peer: NodeId, claim: &Incarnation) -> bool {
        self.overruled.contains(&(peer, *claim))
    }

    /// Whether this peer may be sent the lineage now.
    pub(super) fn may_show(&mut self, peer: NodeId, now: u64, every: u64) -> bool {
        let due = self.shown.get(&peer).is_none_or(|last| now >= last.saturating_add(every));
        if due {
            self.shown.insert(peer, now);
        }
        due
    }

    /// Whether this store may decide what must not be decided twice. For `needed` see the documentation of this module.
    pub(super) fn is_trusted(&self, needed: usize) -> bool {
        let distrusted = !self.contradict.is_empty() && self.contradict.len() >= needed;
        !distrusted && (self.vouched || self.agree.len() >= needed)
    }

    /// The number of peers that claim to remember more of this store than it knows.
    pub(super) fn contradicting(&self) -> usize {
        self.contradict.len()
    }
}

#[cfg(test)]
mod tests {
    use theta_store::{Opening, StoreId};

    use super::*;

    #[test]
    fn a_store_that_nobody_doubts_is_confirmed_once() {
        let peer = NodeId::try_from(2).unwrap();
        let of = |session: u8, sequence| {
            let opening = Opening { generation: 1, session: [session; 16], opened_at: 1, link: [session; 32] };
            Incarnation { store_id: StoreId([1; 16]), opening, sequence }
        };
        let (first, other) = (of(1, 5), of(2, 7));
        let mut witnesses = Witnesses::default();
        assert!(witnesses.observe(peer, &first).is_ok());
        assert!(!witnesses.confirmed(peer, &first, &first), "nothing was to be settled");
        let _ = witnesses.observe(peer, &other);
        assert!(witnesses.confirmed(peer, &first, &other), "what was remembered is answered");
        for _ in 0..3 {
            assert!(!witnesses.confirmed(peer, &other, &other), "again and again");
        }
        assert!(!witnesses.doubts(peer));
    }
}
