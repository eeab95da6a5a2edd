//! Who takes part in requests whose contents this node's own agents refuse.

use core::time::Duration;
use std::collections::{BTreeSet, HashMap, VecDeque};

use theta_names::NodeId;
use tokio::time::Instant;

use super::Shard;
use crate::{Culprit, InstanceId, NodeOffence};

/// Requests that an agent of this node refused in the last minute. A node that sends its part of one all the same is named, once for each: the two
/// operators go by different things, one of them is in other hands, or a client has asked the two at different times or for different things.
#[derive(Debug, Default)]
pub(super) struct Refused {
    requests: HashMap<InstanceId, (Instant, BTreeSet<NodeId>)>,
    /// The oldest first. An entry is void if its request was allowed since, and perhaps refused again.
    order: VecDeque<(Instant, InstanceId)>,
}

impl Refused {
    /// The most that are kept.
    const MOST: usize = 1_024;
    /// For how long.
    const AGE: Duration = Duration::from_secs(60);

    /// Keeps a request for a while. One that is refused again meanwhile is kept no longer, so that who goes on taking part in it is named again.
    fn add(&mut self, id: InstanceId, now: Instant) {
        self.expire(now);
        if self.requests.contains_key(&id) {
            return;
        }
        while self.order.len() >= Self::MOST {
            self.drop_oldest();
        }
        self.requests.insert(id, (now, BTreeSet::new()));
        self.order.push_back((now, id));
    }

    /// The request is allowed after all.
    pub(super) fn forget(&mut self, id: &InstanceId) {
        self.requests.remove(id);
    }

    /// Whether a node is to be named now, from which a message of this request has come.
    fn is_to_name(&mut self, id: &InstanceId, from: NodeId) -> bool {
        self.requests.get_mut(id).is_some_and(|(_, named)| named.insert(from))
    }

    fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(since, _)| now.duration_since(*since) >= Self::AGE) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((since, id)) = self.order.pop_front() else { return };
        if self.requests.get(&id).is_some_and(|(latest, _)| *latest == since) {
            self.requests.remove(&id);
        }
    }
}

impl Shard {
    /// An agent of this node refuses what this request is about.
    pub(super) fn refused(&mut self, id: InstanceId) {
        // What this node has begun it allowed once, perhaps in a former epoch; that others take part then is what it asked for.
        if self.running.contains_key(&id) || self.results.get_mut(&id).is_some() || self.heirs.contains_key(&id) {
            return;
        }
        self.refused.add(id, self.now.max(self.clock));
        for from in self.backlog.senders(&id) {
            self.takes_part(id, from);
        }
    }

    /// A node has sent a message of a request that does not run here.
    pub(super) fn takes_part(&mut self, id: InstanceId, from: NodeId) {
        // Ticks would not do: none comes while nothing runs.
        self.refused.expire(self.now.max(self.clock));
        if self.refused.is_to_name(&id, from) {
            self.worker.shared.note_dispute(&Culprit { party: from, offence: NodeOffence::Consent, instance: id });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Refused::AGE;

    fn id(number: usize) -> InstanceId {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&number.to_be_bytes());
        InstanceId(id)
    }

    fn node(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    #[test]
    fn each_node_is_named_once_a_request_and_only_while_it_is_refused() {
        let (mut refused, start) = (Refused::default(), Instant::now());
        assert!(!refused.is_to_name(&id(1), node(2)));
        refused.add(id(1), start);
        assert!(refused.is_to_name(&id(1), node(2)) && refused.is_to_name(&id(1), node(3)));
        assert!(!refused.is_to_name(&id(1), node(2)), "it has been named");
        // Whoever asks again has it named again a minute later at the earliest.
        refused.add(id(1), start + AGE / 2);
        assert!(!refused.is_to_name(&id(1), node(2)));
        refused.add(id(1), start + AGE);
        assert!(refused.is_to_name(&id(1), node(2)));
        // Allowed since, and refused once more: it is kept from then on.
        refused.forget(&id(1));
        assert!(!refused.is_to_name(&id(1), node(5)));
        refused.add(id(1), start + 3 * AGE / 2);
        refused.expire(start + 2 * AGE);
        assert!(refused.is_to_name(&id(1), node(5)));
        refused.expire(start + 3 * AGE);
        assert!(refused.requests.is_empty() && refused.order.is_empty());
    }

    #[test]
    fn they_take_bounded_room() {
        let (mut refused, start) = (Refused::default(), Instant::now());
        for number in 0..10 * Refused::MOST {
            refused.add(id(number % (2 * Refused::MOST)), start);
            refused.add(id(1), start);
        }
        assert!(refused.requests.len() <= Refused::MOST && refused.order.len() <= Refused::MOST);
    }
}
