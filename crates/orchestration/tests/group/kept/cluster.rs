//! A whole group with custodians on one thread; a seed determines the order of messages.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::gated::{Engine, Request};
use bytes::Bytes;
use prometheus_client::{encoding::text::encode, registry::Registry};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use theta_custody::{CeremonyReport, CeremonyState, KeyEntry};
use theta_names::{Delivery, NodeId};
use theta_network::{Inbound, PeerState, PeerStatus, SendError, Transport};
use theta_orchestration::{OrchestratorConfig, Pending};
use theta_schemes::Suite;
use theta_statements::KeyChange;
use tokio::time::Instant;

use super::members::{Member, ceremony, create, name};
use crate::{group::config, wire::peer};

/// Keeps its node's messages until the cluster takes them.
pub(crate) struct Outbox {
    local: u16,
    n: u16,
    sent: Mutex<VecDeque<(u16, Bytes)>>,
}

impl Outbox {
    /// The outbox of node `local`, one of nodes 1 to `n`.
    pub(crate) fn new(local: u16, n: u16) -> Arc<Self> {
        Arc::new(Self { local, n, sent: Mutex::default() })
    }

    /// The messages since the last call, with their recipients.
    pub(crate) fn take(&self) -> VecDeque<(u16, Bytes)> {
        core::mem::take(&mut *self.sent.lock().unwrap())
    }
}

impl Transport for Outbox {
    fn local(&self) -> NodeId {
        peer(self.local)
    }

    fn peers(&self) -> Vec<NodeId> {
        (1..=self.n).filter(|id| *id != self.local).map(peer).collect()
    }

    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        self.sent.lock().unwrap().push_back((to.get(), message));
        Ok(())
    }

    fn status(&self) -> Vec<PeerStatus> {
        let (state, last_error, address) = (PeerState::Connected, None, String::new());
        let status = |peer| PeerStatus {
            peer,
            address: address.clone(),
            state,
            last_error: last_error.clone(),
            queued: 0,
            latency: None,
        };
        self.peers().into_iter().map(status).collect()
    }
}

/// What a liar sends in place of a message.
type Lie = fn(&Bytes) -> Bytes;

/// Engines with custodians.
pub(crate) struct Cluster {
    pub(crate) members: Vec<Member>,
    engines: BTreeMap<u16, (Engine, Arc<Outbox>, Registry)>,
    /// Messages on their way.
    packets: Vec<(u16, u16, Bytes)>,
    /// Nodes that neither receive nor send.
    pub(crate) cut: BTreeSet<u16>,
    /// A node that sends something else than its engine does.
    pub(crate) liar: Option<(u16, Lie)>,
    pub(crate) limits: OrchestratorConfig,
    rng: ChaCha20Rng,
    began: Instant,
    now: Instant,
    ceremonies: u8,
    /// All messages that were ever delivered.
    pub(crate) log: Vec<(u16, u16, Bytes)>,
}

impl Cluster {
    /// Nodes 1 to `n`, any `k` of which the group trusts, without keys.
    pub(crate) fn new(k: u16, n: u16, seed: u64) -> Self {
        Self::with_limits(k, n, seed, &config())
    }

    /// The same with these limits, except for how soon nodes ask again.
    /// A cluster all of whose nodes hold one key, called `key`, and keep stocks of this level for it.
    pub(crate) fn of_key(suite: Suite, delivery: Delivery, (k, n): (u16, u16), level: usize, seed: u64) -> Self {
        let limits = OrchestratorConfig { nonces_per_peer: level, ..config() };
        let mut cluster = Self::with_limits(k, n, seed, &limits);
        let holders: Vec<u16> = (1..=n).collect();
        let (key, suite) = (name("key"), suite.into());
        cluster.hold(&holders, KeyChange::Create { key, suite, delivery, k, holders: holders.clone() });
        cluster
    }

    pub(crate) fn with_limits(k: u16, n: u16, seed: u64, limits: &OrchestratorConfig) -> Self {
        let limits = OrchestratorConfig { resend_after: Duration::from_millis(200), ..limits.clone() };
        let began = Instant::now();
        let mut cluster = Self {
            members: Member::group(k, n),
            engines: BTreeMap::new(),
            packets: Vec::new(),
            cut: BTreeSet::new(),
            liar: None,
            limits,
            rng: ChaCha20Rng::seed_from_u64(seed),
            began,
            now: began,
            ceremonies: 0,
            log: Vec::new(),
        };
        (1..=n).for_each(|id| cluster.start(id));
        cluster
    }

    /// A cluster in which all nodes have made a key together; it is named `key`.
    pub(crate) fn with_key(suite: Suite, k: u16, holders: &[u16], n: u16, seed: u64) -> Self {
        let mut cluster = Self::new(k, n, seed);
        cluster.hold(holders, create("key", suite, k, holders));
        cluster
    }

