//! Who has seen what of whose store.

use std::collections::{BTreeMap, BTreeSet};

use theta_rounds::PartyId;
use theta_store::{Incarnation, Rollback, Witness};

/// What this node has seen of its peers' stores, and what they have said of its own.
#[derive(Default)]
pub(super) struct Witnesses {
    seen: BTreeMap<PartyId, Witness>,
    /// What the store has of it.
    written: BTreeMap<PartyId, Incarnation>,
    /// Peers that remember nothing that this store does not know.
    agree: BTreeSet<PartyId>,
    /// Peers that remember more than this store knows.
    contradict: BTreeSet<PartyId>,
    /// Those that a person has overruled.
    overruled: BTreeSet<PartyId>,
    /// What was told already: of a peer's store, or by a peer of this node's.
    told: BTreeSet<(PartyId, bool)>,
}

impl Witnesses {
    pub(super) fn new(seen: impl IntoIterator<Item = (PartyId, Incarnation)>) -> Self {
        let written: BTreeMap<_, _> = seen.into_iter().collect();
        let seen = written.iter().map(|(peer, seen)| (*peer, Witness::new(Some(*seen)))).collect();
        Self { seen, written, ..Self::default() }
    }

    /// What is remembered of a peer's store.
    pub(super) fn of(&self, peer: PartyId) -> Option<Incarnation> {
        self.seen.get(&peer).and_then(Witness::remembered).copied()
    }

    /// A peer says what its store is. The error is what is new to tell.
    pub(super) fn observe(&mut self, peer: PartyId, now: &Incarnation) -> Result<(), Option<String>> {
        let news = |rollback: Rollback| self.told.insert((peer, false)).then(|| rollback.to_string());
        self.seen.entry(peer).or_default().observe(now).map_err(news)
    }

    /// What the store lacks of what was seen: openings that it has not heard of, or all.
    pub(super) fn unwritten(&mut self, all: bool) -> Vec<(PartyId, Incarnation)> {
        let mut due = Vec::new();
        for (peer, seen) in &self.seen {
            let Some(seen) = seen.remembered() else { continue };
            let written = self.written.get(peer);
            if written.is_none_or(|written| written.opening != seen.opening || (all && written != seen)) {
                self.written.insert(*peer, *seen);
                due.push((*peer, *seen));
            }
        }
        due
    }

    /// Forgets what the store has of it: the last that was written may not be there.
    pub(super) fn write_again(&mut self) {
        self.written.clear();
    }

    /// A peer has said what it remembers of this node's store, and this is what came of the check.
    pub(super) fn answered(&mut self, peer: PartyId, check: Result<(), Rollback>) -> Option<String> {
        match check {
            Ok(()) => {
                self.contradict.remove(&peer);
                self.agree.insert(peer);
                None
            }
            Err(_) if self.overruled.contains(&peer) => None,
            Err(rollback) => {
                self.agree.remove(&peer);
                self.contradict.insert(peer);
                let news = self.told.insert((peer, true));
                news.then(|| format!("node {peer} remembers more of it than it knows: {rollback}"))
            }
        }
    }

    pub(super) fn is_trusted(&self, peers: usize) -> bool {
        self.contradict.is_empty() && self.agree.len() >= peers
    }

    /// How many peers remember more of this store than it knows, or say so.
    pub(super) fn contradicting(&self) -> usize {
        self.contradict.len()
    }

    /// Disregards the peers that contradict.
    pub(super) fn overrule(&mut self) {
        let contradict = core::mem::take(&mut self.contradict);
        self.agree.extend(&contradict);
        self.overruled.extend(contradict);
    }

    pub(super) fn forget(&mut self, peer: PartyId) {
        self.seen.remove(&peer);
        self.written.remove(&peer);
        self.told.remove(&(peer, false));
    }
}
