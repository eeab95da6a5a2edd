//! The thread of a node's certifier of slots, and its messages from and to the node's other parts.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Acquire},
};

use core::time::Duration;

use bytes::Bytes;
use theta_authority::{Granted, Request};
use theta_custody::{Certifier, CertifierEffect, CertifierLimits, SlotClaim, SlotRefusal, Ticket, To};
use theta_names::NodeId;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep},
};
use tracing::{debug, error, warn};

use super::Orchestrator;
use crate::{
    Certified, Culprit, InstanceId, NodeOffence, NotServed, OrchestratorConfig,
    instances::{Content, Shared},
    quota::{Permit, Quota},
};

/// The most commands that are taken from the inbox at once.
const BATCH: usize = 64;
/// The most messages of one peer that wait for the certifier: each costs a few signatures to check.
const MOST_OF_PEER: usize = 64;
/// More peers than a group can have.
const MOST_PEERS: usize = 1_024;
/// The most questions of this node that wait.
const QUESTIONS: usize = 1_024;

type Verdict = Result<(), SlotRefusal>;

/// A command to a certifier.
pub(crate) enum SlotCommand {
    /// A message of a peer's certifier, with its permit among this peer's.
    Message {
        from: NodeId,
        bytes: Bytes,
        _place: Option<Permit>,
    },
    /// The time.
    Tick(Instant),
    Certify(Vec<SlotClaim>, oneshot::Sender<Verdict>),
    Announce(Vec<SlotClaim>),
    Standing(Vec<SlotClaim>, oneshot::Sender<Option<SlotRefusal>>),
    Stop,
}

/// The certifier's inbox. Each peer has places of its own, so that none can fill it alone.
#[derive(Clone)]
pub(crate) struct SlotsInbox {
    sender: mpsc::Sender<SlotCommand>,
    shared: Arc<Shared>,
    peers: Arc<Mutex<BTreeMap<NodeId, Arc<Quota>>>>,
}

impl SlotsInbox {
    pub(crate) fn new(shared: &Arc<Shared>) -> (Self, mpsc::Receiver<SlotCommand>) {
        // Room for as many peers as there may be: each has its own places, and only peers have any.
        let (sender, inbox) = mpsc::channel(MOST_PEERS.saturating_mul(MOST_OF_PEER).saturating_add(QUESTIONS));
        (Self { sender, shared: Arc::clone(shared), peers: Arc::default() }, inbox)
    }

    /// Adds a peer's message, unless too many of its messages wait; a dropped message is sent again.
    pub(crate) fn post(&self, from: NodeId, bytes: Bytes) -> bool {
        let Some(place) = self.quota_of(from).and_then(|quota| quota.take(1)) else { return false };
        self.sender.try_send(SlotCommand::Message { from, bytes, _place: Some(place) }).is_ok()
    }

    fn quota_of(&self, from: NodeId) -> Option<Arc<Quota>> {
        let peers = self.shared.peers();
        let mut known = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.binary_search(&from).is_err() {
            known.remove(&from);
            return None;
        }
        Some(Arc::clone(known.entry(from).or_insert_with(|| Quota::new(MOST_OF_PEER))))
    }

    /// Wakes the thread so that it stops; with a full inbox it is awake.
    pub(crate) fn stop(&self) {
        drop(self.sender.try_send(SlotCommand::Stop));
    }
}

/// A node's certifier, and the callers that wait for it.
pub(crate) struct Slots {
    certifier: Certifier,
    shared: Arc<Shared>,
    waiting: BTreeMap<Ticket, oneshot::Sender<Verdict>>,
    began: Instant,
    now: Instant,
    /// Whether it wants ticks.
    ticks: watch::Sender<bool>,
}

impl Slots {
    pub(crate) fn new(certifier: Certifier, shared: Arc<Shared>, now: Instant) -> Self {
        let certifier = certifier.with_limits(limits(&shared.config));
        Self { certifier, shared, waiting: BTreeMap::new(), began: now, now, ticks: watch::Sender::new(false) }
    }

