//! Promises that came before their request: each peer's own, unverified, bounded by peer.

use std::collections::{BTreeMap, VecDeque};

use theta_names::NodeId;

use super::promise::{Promise, Subject};

/// Promises of one peer for one slot: two are enough to prove that it lies.
const MOST_OF_ONE: usize = 2;

/// What waits, by peer. A peer over its bound loses its own oldest.
#[derive(Debug)]
pub(super) struct Early {
    most: usize,
    age: u64,
    peers: BTreeMap<NodeId, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    promises: BTreeMap<Subject, Vec<Promise>>,
    /// When which subject came, oldest first; one that was taken out leaves its entry until its turn.
    order: VecDeque<(u64, Subject)>,
}

impl Early {
    /// At most so many slots of each peer, for so many milliseconds.
    pub(super) const fn new(most: usize, age: u64) -> Self {
        Self { most, age, peers: BTreeMap::new() }
    }

    /// Keeps what a peer itself promises.
    pub(super) fn push(&mut self, from: NodeId, subject: &Subject, promises: Vec<Promise>, now: u64) {
        let own = promises.into_iter().filter(|promise| promise.node == from).take(MOST_OF_ONE);
        let waiting = self.peers.entry(from).or_default();
        for promise in own {
            let kept = waiting.promises.entry(subject.clone()).or_insert_with(|| {
                waiting.order.push_back((now, subject.clone()));
                Vec::new()
            });
            if !kept.contains(&promise) && kept.len() < MOST_OF_ONE {
                kept.push(promise);
            }
        }
        while waiting.order.len() > self.most {
            waiting.drop_oldest();
        }
    }

    /// What waited for this slot, and who sent it.
    pub(super) fn take(&mut self, subject: &Subject) -> Vec<(NodeId, Vec<Promise>)> {
        let take = |(peer, waiting): (&NodeId, &mut Waiting)| Some((*peer, waiting.promises.remove(subject)?));
        self.peers.iter_mut().filter_map(take).collect()
    }

    /// The peers that promise this slot of this key by signing rules of other names, and those names.
    pub(super) fn under_other_rules(&self, subject: &Subject) -> BTreeMap<NodeId, String> {
        let first = Subject { rule: String::new(), ..subject.clone() };
        let found = self.peers.iter().filter_map(|(peer, waiting)| {
            let mut others = waiting.promises.range(first.clone()..);
            let of_slot = |other: &&Subject| other.key == subject.key && other.slot == subject.slot;
            let (other, _) = others.next().filter(|(other, _)| of_slot(other) && other.rule != subject.rule)?;
            Some((*peer, other.rule.clone()))
        });
        found.collect()
    }

    /// Drops what has waited for too long.
    pub(super) fn expire(&mut self, now: u64) {
        for waiting in self.peers.values_mut() {
            while waiting.order.front().is_some_and(|(since, _)| now.saturating_sub(*since) >= self.age) {
                waiting.drop_oldest();
            }
        }
    }
}

impl Waiting {
    fn drop_oldest(&mut self) {
        if let Some((_, subject)) = self.order.pop_front() {
            self.promises.remove(&subject);
        }
    }
}
