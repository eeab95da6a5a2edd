//! A group of certifiers over a network that the test controls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use theta_ceremonies::CeremonyKeys;
use theta_custody::{
    Certifier, CertifierEffect, Equivocation, Roster, SlotClaim, SlotRefusal, SlotStanding, Ticket, To,
};
use theta_groups::Secret;
use theta_names::{NodeId, SlotOrder};
use theta_policy::{MemorySlots, SlotDecision, SlotScope, SlotState};
use theta_statements::Digest;

pub(super) const DEADLINE: u64 = 60_000;

pub(super) fn party(node: u16) -> NodeId {
    NodeId::try_from(node).unwrap()
}

pub(super) fn keys(node: u16) -> CeremonyKeys {
    CeremonyKeys::new(party(node), Secret::new([u8::try_from(node).unwrap(); 32]))
}

/// A group of n nodes with threshold k.
pub(super) struct Group {
    k: u16,
    n: u16,
    pub(super) now: u64,
    pub(super) nodes: BTreeMap<u16, Node>,
    pub(super) wire: Vec<(u16, u16, Bytes)>,
    /// Nodes that neither receive nor send.
    pub(super) away: BTreeSet<u16>,
    pub(super) messages: usize,
}

pub(super) struct Node {
    pub(super) certifier: Certifier,
    pub(super) memory: Arc<MemorySlots>,
    verdicts: BTreeMap<Ticket, Result<(), SlotRefusal>>,
    pub(super) culprits: Vec<(u16, String)>,
    pub(super) lies: Vec<Equivocation>,
}

impl Group {
    pub(super) fn new(k: u16, n: u16) -> Self {
        let mut group =
            Self { k, n, now: 0, nodes: BTreeMap::new(), wire: Vec::new(), away: BTreeSet::new(), messages: 0 };
        (1..=n).for_each(|node| group.start(node, Arc::default()));
        group
    }

    pub(super) fn start(&mut self, node: u16, memory: Arc<MemorySlots>) {
        let roster = Roster {
            name: "group".to_owned(),
            nodes: (1..=self.n).map(party).collect(),
            members: (1..=self.n).map(|node| keys(node).member().clone()).collect(),
            k: self.k,
            founding: None,
        };
        let kept = Box::new(Arc::clone(&memory));
        let certifier = Certifier::new(roster, party(node), Some(Arc::new(keys(node))), kept);
        let node_of = Node { certifier, memory, verdicts: BTreeMap::new(), culprits: Vec::new(), lies: Vec::new() };
        self.nodes.insert(node, node_of);
    }

    /// A client's request at a node: the node's memory decides, then the request waits for the certificate.
    pub(super) fn ask(&mut self, node: u16, digest: Digest) -> Ticket {
        self.ask_by(node, digest, "heights", SlotOrder::Any)
    }

    pub(super) fn ask_by(&mut self, node: u16, digest: Digest, rule: &str, order: SlotOrder) -> Ticket {
        self.ask_slot(node, digest, rule, order, 7)
    }

    pub(super) fn ask_slot(&mut self, node: u16, digest: Digest, rule: &str, order: SlotOrder, slot: u64) -> Ticket {
        let at = self.nodes.get_mut(&node).unwrap();
        let scope = SlotScope { key: "chain", rule };
        let standing = match at.memory.decide(scope, slot, digest, order).unwrap() {
            SlotDecision::Allowed | SlotDecision::Same => SlotStanding::Taken,
            SlotDecision::Conflict { previous } => SlotStanding::Contested { previous: Digest(previous) },
            SlotDecision::Below { mark } => SlotStanding::Over { mark },
        };
        let rule = rule.parse().unwrap();
        let claim = SlotClaim { key: "chain".to_owned(), rule, slot, digest, standing };
        let mut effects = Vec::new();
        let ticket = at.certifier.claim(self.now, self.k, &[claim], self.now + DEADLINE, &mut effects);
        self.carry(node, effects);
        ticket
    }

    fn carry(&mut self, node: u16, effects: Vec<CertifierEffect>) {
        for effect in effects {
            let at = self.nodes.get_mut(&node).unwrap();
            match effect {
                CertifierEffect::Send { to: To::All, bytes } => {
                    let others = (1..=self.n).filter(|to| *to != node);
                    self.wire.extend(others.map(|to| (node, to, bytes.clone())));
                }
                CertifierEffect::Send { to: To::One(to), bytes } => self.wire.push((node, to.get(), bytes)),
                CertifierEffect::Decided { ticket, verdict } => {
                    assert!(at.verdicts.insert(ticket, verdict).is_none(), "decided once");
                }
                CertifierEffect::Culprit { node, offence } => at.culprits.push((node.get(), offence.to_string())),
                CertifierEffect::Equivocation(lie) => at.lies.push(*lie),
            }
        }
    }

    pub(super) fn receive(&mut self, from: u16, to: u16, bytes: &Bytes) {
        self.messages += 1;
        let mut effects = Vec::new();
        let node = self.nodes.get_mut(&to).unwrap();
        node.certifier.receive(self.now, party(from), bytes, &mut effects);
        self.carry(to, effects);
    }

    /// Delivers all messages in a seeded order.
    pub(super) fn settle(&mut self, rng: &mut ChaCha8Rng) {
        while !self.wire.is_empty() {
            let place = usize::try_from(rng.next_u64() % self.wire.len() as u64).unwrap();
            let (from, to, bytes) = self.wire.swap_remove(place);
            if !self.away.contains(&from) && !self.away.contains(&to) {
                self.receive(from, to, &bytes);
            }
        }
    }

    pub(super) fn pass(&mut self, millis: u64, rng: &mut ChaCha8Rng) {
        let end = self.now + millis;
        while self.now < end {
            self.now += 50;
            for node in 1..=self.n {
                let mut effects = Vec::new();
                self.nodes.get_mut(&node).unwrap().certifier.tick(self.now, &mut effects);
                self.carry(node, effects);
            }
            self.settle(rng);
        }
    }

    pub(super) fn verdict(&self, node: u16, ticket: Ticket) -> Option<&Result<(), SlotRefusal>> {
        self.nodes[&node].verdicts.get(&ticket)
    }
}

pub(super) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}
