//! Promises that came before a request for their slot: unverified, only each peer's own, and bounded for each peer.

use std::collections::{BTreeMap, VecDeque};

use theta_names::NodeId;

use super::promise::{Promise, Subject};

/// The most promises of one peer for one slot: two are enough to prove that it lies.
const MOST_OF_ONE: usize = 2;

/// The waiting promises, by peer. A peer above its bound loses its own oldest ones.
#[derive(Debug)]
pub(super) struct Early {
    most: usize,
    age: u64,
    peers: BTreeMap<NodeId, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    promises: BTreeMap<Subject, Vec<Promise>>,
    /// When each subject came, oldest first; one that was taken out stays in this list until its turn.
    order: VecDeque<(u64, Subject)>,
}

impl Early {
    /// Keeps at most `most` slots of each peer, for `age` milliseconds.
    pub(super) const fn new(most: usize, age: u64) -> Self {
        Self { most, age, peers: BTreeMap::new() }
    }

    /// Keeps a peer's own promises.
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

    /// Takes the promises for this slot, with the peers that sent them.
    pub(super) fn take(&mut self, subject: &Subject) -> Vec<(NodeId, Vec<Promise>)> {
        let take = |(peer, waiting): (&NodeId, &mut Waiting)| Some((*peer, waiting.promises.remove(subject)?));
        self.peers.iter_mut().filter_map(take).collect()
    }

    /// The peers that promise this slot of this key under signing rules of other names, with those names.
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

    /// Whether no promise waits.
    pub(super) fn is_empty(&self) -> bool {
        self.peers.values().all(|waiting| waiting.order.is_empty())
    }

    /// Drops promises that have waited for too long.
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