    /// Starts a node's process.
    pub(crate) fn start(&mut self, id: u16) {
        let n = u16::try_from(self.members.len()).unwrap();
        let outbox = Outbox::new(id, n);
        let mut seed = [0; 32];
        self.rng.fill_bytes(&mut seed);
        let custodian = self.members[usize::from(id) - 1].custodian(self.rng.next_u64());
        let mut registry = Registry::default();
        let transport = Arc::clone(&outbox) as Arc<dyn Transport>;
        let engine = Engine::new(self.limits.clone(), custodian, transport, &mut registry, seed, self.now).unwrap();
        self.engines.insert(id, (engine, outbox, registry));
    }

    /// A node's machine loses power; messages on their way to it are lost.
    pub(crate) fn kill(&mut self, id: u16) {
        self.engines.remove(&id);
        let seed = self.rng.next_u64();
        self.members[usize::from(id) - 1].fail_power(seed);
        self.packets.retain(|(_, to, _)| *to != id);
    }

    pub(crate) fn engine(&mut self, id: u16) -> &mut Engine {
        &mut self.engines.get_mut(&id).unwrap().0
    }

    /// Messages that a node has sent and that are not on their way yet; they get lost.
    pub(crate) fn sent(&self, id: u16) -> VecDeque<(u16, Bytes)> {
        self.engines[&id].1.take()
    }

    pub(crate) fn ids(&self) -> Vec<u16> {
        self.engines.keys().copied().collect()
    }

    pub(crate) fn key(&self, id: u16) -> Arc<KeyEntry> {
        self.engines[&id].0.keys().get("key").unwrap()
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.rng.next_u64() % u64::try_from(bound).unwrap()).unwrap()
    }

    /// Puts the nodes' messages on their way; returns whether there are any.
    fn collect(&mut self) -> bool {
        for (from, (_, outbox, _)) in &self.engines {
            for (to, bytes) in outbox.take() {
                if !self.cut.contains(from) && !self.cut.contains(&to) {
                    self.packets.push((*from, to, bytes));
                }
            }
        }
        !self.packets.is_empty()
    }

    /// Delivers any one message; if there is none, time passes.
    pub(crate) fn turn(&mut self) {
        if !self.collect() {
            return self.pass(Duration::from_millis(50));
        }
        let chosen = self.below(self.packets.len());
        let (from, to, bytes) = self.packets.swap_remove(chosen);
        let bytes = match self.liar {
            Some((liar, lie)) if liar == from => lie(&bytes),
            _ => bytes,
        };
        self.log.push((from, to, bytes.clone()));
        if let Some((engine, _, _)) = self.engines.get_mut(&to) {
            engine.receive(Inbound { from: peer(from), channel: theta_names::Channel::Private, bytes });
        }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        let unix = 1_795_000_000 + self.now.duration_since(self.began).as_secs();
        for (engine, _, _) in self.engines.values_mut() {
            engine.tick(self.now, unix);
        }
    }

    /// Goes on until `so` holds.
    pub(crate) fn until(&mut self, what: &str, mut so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..200_000 {
            if so(self) {
                return;
            }
            self.turn();
        }
        panic!("not in time: {what}");
    }

    /// Asks these nodes for a ceremony, and returns its id.
    pub(crate) fn begin(&mut self, nodes: &[u16], change: KeyChange) -> [u8; 32] {
        self.ceremonies += 1;
        let request = ceremony(self.ceremonies, change);
        let ids: Vec<_> = nodes.iter().map(|id| self.engine(*id).hold(request.clone()).unwrap().id).collect();
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]));
        ids[0]
    }

    pub(crate) fn report(&self, node: u16, id: &[u8; 32]) -> Option<CeremonyReport> {
        self.engines.get(&node)?.0.custodian().unwrap().report(id)
    }

    /// Whether a ceremony has ended well at a node.
    pub(crate) fn is_done(&self, node: u16, id: &[u8; 32]) -> bool {
        let Some(report) = self.report(node, id) else { return false };
        let good = matches!(report.state, CeremonyState::Activated { .. } | CeremonyState::Recovered);
        assert!(good || !report.state.is_over(), "node {node}: {report:?}");
        good
    }

    /// Runs a ceremony at these nodes, which has to succeed.
    pub(crate) fn hold(&mut self, nodes: &[u16], change: KeyChange) {
        let id = self.begin(nodes, change);
        self.until("the ceremony ends", |cluster| nodes.iter().all(|node| cluster.is_done(*node, &id)));
    }

    pub(crate) fn submit(&mut self, node: u16, request: &Request) -> Pending {
        self.engine(node).submit(request.clone()).unwrap()
    }

    /// The value of one metric of a node, named with its labels; 0 if it is not there.
    pub(crate) fn metric(&self, node: u16, name: &str) -> f64 {
        let mut text = String::new();
        encode(&mut text, &self.engines[&node].2).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }
}
