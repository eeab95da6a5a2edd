//! What all threads of an orchestrator share.

use std::sync::{
    Arc, Mutex, PoisonError, RwLock,
    atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release},
};

use bytes::Bytes;
use theta_custody::{KeyEntry, KeyTable, Members, Quarantines, Standing, StoreStanding};
use theta_names::NodeId;
use theta_network::{SendError, Transport, doorway::Occasionally};
use theta_protocols::ecdsa;
use theta_schemes::MadeAhead;
use tokio::{sync::watch, time::Instant};
use tracing::{debug, error, warn};

use super::Content;
use crate::{
    Culprit, OrchestratorConfig, Stock,
    burning::{Burning, Today},
    culprits::Culprits,
    filling::Fillings,
    metrics::Metrics,
    quota::Quota,
};

/// The load of an orchestrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Instances that run.
    pub running: usize,
    /// The limit of running instances.
    pub max_running: usize,
    /// Requests that wait for a CPU thread.
    pub queued: usize,
    /// The limit of waiting requests.
    pub max_queued: usize,
    /// Computations that wait or run.
    pub computations: usize,
    /// Commands of all kinds that wait for CPU threads.
    pub inbox: usize,
    /// Early messages that wait for their requests.
    pub backlog: usize,
    /// Results that are kept.
    pub results: usize,
}

/// What all threads of an orchestrator share. A request takes none of its locks except those of the histograms.
pub(crate) struct Shared {
    pub(crate) config: OrchestratorConfig,
    pub(crate) keys: Arc<KeyTable>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) local: NodeId,
    /// The other nodes, ascending: they change while the node runs.
    pub(crate) peers: RwLock<Arc<[NodeId]>>,
    pub(crate) metrics: Metrics,
    pub(crate) culprits: Culprits,
    pub(crate) running: Arc<Quota>,
    pub(crate) queued: Arc<Quota>,
    pub(crate) statements: Arc<Quota>,
    pub(crate) computations: Arc<Quota>,
    pub(crate) shards: Vec<ShardLoad>,
    pub(crate) stopping: AtomicBool,
    /// The standing of the custodian's store, if there is one: whether peers have confirmed that it is not an old copy.
    pub(crate) store: Option<StoreStanding>,
    /// Records which holders of a key compute no more together, if there is a store.
    pub(crate) quarantines: Option<Quarantines>,
    /// Why the store failed, until it has recovered.
    pub(crate) failure: Failure,
    /// Why this machine serves no more: its member has left the group, or has another one.
    pub(crate) departure: Failure,
    /// Whether this node has not caught up yet with what the group has decided.
    pub(crate) behind: AtomicBool,
    /// The members as the ledger has them.
    pub(crate) members: watch::Sender<Option<Members>>,
    /// Who fills the stocks of presignatures.
    pub(crate) fillings: Arc<Fillings>,
    /// Bounds what programs of all keys leave to later ones.
    pub(crate) set_up_room: ecdsa::SetUpRoom,
    /// Records used nonces, if the node is configured to.
    pub(crate) burning: Burning,
    pub(crate) today: Today,
    /// Lines about instances that fail: a client can make as many fail as it likes.
    pub(crate) failures: Occasionally,
    /// Lines about programs that failed a check, by cause.
    pub(crate) failed_programs: [Occasionally; 3],
}

/// A failure that may pass. Checking that there is none takes no lock.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    is: AtomicBool,
    why: Mutex<String>,
}

impl Failure {
    pub(crate) fn get(&self) -> Option<String> {
        let why = || self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.is.load(Acquire).then(why)
    }

    pub(crate) fn set(&self, text: String) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = text;
        self.is.store(true, Release);
    }

    pub(crate) fn clear(&self) {
        self.is.store(false, Release);
    }
}

/// What one shard holds, for reports of the load.
#[derive(Debug, Default)]
pub(crate) struct ShardLoad {
    pub(crate) inbox: AtomicUsize,
    pub(crate) backlog: AtomicUsize,
    pub(crate) results: AtomicUsize,
    /// Computations that wait or run on the shard.
    computing: AtomicUsize,
    /// The ticks that the shard wants.
    pub(crate) ticks: watch::Sender<Ticks>,
}

/// The ticks that a shard wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// Whether nothing waits for the regular ones.
    pub(crate) none: bool,
    /// When to send one in any case.
    pub(crate) alarm: Option<Instant>,
}

impl ShardLoad {
    pub(crate) fn computing(&self) -> usize {
        self.computing.load(Relaxed)
    }
}

/// Marks a computation on its shard, from when the shard is chosen until the computation has run or is dropped.
pub(crate) struct Computing(Arc<Shared>, usize);