    pub(crate) fn obey(&mut self, order: SlotCommand) {
        let (now, mut effects) = (self.millis(), Vec::new());
        match order {
            SlotCommand::Message { from, bytes, .. } => self.certifier.receive(now, from, &bytes, &mut effects),
            SlotCommand::Tick(to) => {
                self.now = self.now.max(to);
                self.forget_those_who_left();
                self.certifier.tick(self.millis(), &mut effects);
            }
            SlotCommand::Certify(claims, reply) => {
                let deadline = now.saturating_add(millis(self.shared.config.instance_ttl));
                let k = self.k_of(&claims);
                let ticket = self.certifier.claim(now, k, &claims, deadline, &mut effects);
                self.waiting.insert(ticket, reply);
            }
            SlotCommand::Announce(claims) => self.certifier.announce(now, &claims, &mut effects),
            // Callers that went away need no answer.
            SlotCommand::Standing(claims, reply) => {
                drop(reply.send(self.certifier.standing(self.k_of(&claims), &claims)));
            }
            SlotCommand::Stop => {}
        }
        self.carry_out(effects);
    }

    /// The clock's time. Where no ticks come, it stands for them.
    fn set_clock(&mut self, now: Instant) {
        if !*self.ticks.borrow() {
            self.now = self.now.max(now);
        }
    }

    /// Updates whether ticks are wanted.
    fn report(&self) {
        let wanted = !self.waiting.is_empty() || !self.certifier.is_idle();
        self.ticks.send_if_modified(|ticks| core::mem::replace(ticks, wanted) != wanted);
    }

    /// Whether ticks are wanted, now and later.
    pub(crate) fn ticks(&self) -> watch::Receiver<bool> {
        self.ticks.subscribe()
    }

    fn carry_out(&mut self, effects: Vec<CertifierEffect>) {
        for effect in effects {
            match effect {
                CertifierEffect::Send { to, bytes } => {
                    let bytes = Content::Slots { payload: bytes }.encode();
                    match to {
                        To::All => self.shared.send_to_all(bytes),
                        To::One(node) => {
                            self.shared.send_to(node, bytes);
                        }
                    }
                }
                CertifierEffect::Decided { ticket, verdict } => {
                    if let Err(refusal) = &verdict {
                        debug!(%refusal, "nothing is signed for a slot");
                    }
                    if let Some(reply) = self.waiting.remove(&ticket) {
                        drop(reply.send(verdict));
                    }
                }
                CertifierEffect::Culprit { node, offence } => self.blame(node, offence.into()),
                CertifierEffect::Equivocation(lie) => {
                    let node = lie.first.node;
                    let evidence = hex::encode(lie.encode());
                    warn!(node = node.get(), evidence, "a node promised one slot to two messages: this proves it");
                    self.blame(node, NodeOffence::Slot(lie));
                }
            }
        }
    }

    fn blame(&self, party: NodeId, offence: NodeOffence) {
        self.shared.blame(Culprit { party, offence, instance: InstanceId::NONE });
    }

    /// The threshold of the key of these claims, by the version with the highest.
    fn k_of(&self, claims: &[SlotClaim]) -> u16 {
        let versions = claims.iter().flat_map(|claim| self.shared.keys.versions(&claim.key));
        versions.map(|entry| entry.public.threshold().k()).max().unwrap_or(0)
    }

    fn forget_those_who_left(&mut self) {
        let certifier = &mut self.certifier;
        self.waiting.retain(|ticket, reply| {
            if reply.is_closed() {
                certifier.withdraw(*ticket);
            }
            !reply.is_closed()
        });
    }

