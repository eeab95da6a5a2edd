//! One real node on a simulated disk, with an outbox in place of a network.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use prometheus_client::registry::Registry;
use prost::Message as _;
use theta_authority::Gate;
use theta_custody::{Certifier, Custodian, StoreSlots};
use theta_names::{NodeId, SlotOrder};
use theta_network::{PeerState, PeerStatus, SendError, Transport};
use theta_orchestration::{Engine, Keys, Pending};
use theta_policy::{MemorySlots, Policy, SlotDecision, SlotScope, SlotState, SlotStateError};
use theta_statements::Digest;
use theta_store::{Incarnation, Options, Store, disk::SimulatedDisk};
use theta_wire::peer::{Envelope, INSTANCES};
use tokio::time::Instant;

use crate::byzantine::Liar;
use crate::group::{Failed, GROUP, identity, party};
use crate::scenario::Sabotage;
use crate::setup::{Setup, sealing_key, seeded};
use crate::watch::{PRESIGNATURE_LEN, PRESIGNED};

/// Longer than any run.
const NEVER: Duration = Duration::from_secs(36_000);

/// Keeps the messages of its node until the network takes them.
pub(crate) struct Outbox {
    local: NodeId,
    peers: Vec<NodeId>,
    sent: Mutex<Vec<(u16, Bytes)>>,
    /// The nodes to which there is a connection.
    pub(crate) reached: Mutex<BTreeSet<NodeId>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Outbox {
    pub(crate) fn take(&self) -> Vec<(u16, Bytes)> {
        core::mem::take(&mut lock(&self.sent))
    }

    pub(crate) fn reach(&self, nodes: impl Iterator<Item = u16>) {
        *lock(&self.reached) = nodes.filter_map(|node| NodeId::try_from(node).ok()).collect();
    }
}

impl Transport for Outbox {
    fn local(&self) -> NodeId {
        self.local
    }

    fn peers(&self) -> Vec<NodeId> {
        self.peers.clone()
    }

    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        if !self.peers.contains(&to) {
            return Err(SendError::UnknownPeer(to));
        }
        lock(&self.sent).push((to.get(), message));
        Ok(())
    }

    fn status(&self) -> Vec<PeerStatus> {
        let reached = lock(&self.reached).clone();
        let status = |peer: &NodeId| PeerStatus {
            peer: *peer,
            address: "simulated".to_owned(),
            state: if reached.contains(peer) { PeerState::Connected } else { PeerState::Connecting },
            last_error: None,
            queued: 0,
            latency: None,
        };
        self.peers.iter().map(status).collect()
    }
}

/// The node's record of the slots that it has given away, normally in its store.
pub(crate) enum Slots {
    Stored(StoreSlots),
    /// A deliberate bug: in memory only.
    Forgotten(MemorySlots),
}

impl SlotState for Slots {
    fn decide(
        &self,
        scope: SlotScope<'_>,
        slot: u64,
        digest: Digest,
        order: SlotOrder,
    ) -> Result<SlotDecision, SlotStateError> {
        match self {
            Self::Forgotten(slots) => slots.decide(scope, slot, digest, order),
            Self::Stored(slots) => slots.decide(scope, slot, digest, order),
        }
    }

    fn decided(&self, scope: SlotScope<'_>, slot: u64) -> Result<Option<Digest>, SlotStateError> {
        match self {
            Self::Forgotten(slots) => slots.decided(scope, slot),
            Self::Stored(slots) => slots.decided(scope, slot),
        }
    }
}

/// The state that a crash destroys.
pub(crate) struct Life {
    pub(crate) engine: Engine,
    pub(crate) gate: Gate<Slots>,
    /// The requests that the node accepted, by their position in the scenario.
    pub(crate) pending: Vec<(usize, Pending)>,
    /// The generation of the key table at the last check of what is permitted.
    pub(crate) generation: u64,
}

/// A node, running or not.
pub(crate) struct Node {
    pub(crate) number: u16,
    pub(crate) disk: SimulatedDisk,
    /// A copy of its disk, and the incarnation of the store in it.
    pub(crate) copy: Option<(Vec<u8>, Incarnation)>,
    pub(crate) life: Option<Life>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) liar: Option<Liar>,
    pub(crate) lives: u64,
    /// When it was started last, in milliseconds.
    pub(crate) since: u64,
    /// The error of its wall clock, in seconds.
    pub(crate) wall: i64,
    /// The time until which it is paused.
    pub(crate) paused: u64,
    /// The name of the first presignature with which it signed, for [`Self::sign_again`].
    first_used: Option<Bytes>,
}

