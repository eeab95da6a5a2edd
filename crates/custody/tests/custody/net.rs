//! A small simulated network of custodians: messages are delivered one at a time in a seeded order, and each node's
//! disk can lose power.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rand_core::SeedableRng;
use theta_ceremonies::{CeremonyKeys, CeremonyMember};
use theta_custody::{
    CeremonyError, CeremonyReport, CeremonyState, ChangeError, ChangeReport, Custodian, CustodyEffect, CustodyInput,
    KeyEntry, Roster, To,
};
use theta_groups::Secret;
use theta_names::{Delivery, NodeId};
use theta_rounds::simulator::{SimRng, below};
use theta_schemes::Suite;
use theta_schemes::keys::KeyName;
use theta_statements::{CancelRequest, CeremonyRequest, KeyChange, StateChange};
use theta_store::{Options, SealingKey, Store, disk::SimulatedDisk};

/// Changes a node's messages: returns those that are delivered instead.
pub(crate) type Liar = Box<dyn FnMut(u16, Bytes) -> Vec<Bytes>>;

pub(crate) fn party(number: u16) -> NodeId {
    NodeId::try_from(number).unwrap()
}

pub(crate) fn name(text: &str) -> KeyName {
    text.parse().unwrap()
}

pub(crate) fn seeded(seed: u64) -> SimRng {
    SimRng::seed_from_u64(seed)
}

pub(crate) fn sealing_key() -> SealingKey {
    SealingKey::key(Secret::new([7; 32]))
}

pub(crate) fn secret_of(node: u16) -> Secret<[u8; 32]> {
    let mut secret = [0x5a; 32];
    secret[..2].copy_from_slice(&node.to_be_bytes());
    Secret::new(secret)
}

pub(crate) fn keys_of(node: u16) -> CeremonyKeys {
    CeremonyKeys::new(party(node), secret_of(node))
}

pub(crate) fn roster(k: u16, n: u16) -> Roster {
    let members: Vec<CeremonyMember> = (1..=n).map(|node| keys_of(node).member().clone()).collect();
    Roster { name: "test group".to_owned(), nodes: (1..=n).map(party).collect(), members, k, founding: None }
}

pub(crate) struct Node {
    pub(crate) disk: SimulatedDisk,
    pub(crate) custodian: Option<Custodian>,
    /// The effects that it has reported.
    pub(crate) told: Vec<CustodyEffect>,
    /// The number of inputs that it has taken.
    pub(crate) steps: usize,
}

pub(crate) struct Net {
    pub(crate) roster: Roster,
    pub(crate) nodes: BTreeMap<u16, Node>,
    pub(crate) packets: Vec<(u16, u16, Bytes)>,
    pub(crate) liars: BTreeMap<u16, Liar>,
    pub(crate) rng: SimRng,
    pub(crate) now: u64,
}

impl Net {
    pub(crate) fn new(k: u16, n: u16, seed: u64) -> Self {
        Self::of(roster(k, n), n, seed)
    }

    /// A group with this roster.
    pub(crate) fn of(roster: Roster, n: u16, seed: u64) -> Self {
        let mut net = Self {
            roster,
            nodes: BTreeMap::new(),
            packets: Vec::new(),
            liars: BTreeMap::new(),
            rng: seeded(seed),
            now: 1_795_000_000,
        };
        for number in 1..=n {
            let disk = SimulatedDisk::default();
            let options = Options::default().with_rng(seeded(seed * 1000 + u64::from(number)));
            let store = Store::create_on(disk.backend(), &sealing_key(), options).unwrap();
            store.set_identity(&secret_of(number)).unwrap();
            drop(store);
            net.nodes.insert(number, Node { disk, custodian: None, told: Vec::new(), steps: 0 });
            net.start(number);
        }
        net.connect();
        net
    }

    /// A group whose disks have the same content.
    pub(crate) fn copy(&self, seed: u64) -> Self {
        let mut net = Self {
            roster: self.roster.clone(),
            nodes: BTreeMap::new(),
            packets: Vec::new(),
            liars: BTreeMap::new(),
            rng: seeded(seed),
            now: self.now,
        };
        for (number, node) in &self.nodes {
            let disk = SimulatedDisk::with_content(node.disk.content());
            net.nodes.insert(*number, Node { disk, custodian: None, told: Vec::new(), steps: 0 });
            net.start(*number);
        }
        net.connect();
        net
    }

    pub(crate) fn node(&mut self, number: u16) -> &mut Node {
        self.nodes.get_mut(&number).unwrap()
    }

    pub(crate) fn custodian(&self, number: u16) -> &Custodian {
        self.nodes[&number].custodian.as_ref().unwrap()
    }

