//! The backlog: messages that came before their request.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use theta_names::NodeId;
use theta_rounds::{Channel, Slot};
use tokio::time::Instant;

use crate::InstanceId;

/// A message, perhaps of an instance that has not started here.
#[derive(Debug)]
pub(crate) struct Early {
    pub(crate) from: NodeId,
    pub(crate) slot: Slot,
    pub(crate) channel: Channel,
    pub(crate) payload: Bytes,
}

/// How much of each peer's messages is kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BacklogLimits {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    pub(crate) age: Duration,
}

/// Early messages, bounded for each peer by number, bytes and age. A peer above its bound loses its own oldest message,
/// never another's, so junk harms only its sender.
#[derive(Debug)]
pub(crate) struct Backlog {
    limits: BacklogLimits,
    /// The messages of each peer, by a number that only grows, so that the oldest come first.
    peers: HashMap<NodeId, Held>,
    /// The messages of each instance.
    instances: HashMap<InstanceId, Vec<(NodeId, u64)>>,
    next: u64,
    dropped: u64,
}

#[derive(Debug, Default)]
struct Held {
    messages: BTreeMap<u64, Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    instance: InstanceId,
    since: Instant,
    message: Early,
}

impl Backlog {
    /// The estimated size of a message beside its payload, in bytes: the entries in both maps.
    const OVERHEAD: usize = 256;

    pub(crate) fn new(limits: BacklogLimits) -> Self {
        Self { limits, peers: HashMap::new(), instances: HashMap::new(), next: 0, dropped: 0 }
    }

    /// How many messages wait.
    pub(crate) fn len(&self) -> usize {
        self.peers.values().map(|held| held.messages.len()).sum()
    }