impl Computing {
    pub(crate) fn on(shared: &Arc<Shared>, shard: usize) -> Self {
        if let Some(load) = shared.shards.get(shard) {
            load.computing.fetch_add(1, Relaxed);
        }
        Self(Arc::clone(shared), shard)
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        if let Some(load) = self.0.shards.get(self.1) {
            load.computing.fetch_sub(1, Relaxed);
        }
    }
}

impl Shared {
    /// Records a culprit: in the list, the metric and, at a bounded rate, the log.
    pub(crate) fn blame(&self, culprit: Culprit) {
        self.metrics.culprit(culprit.party, culprit.offence.name());
        let (party, instance) = (culprit.party, culprit.instance);
        let misbehaviour = culprit.offence.to_string();
        if self.culprits.push(culprit) {
            warn!(node = party.get(), misbehaviour, %instance, "a node misbehaved");
        }
    }

    /// Records that a node takes part in what an agent of this one refuses: a few in a minute in the list, and the node once in the log. A client that asks
    /// the two for different things can make as many of these as it likes.
    pub(crate) fn note_dispute(&self, culprit: &Culprit) {
        self.metrics.culprit(culprit.party, culprit.offence.name());
        let Some(Some(left_out)) = self.culprits.noise(culprit) else { return };
        let (node, instance) = (culprit.party.get(), culprit.instance);
        warn!(node, %instance, left_out, "a node takes part in a request that an agent of this node refuses; more of it is counted, and told once a minute");
    }

    /// Records bytes that are no message at all as a culprit's. A peer can send these faster than anything else, and they are read before anybody has had
    /// a turn: so a few in a minute go into the list, the peer is named once in it, and all others are counted only.
    pub(crate) fn blame_for_noise(&self, culprit: &Culprit) {
        self.metrics.culprit(culprit.party, culprit.offence.name());
        let Some(line) = self.culprits.noise(culprit) else { return };
        if let Some(left_out) = line {
            let (node, misbehaviour) = (culprit.party.get(), culprit.offence.to_string());
            warn!(
                node,
                misbehaviour,
                left_out,
                "a node sends what is no message; more of it is counted, and named once a minute"
            );
        }
    }

    /// Somebody cheated among these holders. The key's stock knows it first, so that no request that begins on another thread gives them a further
    /// program while the store writes. Then the calling thread waits until it is durable, and does nothing else before, so that no restart lets them
    /// try again. A set is found once in an epoch, so this is rare; what is known already changes nothing.
    pub(super) fn quarantine(&self, key: &KeyEntry, found: &ecdsa::Quarantine) {
        if !key.stock.quarantine(found.clone()) {
            return;
        }
        let (name, phase) = (key.qualified_name(), &found.phase);
        warn!(key = %name, %phase, "somebody cheated: this node computes no more with these holders until the key has new shares");
        match self.quarantines.as_ref().map(|quarantines| quarantines.record(key, found)) {
            None | Some(Ok(true)) => {}
            Some(Ok(false)) => {
                warn!(key = %name, "a quarantine was not put on record: the key has new shares by now, or too many quarantines");
            }
            Some(Err(error)) => {
                error!(key = %name, %error, "a quarantine was not put on record: it is in memory alone");
            }
        }
    }

    /// A program has failed a check, and it is not known by whom: a counter for each of these that is another node, so that one that is in all of them
    /// shows, and a line of the log at a bounded rate for each cause. A cheat makes as many of these as it is asked into programs.
    pub(super) fn note_failure(
        &self,
        key: &KeyEntry,
        holders: impl Iterator<Item = NodeId>,
        cause: ecdsa::Cause,
        phase: &str,
    ) {
        let others: Vec<u16> = holders.filter(|node| *node != self.local).map(NodeId::get).collect();
        others.iter().for_each(|node| self.metrics.failed_program(*node, cause.name()));
        let key = key.qualified_name();
        let line = match cause {
            ecdsa::Cause::Check => &self.failed_programs[0],
            ecdsa::Cause::Restart => &self.failed_programs[1],
            ecdsa::Cause::Apart => &self.failed_programs[2],
        };
        line.warn(format_args!(
            "a program of nodes {others:?} and this one for the key {key} came to nothing: {phase}; one of them cheated, or began anew in the middle \
             (theta_failed_programs_total has the cause {})",
            cause.name()
        ));
    }

    /// How much a node should have ahead of signatures with a key; 0 if it makes nothing in advance.
    ///
    /// Nothing is made for most keys with a dishonest majority: every signature takes a program of its own.
    pub(super) fn stock_level(&self, entry: &KeyEntry) -> usize {
        if ecdsa::keeps_stock(entry.delivery, entry.public.threshold()) { self.config.nonces_per_peer } else { 0 }
    }