    /// Opens a node's store, as when its process starts.
    pub(crate) fn start(&mut self, number: u16) {
        let roster = self.roster.clone();
        let seed = below(&mut self.rng, 1 << 40);
        let node = self.node(number);
        let options = Options::default().with_rng(seeded(seed));
        let store = Store::open_on(node.disk.backend(), &sealing_key(), options).unwrap();
        node.custodian = Some(Custodian::open(Arc::new(store), party(number), roster).unwrap());
    }

    /// The node's machine loses power: unsynced writes are lost, and messages on their way to it.
    pub(crate) fn kill(&mut self, number: u16) {
        let mut rng = seeded(below(&mut self.rng, 1 << 40));
        let node = self.node(number);
        node.custodian = None;
        node.disk.fail_power(&mut rng);
        self.packets.retain(|(_, to, _)| *to != number);
    }

    /// The node's disk is replaced; only its identity is kept.
    pub(crate) fn lose_everything(&mut self, number: u16) {
        let seed = below(&mut self.rng, 1 << 40);
        let node = self.node(number);
        (node.custodian, node.disk) = (None, SimulatedDisk::default());
        let options = Options::default().with_rng(seeded(seed));
        let store = Store::create_on(node.disk.backend(), &sealing_key(), options).unwrap();
        store.set_identity(&secret_of(number)).unwrap();
        drop(store);
        self.start(number);
    }

    /// All nodes that run greet each other.
    pub(crate) fn connect(&mut self) {
        let up: Vec<u16> = self.up();
        for node in &up {
            for peer in up.iter().filter(|peer| *peer != node) {
                self.step(*node, CustodyInput::Connected(party(*peer)));
            }
        }
    }

    pub(crate) fn up(&self) -> Vec<u16> {
        self.nodes.iter().filter(|(_, node)| node.custodian.is_some()).map(|(number, _)| *number).collect()
    }

    pub(crate) fn step(&mut self, number: u16, input: CustodyInput) {
        let node = self.node(number);
        let Some(custodian) = &mut node.custodian else { return };
        node.steps += 1;
        let effects = custodian.handle(input);
        self.deliver(number, effects);
    }

    /// Puts a node's messages on their way, changed by its liar if it has one.
    pub(crate) fn deliver(&mut self, from: u16, effects: Vec<CustodyEffect>) {
        for effect in effects {
            let CustodyEffect::Send { to, bytes } = effect else {
                self.node(from).told.push(effect);
                continue;
            };
            let others: Vec<u16> = match to {
                To::One(node) => vec![node.get()],
                To::All => self.nodes.keys().copied().filter(|node| *node != from).collect(),
            };
            for to in others {
                let arriving = match self.liars.get_mut(&from) {
                    Some(liar) => liar(to, bytes.clone()),
                    None => vec![bytes.clone()],
                };
                self.packets.extend(arriving.into_iter().map(|bytes| (from, to, bytes)));
            }
        }
    }

    /// Delivers one packet in random order, or lets time pass at all nodes.
    pub(crate) fn turn(&mut self) {
        if self.packets.is_empty() {
            return self.tick();
        }
        let chosen = usize::try_from(below(&mut self.rng, self.packets.len() as u64)).unwrap();
        let (from, to, bytes) = self.packets.swap_remove(chosen);
        self.step(to, CustodyInput::Message { from: party(from), bytes });
    }

    pub(crate) fn tick(&mut self) {
        self.now += 1;
        for node in self.up() {
            self.step(node, CustodyInput::Tick(self.now));
        }
    }

    /// Goes on until no message is on its way.
    pub(crate) fn drain(&mut self) {
        while !self.packets.is_empty() {
            self.turn();
        }
    }

    /// Goes on until `so` holds, for at most `ticks` ticks.
    pub(crate) fn until(&mut self, ticks: u32, so: impl Fn(&Self) -> bool) -> bool {
        for _ in 0..ticks {
            self.drain();
            if so(self) {
                return true;
            }
            self.tick();
        }
        self.drain();
        so(self)
    }

    pub(crate) fn hold(&mut self, node: u16, request: &CeremonyRequest) -> Result<CeremonyReport, CeremonyError> {
        let mut effects = Vec::new();
        let report = self.node(node).custodian.as_mut().unwrap().hold(request.clone(), Vec::new(), &mut effects);
        self.deliver(node, effects);
        report
    }

    pub(crate) fn cancel(&mut self, node: u16, cancel: &CancelRequest) -> Result<CeremonyReport, CeremonyError> {
        let mut effects = Vec::new();
        let report = self.node(node).custodian.as_mut().unwrap().cancel(cancel, Vec::new(), &mut effects);
        self.deliver(node, effects);
        report
    }