    /// How many messages were dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        core::mem::take(&mut self.dropped)
    }

    /// Keeps a message until its instance starts.
    pub(crate) fn push(&mut self, instance: InstanceId, mut message: Early, now: Instant) {
        let from = message.from;
        let cost = message.payload.len().saturating_add(Self::OVERHEAD);
        if cost > self.limits.bytes {
            self.dropped += 1;
            return;
        }
        while self.peers.get(&from).is_some_and(|held| {
            held.messages.len() >= self.limits.messages || held.bytes.saturating_add(cost) > self.limits.bytes
        }) {
            self.drop_oldest(from);
        }
        // A copy: a view would keep the whole receive buffer alive, far beyond what is counted.
        message.payload = Bytes::copy_from_slice(&message.payload);
        let number = self.next;
        self.next += 1;
        let held = self.peers.entry(from).or_default();
        held.bytes += cost;
        held.messages.insert(number, Waiting { instance, since: now, message });
        self.instances.entry(instance).or_default().push((from, number));
    }

    /// Takes the messages of this instance, in order of arrival.
    pub(crate) fn take(&mut self, instance: &InstanceId) -> Vec<Early> {
        let places = self.instances.remove(instance).unwrap_or_default();
        places.into_iter().filter_map(|(from, number)| Some(self.remove(from, number)?.message)).collect()
    }

    /// Whether any message waits for this instance.
    pub(crate) fn holds(&self, instance: &InstanceId) -> bool {
        self.instances.contains_key(instance)
    }

    /// The nodes whose messages wait for this instance.
    pub(crate) fn senders(&self, instance: &InstanceId) -> BTreeSet<NodeId> {
        self.instances.get(instance).into_iter().flatten().map(|(from, _)| *from).collect()
    }

    /// Drops messages that have waited for too long.
    pub(crate) fn expire(&mut self, now: Instant) {
        let parties: Vec<NodeId> = self.peers.keys().copied().collect();
        for party in parties {
            while self.oldest(party).is_some_and(|since| now.duration_since(since) >= self.limits.age) {
                self.drop_oldest(party);
            }
        }
    }

    fn oldest(&self, party: NodeId) -> Option<Instant> {
        self.peers.get(&party)?.messages.first_key_value().map(|(_, waiting)| waiting.since)
    }

    fn drop_oldest(&mut self, party: NodeId) {
        let oldest = self.peers.get(&party).and_then(|held| held.messages.first_key_value());
        let Some(number) = oldest.map(|(&number, _)| number) else { return };
        let Some(waiting) = self.remove(party, number) else { return };
        self.dropped += 1;
        if let Some(places) = self.instances.get_mut(&waiting.instance) {
            places.retain(|place| *place != (party, number));
            if places.is_empty() {
                self.instances.remove(&waiting.instance);
            }
        }
    }

    /// Removes one message from its peer's account.
    fn remove(&mut self, party: NodeId, number: u64) -> Option<Waiting> {
        let held = self.peers.get_mut(&party)?;
        let waiting = held.messages.remove(&number)?;
        held.bytes = held.bytes.saturating_sub(waiting.message.payload.len().saturating_add(Self::OVERHEAD));
        if held.messages.is_empty() {
            // An empty map takes memory, too.
            self.peers.remove(&party);
        }
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BacklogLimits = BacklogLimits { messages: 10, bytes: 10_000, age: Duration::from_secs(10) };

    fn id(n: u64) -> InstanceId {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&n.to_be_bytes());
        InstanceId(bytes)
    }

    fn early(from: u16, text: &'static str) -> Early {
        let slot = Slot { kind: 1, number: 1 };
        let channel = Channel::Broadcast;
        Early { from: NodeId::try_from(from).unwrap(), slot, channel, payload: Bytes::from_static(text.as_bytes()) }
    }

    fn texts(messages: &[Early]) -> Vec<&str> {
        messages.iter().map(|message| core::str::from_utf8(&message.payload).unwrap()).collect()
    }

    #[test]
    fn messages_come_back_in_order_and_once() {
        let mut backlog = Backlog::new(LIMITS);
        let now = Instant::now();
        backlog.push(id(1), early(2, "a"), now);
        backlog.push(id(2), early(2, "x"), now);
        backlog.push(id(1), early(3, "b"), now);
        backlog.push(id(1), early(2, "c"), now);
        assert_eq!(texts(&backlog.take(&id(1))), ["a", "b", "c"]);
        assert!(backlog.take(&id(1)).is_empty());
        assert_eq!(backlog.len(), 1);
    }

    #[test]
    fn junk_of_one_peer_evicts_only_its_own() {
        let mut backlog = Backlog::new(LIMITS);
        let now = Instant::now();
        backlog.push(id(1), early(2, "honest"), now);
        for i in 0..100_000 {
            backlog.push(id(1_000 + i), early(3, "junk"), now);
        }
        backlog.push(id(1), early(3, "late but kept"), now);
        assert_eq!(backlog.len(), 11);
        assert_eq!(backlog.instances.len(), 10);
        assert_eq!(texts(&backlog.take(&id(1))), ["honest", "late but kept"]);
        assert_eq!(backlog.take_dropped(), 99_991);
        assert_eq!(backlog.take_dropped(), 0);
    }

    #[test]
    fn bytes_are_bounded_and_given_back() {
        let mut backlog = Backlog::new(BacklogLimits { bytes: 1_000, ..LIMITS });
        let now = Instant::now();
        for i in 0..50 {
            backlog.push(id(i), early(3, "junk"), now);
        }
        assert_eq!(backlog.len(), 3);
        for i in 0..50 {
            backlog.take(&id(i));
        }
        assert_eq!((backlog.len(), backlog.peers.len(), backlog.instances.len()), (0, 0, 0));
        let huge = Early { payload: vec![0; 2_000].into(), ..early(3, "") };
        backlog.push(id(1), huge, now);
        assert_eq!(backlog.len(), 0);
    }

    #[test]
    fn old_messages_leave() {
        let mut backlog = Backlog::new(LIMITS);
        let start = Instant::now();
        backlog.push(id(1), early(2, "old"), start);
        backlog.push(id(1), early(2, "young"), start + Duration::from_secs(5));
        backlog.expire(start + Duration::from_secs(10));
        assert_eq!(texts(&backlog.take(&id(1))), ["young"]);
        assert_eq!(backlog.take_dropped(), 1);
    }
}