    /// What this node has ahead of signatures with a key.
    pub(crate) fn stock(&self, entry: &KeyEntry) -> Option<Stock> {
        let per_peer = Some(self.stock_level(entry)).filter(|level| *level > 0 && entry.has_share())?;
        let made = entry.suite.made_ahead()?;
        let (ready, level) = match made {
            MadeAhead::Presignatures => (entry.stock.presignatures_ready(), per_peer),
            MadeAhead::Commitments => {
                (entry.stock.commitments_ready(), per_peer.saturating_mul(entry.holders.len().saturating_sub(1)))
            }
        };
        Some(Stock { kind: made.name(), ready, level })
    }

    /// The other nodes, ascending.
    pub(crate) fn peers(&self) -> Arc<[NodeId]> {
        Arc::clone(&self.peers.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes over which peers the transport has.
    pub(crate) fn follow_transport(&self) {
        *self.peers.write().unwrap_or_else(PoisonError::into_inner) = self.transport.peers().into();
    }

    /// The ledger has these members: whoever speaks for none of them serves no more.
    pub(crate) fn seat(&self, members: Members) {
        let node = self.local.get();
        match members.standing {
            Standing::Member => self.departure.clear(),
            Standing::Gone if members.cards.iter().any(|(member, _)| *member == self.local) => {
                error!(node, height = members.height, "another machine is in this one's place: this one serves no more");
                self.departure.set(format!(
                    "another machine has taken the place of this one as node {node}: ask the group's other nodes, and follow the ledger"
                ));
            }
            Standing::Gone => {
                error!(node, height = members.height, "this node has left the group: it serves no more");
                self.departure.set(format!(
                    "node {node} has left the group: ask the group's other nodes, and follow the ledger"
                ));
            }
            Standing::Expected => self.departure.set(format!(
                "this machine is not a member yet: it reads the group's ledger, and becomes node {node} when the group has decided it"
            )),
        }
        self.members.send_replace(Some(members));
    }

    /// Sends to one peer; does nothing if the node is none. A peer that cannot take the message now will ask for it
    /// later.
    pub(crate) fn send_to(&self, peer: NodeId, bytes: Bytes) {
        // Transports list peers in ascending order.
        if self.peers().binary_search(&peer).is_err() {
            return;
        }
        if let Err(error) = self.transport.send(peer, bytes) {
            self.not_sent(error);
        }
    }

    /// Sends to all other holders of a key.
    pub(crate) fn send_to_holders(&self, key: &KeyEntry, bytes: Bytes) {
        // Holders are different nodes of the group, and this node is one of them.
        let peers = self.peers();
        if key.holders.len() == peers.len().saturating_add(1) {
            return self.send_to_all(bytes);
        }
        for peer in peers.iter().filter(|peer| key.holders.contains(**peer)) {
            self.send_to(*peer, bytes.clone());
        }
    }

    /// Sends to all peers.
    pub(crate) fn send_to_all(&self, bytes: Bytes) {
        for error in self.transport.broadcast(bytes) {
            self.not_sent(error);
        }
    }

    /// Whether peers have confirmed that this node's store is the one that they know; true without a store.
    pub(crate) fn is_trusted(&self) -> bool {
        self.store.as_ref().is_none_or(StoreStanding::is_confirmed)
    }

    /// Sends all peers the present incarnation of this node's store, before it acts on what it has decided once and for
    /// all. Messages to a peer arrive in order, so a peer that sees the result knows that the store was that far.
    pub(crate) fn announce_store(&self) {
        if let Some(store) = &self.store {
            let payload = store.announcement();
            self.send_to_all(Content::Custody { payload }.encode());
        }
    }

    fn not_sent(&self, error: SendError) {
        self.metrics.refused_by_transport.inc();
        debug!(%error, "not sent: a peer will have to ask again");
    }

    pub(crate) fn load(&self) -> Load {
        let sum =
            |part: fn(&ShardLoad) -> &AtomicUsize| self.shards.iter().map(|shard| part(shard).load(Relaxed)).sum();
        Load {
            running: self.running.used(),
            max_running: self.running.limit(),
            queued: self.queued.used(),
            max_queued: self.queued.limit(),
            computations: self.computations.used(),
            inbox: sum(|shard| &shard.inbox),
            backlog: sum(|shard| &shard.backlog),
            results: sum(|shard| &shard.results),
        }
    }

    /// Updates the gauges.
    pub(crate) fn publish_load(&self) {
        let load = self.load();
        let metrics = &self.metrics;
        for (gauge, value) in [
            (&metrics.running, load.running),
            (&metrics.queued, load.queued),
            (&metrics.inbox, load.inbox),
            (&metrics.backlog, load.backlog),
            (&metrics.results, load.results),
        ] {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
    }
}