    fn millis(&self) -> u64 {
        millis(self.now.saturating_duration_since(self.began))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The certifier's limits, from the limits of the node.
fn limits(config: &OrchestratorConfig) -> CertifierLimits {
    CertifierLimits {
        waiting: config.max_instances,
        early: config.backlog_messages_per_peer.min(CertifierLimits::default().early),
        early_age: millis(config.backlog_age),
        kept: config.results_count,
        kept_bytes: config.results_bytes,
        ask_after: millis(config.resend_after).max(1),
    }
}

/// The main loop of the certifier's thread.
pub(crate) fn keep(mut slots: Slots, mut inbox: mpsc::Receiver<SlotCommand>) {
    let shared = Arc::clone(&slots.shared);
    let work = || {
        let mut batch = Vec::with_capacity(BATCH);
        while !shared.stopping.load(Acquire) && inbox.blocking_recv_many(&mut batch, BATCH) > 0 {
            slots.set_clock(Instant::now());
            batch.drain(..).for_each(|order| slots.obey(order));
            slots.report();
        }
    };
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        // From now on no slot is certified here, so nothing is signed for one.
        error!("bug: the certifier of slots panicked; please report it, and restart this node");
    }
}

/// Sends ticks to the certifier while it wants them.
pub(crate) async fn tick(inbox: SlotsInbox, period: Duration, mut wanted: watch::Receiver<bool>) {
    while wanted.wait_for(|wanted| *wanted).await.is_ok() {
        sleep(period).await;
        if inbox.sender.send(SlotCommand::Tick(Instant::now())).await.is_err() {
            return;
        }
    }
}

impl Orchestrator {
    /// Finds the key of a granted request and waits until its slots are certified for its message; until then, nothing
    /// that depends on a secret is done for it. This node's promises are sent to the others meanwhile, even if it holds
    /// no share of the key, since the promises of all nodes count. To give up, drop the future.
    ///
    /// A node whose store may be an old copy promises nothing. Before each promise, peers get the present incarnation
    /// of the store, so that they notice if it is set back.
    ///
    /// # Errors
    /// [`NotServed`]: the request is not served.
    pub async fn certify(&self, granted: Granted<Request>) -> Result<Certified, NotServed> {
        let keys = self.keys();
        if granted.claims().is_empty() {
            return Ok(Certified::of(granted, keys)?);
        }
        if !self.shared().is_trusted() {
            return Err(SlotRefusal::Unconfirmed.into());
        }
        self.shared().announce_store();
        // The entry is not held while the request waits, so that a share that has left the key table is freed.
        if let Err(error) = granted.request().entry(keys) {
            self.announce_slots(granted.claims().to_vec()).await;
            return Err(error.into());
        }
        self.certify_claims(granted.claims().to_vec()).await?;
        Ok(Certified::of(granted, keys)?)
    }

    async fn certify_claims(&self, claims: Vec<SlotClaim>) -> Result<(), SlotRefusal> {
        let Some(slots) = self.slots() else { return Err(SlotRefusal::NoIdentity) };
        let (reply, answer) = oneshot::channel();
        let order = SlotCommand::Certify(claims, reply);
        slots.sender.send(order).await.map_err(|_| SlotRefusal::ShuttingDown)?;
        answer.await.unwrap_or(Err(SlotRefusal::ShuttingDown))
    }

    /// Sends this node's promises for an allowed request in which it takes no part, since it holds no share.
    async fn announce_slots(&self, claims: Vec<SlotClaim>) {
        if let Some(slots) = self.slots() {
            // A node that stops makes no more promises.
            drop(slots.sender.send(SlotCommand::Announce(claims)).await);
        }
    }

    /// Why the slots of a request were not decided in time; `None` if they are certified for it, or nothing is known.
    pub async fn slot_standing(&self, claims: Vec<SlotClaim>) -> Option<SlotRefusal> {
        let (reply, answer) = oneshot::channel();
        self.slots()?.sender.send(SlotCommand::Standing(claims, reply)).await.ok()?;
        answer.await.ok().flatten()
    }
}