    pub(crate) fn change(&mut self, node: u16, change: &StateChange) -> Result<ChangeReport, ChangeError> {
        let mut effects = Vec::new();
        let report = self.node(node).custodian.as_mut().unwrap().change(change, Vec::new(), &mut effects);
        self.deliver(node, effects);
        report
    }

    /// Asks these nodes for a ceremony and returns its id.
    pub(crate) fn ask(&mut self, nodes: impl IntoIterator<Item = u16>, request: &CeremonyRequest) -> [u8; 32] {
        let ids: Vec<_> = nodes.into_iter().map(|node| self.hold(node, request).unwrap().id).collect();
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "one request gave two ceremonies");
        ids[0]
    }

    /// Asks these nodes for a ceremony, and stops when the last one has heard that the group has begun it; returns its id.
    pub(crate) fn begin(&mut self, nodes: impl IntoIterator<Item = u16>, request: &CeremonyRequest) -> [u8; 32] {
        let id = self.ask(nodes, request);
        let mut turns = 0;
        while !self.begun(&id) {
            self.turn();
            turns += 1;
            assert!(turns < 20_000, "it does not begin");
        }
        id
    }

    /// Whether all nodes that run know that the group has begun it.
    pub(crate) fn begun(&self, id: &[u8; 32]) -> bool {
        self.up().iter().all(|node| self.custodian(*node).ledger().is_some_and(|ledger| ledger.request(id).is_some()))
    }

    /// Runs a ceremony at these nodes, which has to succeed; returns its id.
    pub(crate) fn run(&mut self, nodes: impl IntoIterator<Item = u16>, change: KeyChange) -> [u8; 32] {
        let request = self.request(change);
        let nodes: Vec<u16> = nodes.into_iter().collect();
        let id = self.ask(nodes.clone(), &request);
        let over = |net: &Self| nodes.iter().all(|node| net.state(*node, &id).is_over());
        assert!(
            self.until(60, over),
            "it does not end: {:?}",
            nodes.iter().map(|n| self.state(*n, &id)).collect::<Vec<_>>()
        );
        for node in &nodes {
            let state = self.state(*node, &id);
            assert!(
                matches!(state, CeremonyState::Activated { .. } | CeremonyState::Recovered),
                "node {node}: {state:?}"
            );
        }
        id
    }

    pub(crate) fn request(&mut self, change: KeyChange) -> CeremonyRequest {
        let mut nonce = [0; 32];
        nonce[..8].copy_from_slice(&below(&mut self.rng, u64::MAX).to_be_bytes());
        CeremonyRequest { nonce, change }
    }

    pub(crate) fn create(&mut self, key: &str, suite: Suite, k: u16, holders: &[u16]) -> [u8; 32] {
        self.create_for(Delivery::All, key, suite, k, holders)
    }

    pub(crate) fn create_for(
        &mut self,
        delivery: Delivery,
        key: &str,
        suite: Suite,
        k: u16,
        holders: &[u16],
    ) -> [u8; 32] {
        let change = KeyChange::Create { key: name(key), suite: suite.into(), delivery, k, holders: holders.to_vec() };
        self.run(holders.to_vec(), change)
    }

    pub(crate) fn state(&self, node: u16, id: &[u8; 32]) -> CeremonyState {
        let report = self.custodian(node).report(id);
        report.map_or(CeremonyState::Running { done: 0, of: 0 }, |report| report.state)
    }

    pub(crate) fn entry(&self, node: u16, key: &str) -> Arc<KeyEntry> {
        self.custodian(node).keys().get(key).unwrap_or_else(|| panic!("node {node} has no key {key}"))
    }

    /// Waits until a node has the key at an epoch, as a holder without a share, since it was away when shares were
    /// dealt. Then the node recovers its share.
    pub(crate) fn recovers(&mut self, node: u16, key: &str, epoch: u32) {
        let knows = |net: &Self| net.custodian(node).keys().get(key).is_some_and(|entry| entry.epoch.get() == epoch);
        assert!(self.until(60, knows), "node {node} does not hear of epoch {epoch}");
        assert!(self.entry(node, key).expose_share().is_none());
        let (holders, up) = (self.entry(node, key).holders.clone(), self.up());
        let holders: Vec<u16> =
            holders.iter().map(|holder| holder.get()).filter(|holder| up.contains(holder)).collect();
        self.until(10, |_| false);
        self.run(holders, KeyChange::Recover { key: name(key), version: None, node });
        assert_eq!(self.epoch(node, key), Some(epoch));
    }

    /// The epoch at which a node holds a share of the key.
    pub(crate) fn epoch(&self, node: u16, key: &str) -> Option<u32> {
        let entry = self.custodian(node).keys().get(key)?;
        entry.has_share().then_some(entry.epoch.get())
    }
}