impl Node {
    /// `last` is the highest number of a node that there is or will be.
    pub(crate) fn new(number: u16, setup: &Setup, last: u16, liar: Option<Liar>) -> Result<Self, Failed> {
        let peer = |node: u16| NodeId::try_from(node).map_err(|_| "node 0".to_owned());
        let peers = (1..=last).filter(|node| *node != number).map(peer).collect::<Result<Vec<_>, _>>()?;
        let outbox =
            Outbox { local: peer(number)?, peers, sent: Mutex::default(), reached: Mutex::new(BTreeSet::new()) };
        let (disk, outbox) = (setup.disk(number)?, Arc::new(outbox));
        Ok(Self {
            number,
            disk,
            copy: None,
            life: None,
            outbox,
            liar,
            lives: 0,
            since: 0,
            wall: 0,
            paused: 0,
            first_used: None,
        })
    }

    /// Another machine in the node's place: it draws nothing that this one drew.
    pub(crate) fn second(&self, disk: SimulatedDisk) -> Self {
        let (local, peers) = (self.outbox.local, self.outbox.peers.clone());
        let outbox = Outbox { local, peers, sent: Mutex::default(), reached: Mutex::new(BTreeSet::new()) };
        let (number, lives) = (self.number, 1 << 20);
        let (wall, paused) = (0, 0);
        Self {
            number,
            disk,
            copy: None,
            life: None,
            outbox: Arc::new(outbox),
            liar: None,
            lives,
            since: 0,
            wall,
            paused,
            first_used: None,
        }
    }

    /// Starts the node as its process would.
    pub(crate) fn start(
        &mut self,
        (seed, kept): (u64, bool),
        (setup, policy): (&Setup, &Policy),
        now: Instant,
        sabotage: Option<Sabotage>,
    ) -> Result<(), Failed> {
        let drawn = if sabotage == Some(Sabotage::SameNonces) { 1 } else { self.lives };
        let stream = (u64::from(self.number) << 32) | drawn;
        self.lives += 1;
        let options = Options::default().with_rng(seeded(seed ^ 1, stream | (1 << 48)));
        let store = Store::open_on(self.disk.backend(), &sealing_key(), options).map_err(|error| error.to_string())?;
        let store = Arc::new(store);
        let keys: Keys = if kept {
            let (local, roster) = (party(self.number)?, setup.roster_of(self.number)?);
            let custodian = Custodian::open(Arc::clone(&store), local, roster);
            custodian.map_err(|error| error.to_string())?.into()
        } else {
            let (group, local, identity) = (setup.roster.clone(), party(self.number)?, identity(self.number)?);
            let memory = Box::new(StoreSlots::new(Arc::clone(&store)));
            let certifier = Certifier::new(group, local, Some(Arc::new(identity)), memory);
            Keys::Guarded(Arc::new(setup.table(self.number)?), Box::new(certifier))
        };
        let mut engine_seed = [0; 32];
        rand_chacha::rand_core::Rng::fill_bytes(&mut seeded(seed, stream), &mut engine_seed);
        let mut config = setup.config.clone();
        if sabotage == Some(Sabotage::NoLimits) {
            (config.max_instances, config.backlog_messages_per_peer) = (10_000, 10_000);
        }
        if sabotage == Some(Sabotage::NeverHedges) {
            (config.hedge_after, config.resend_after) = (NEVER, NEVER);
        }
        let transport = Arc::clone(&self.outbox) as Arc<dyn Transport>;
        let engine = Engine::new(config, keys, transport, &mut Registry::default(), engine_seed, now);
        let slots = match sabotage {
            Some(Sabotage::ForgetsSlots) => Slots::Forgotten(MemorySlots::default()),
            _ => Slots::Stored(StoreSlots::new(store)),
        };
        let engine = engine.map_err(|error| error.to_string())?;
        self.life = Some(Life {
            engine,
            gate: Gate::new(GROUP, party(self.number)?, policy.clone(), slots),
            pending: Vec::new(),
            generation: 0,
        });
        Ok(())
    }

    /// A deliberate bug: a message with a share of a presignature names the first one that this node has used, whichever it is of.
    pub(crate) fn sign_again(&mut self, bytes: Bytes) -> Bytes {
        let Ok(mut envelope) = Envelope::decode(bytes.clone()) else { return bytes };
        let Some((name, rest)) = envelope.payload.split_at_checked(PRESIGNATURE_LEN) else { return bytes };
        if envelope.stream != INSTANCES || envelope.kind != PRESIGNED {
            return bytes;
        }
        let first = self.first_used.get_or_insert_with(|| Bytes::copy_from_slice(name));
        envelope.payload = [first, rest].concat().into();
        envelope.encode_to_vec().into()
    }

    /// The node loses power.
    pub(crate) fn crash(&mut self, rng: &mut impl rand_chacha::rand_core::Rng) {
        self.life = None;
        self.outbox.take();
        self.disk.fail_power(rng);
    }

    /// The time on the node's wall clock, in seconds since 1970.
    pub(crate) fn wall_clock(&self, now: u64) -> u64 {
        (crate::group::EPOCH + now / 1_000).saturating_add_signed(self.wall)
    }
}

/// The moment this many milliseconds after another.
pub(crate) fn after(base: Instant, now: u64) -> Instant {
    base + Duration::from_millis(now)
}
