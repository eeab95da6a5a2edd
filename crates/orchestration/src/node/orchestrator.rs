//! The orchestrator's interface, and its threads.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread,
};

use core::time::Duration;

use prometheus_client::registry::Registry;
use rand_core::CryptoRng;
use theta_authority::{Asker, Granted, InstanceId, Request};
use theta_custody::{KeyEntry, KeyTable};
use theta_names::WallTime;
use theta_network::{Inbound, Transport};
use theta_rounds::Bug;
use theta_schemes::Suite;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::AbortHandle,
    time::{Instant, sleep_until},
};
use zeroize::Zeroizing;

use super::{
    ComputeError, Keys, NoCustodian, StartError, burning,
    custody::{self, Custody, Forwarded, Order},
    mail::Mail,
    router::{self, Inboxes, Ways, inbox_of},
    slots::{self, Slots, SlotsInbox},
};
use crate::{
    Certified, CulpritRecord, Finished, InstanceError, InstanceSnapshot, Load, OrchestratorConfig, Stage, Stock,
    SubmitError,
    burning::Burning,
    entropy::Entropy,
    instances::{Command, Computing, Ending, Identification, Shard, ShardLoad, Shared, Ticks},
};

/// The most commands that a CPU thread takes from its inbox at once.
const BATCH: usize = 64;
/// The most requests that came by other nodes and wait for this node's policy.
const MOST_FORWARDED: usize = 64;

/// Takes requests, brings peers' messages together with them, and keeps the results. Shared by `Arc`; all methods may
/// be called from any number of tasks at once, and futures may be dropped at any time.
pub struct Orchestrator {
    shared: Arc<Shared>,
    inboxes: Inboxes,
    /// The custodian's inbox, if the node has one.
    custodian: Option<mpsc::Sender<Order>>,
    /// The certifier's inbox, if the node has one.
    slots: Option<SlotsInbox>,
    forwarded: Mutex<Option<mpsc::Receiver<Forwarded>>>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    tasks: Vec<AbortHandle>,
    next: AtomicUsize,
}

impl Orchestrator {
    /// Starts the CPU threads, and on the current Tokio runtime the tasks that feed them.
    ///
    /// `inbound` is the receiver that came with `transport`; metrics go to `registry` with the prefix `theta_`.
    ///
    /// # Errors
    /// [`StartError`]: limits out of their ranges, keys of another node, or no resources.
    ///
    /// # Panics
    /// Outside a Tokio runtime, as everything that spawns tasks.
    pub fn start(
        config: OrchestratorConfig,
        keys: impl Into<Keys>,
        transport: Arc<dyn Transport>,
        inbound: mpsc::Receiver<Inbound>,
        registry: &mut Registry,
    ) -> Result<Arc<Self>, StartError> {
        let keys = keys.into();
        let (used, to_burn) = mpsc::channel(config.inbox.max(1));
        let burner = keys.burner(&config)?;
        let burning = burner.clone().map_or(Burning::Off, |burner| Burning::There(burner, used));
        let shared = super::share(config, &keys, transport, registry, burning)?;
        shared.today.set(WallTime::now().seconds());
        let config = &shared.config;
        let mut senders = Vec::new();
        let mut threads = Vec::new();
        let seed = seed()?;
        let shards = Shard::all(&shared, |stream| Entropy::fresh(*seed, stream), Instant::now());
        let shard_mail = router::shard_mail(config);
        for (index, shard) in shards.into_iter().enumerate() {
            let (sender, inbox) = mpsc::channel(config.inbox);
            let thread = thread::Builder::new().name(format!("theta-cpu-{index}")).spawn({
                let mail = Arc::clone(&shard_mail);
                move || work(shard, inbox, mail.get(index))
            });
            // On failure the senders are dropped, which ends the threads that did start.
            threads.push(thread.map_err(StartError::Thread)?);
            senders.push(sender);
        }
        let inboxes = Inboxes::from(senders);
        if let Some(burner) = burner {
            let (inboxes, shared) = (Arc::clone(&inboxes), Arc::clone(&shared));
            threads.push(spawn("theta-burn", move || burning::keep(&burner, to_burn, &inboxes, &shared))?);
        }
        let (custodian, certifier) = keys.into_parts();
        let (custodian, forwarded) = match custodian {
            None => (None, None),
            Some(custodian) => {
                let (custody, forwarded) = Custody::new(custodian, Arc::clone(&shared)).forwarding(MOST_FORWARDED);
                let (sender, inbox) = mpsc::channel(config.custody_inbox);
                let mail = router::custody_mail(config);
                let (waiting, shards) = (Arc::clone(&mail), Arc::clone(&inboxes));
                threads.push(spawn("theta-custody", move || custody::keep(custody, inbox, &waiting, &shards))?);
                (Some((sender, mail)), Some(forwarded))
            }
        };
        let (slots, slot_ticks) = match certifier {
            None => (None, None),
            Some(certifier) => {
                let (sender, inbox) = SlotsInbox::new(&shared);
                let slots = Slots::new(certifier, Arc::clone(&shared), Instant::now());
                let ticks = slots.ticks();
                threads.push(spawn("theta-slots", move || slots::keep(slots, inbox))?);
                (Some(sender), Some(ticks))
            }
        };
        let mut tasks = tick_all(&inboxes, &shared);
        if let Some((custodian, _)) = &custodian {
            let ticks = custody::tick(custodian.clone(), config.custody_tick, Arc::clone(&shared.transport));
            tasks.push(tokio::spawn(ticks).abort_handle());
        }
        if let Some((slots, wanted)) = slots.clone().zip(slot_ticks) {
            tasks.push(tokio::spawn(slots::tick(slots, config.tick, wanted)).abort_handle());
        }
        let ways =
            Ways { inboxes: Arc::clone(&inboxes), shard_mail, custodian: custodian.clone(), slots: slots.clone() };
        let route = router::route(inbound, ways, Arc::clone(&shared));
        tasks.push(tokio::spawn(route).abort_handle());
        Ok(Arc::new(Self {
            shared,
            inboxes,
            custodian: custodian.map(|(sender, _)| sender),
            slots,
            forwarded: Mutex::new(forwarded),
            threads: Mutex::new(threads),
            tasks,
            next: AtomicUsize::new(0),
        }))
    }

    /// The requests that came by other nodes, for whoever asks this node's policy about them. There is one receiver: `None` if it was
    /// taken before, or there is no custodian.
    #[must_use]
    pub fn forwarded(&self) -> Option<mpsc::Receiver<Forwarded>> {
        self.forwarded.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Starts an instance for a request, or joins the one that runs or has a result; returns its id at once.
    ///
    /// # Errors
    /// [`SubmitError`]; a request that is not valid leaves no trace.
    pub async fn submit(&self, request: Certified) -> Result<InstanceId, SubmitError> {
        let (id, _) = self.enqueue(request, None, false).await?;
        Ok(id)
    }

    /// The same, on the account of `asker`.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub async fn submit_for(&self, request: Certified, asker: Asker) -> Result<InstanceId, SubmitError> {
        let (id, _) = self.enqueue(request, Some(asker), false).await?;
        Ok(id)
    }

    /// Waits for the outcome of an instance. Any number may wait; to stop waiting, drop the future.
    ///
    /// # Errors
    /// [`InstanceError`]: not known here, failed, or the node is stopping.
    pub async fn outcome(&self, granted: Granted<InstanceId>) -> Result<Arc<Finished>, InstanceError> {
        let id = granted.into_request();
        let ending = self.ask(&id, |reply| Command::Ending(id, reply)).await;
        let ending: Option<Ending> = ending.ok_or(InstanceError::ShuttingDown)?;
        ending.ok_or(InstanceError::Unknown(id))?.wait().await
    }

    /// [`submit`](Self::submit) and [`outcome`](Self::outcome) in one, with one message to the CPU thread less.
    ///
    /// # Errors
    /// As [`submit`](Self::submit); inside, as [`outcome`](Self::outcome).
    pub async fn run(
        &self,
        request: Certified,
    ) -> Result<(InstanceId, Result<Arc<Finished>, InstanceError>), SubmitError> {
        let (id, ending) = self.enqueue(request, None, true).await?;
        Ok((id, ending.wait().await))
    }

    /// The same, on the account of `asker`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_for(
        &self,
        request: Certified,
        asker: Asker,
    ) -> Result<(InstanceId, Result<Arc<Finished>, InstanceError>), SubmitError> {
        let (id, ending) = self.enqueue(request, Some(asker), true).await?;
        Ok((id, ending.wait().await))
    }

    /// How many shares an instance has and how many it needs; `None` if it is not known here.
    pub async fn progress(&self, id: InstanceId) -> Option<(usize, usize)> {
        let snapshot = self.ask(&id, |reply| Command::Status(id, reply)).await.flatten()?;
        Some((snapshot.shares, snapshot.needed))
    }

    /// The state of an instance, with its result if there is one; `None` if it is not known here.
    pub async fn status(&self, granted: Granted<InstanceId>) -> Option<InstanceSnapshot> {
        let id = granted.into_request();
        self.ask(&id, |reply| Command::Status(id, reply)).await.flatten()
    }

    /// Follows an instance; `None` if it is not known here. The last value that the receiver sees is not
    /// [`Running`](crate::InstanceState::Running), unless the node stops; after it the channel is closed.
    pub async fn watch(&self, granted: Granted<InstanceId>) -> Option<watch::Receiver<InstanceSnapshot>> {
        let id = granted.into_request();
        self.ask(&id, |reply| Command::Watch(id, reply)).await.flatten()
    }

    /// Notes that an agent of this node refuses what a request is about: a node that takes part in it all the same is named among the
    /// [culprits](Self::culprits), whether its part has come already or comes within a minute. A node that is too busy for this notes nothing.
    pub async fn refused(&self, request: &Request) {
        let Ok((key, _)) = request.entry(self.keys()) else { return };
        let identification = Identification::new(&key, request.statement().clone(), request.seed().cloned());
        let Ok(id) = self.identify(identification).await else { return };
        if let Some(inbox) = inbox_of(&self.inboxes, &id) {
            drop(inbox.try_send(Command::Refused(id)));
        }
    }

    /// The keys of this node.
    #[must_use]
    pub fn keys(&self) -> &Arc<KeyTable> {
        &self.shared.keys
    }

    /// What this node has ahead of signatures with a key; `None` if it keeps nothing for it.
    #[must_use]
    pub fn stock(&self, entry: &KeyEntry) -> Option<Stock> {
        self.shared.stock(entry)
    }

    /// The present load of this node.
    #[must_use]
    pub fn load(&self) -> Load {
        self.shared.load()
    }

    /// The nodes whose misbehaviour was seen lately, oldest first.
    #[must_use]
    pub fn culprits(&self) -> Vec<CulpritRecord> {
        self.shared.culprits.list()
    }

    /// At most so many of them, newest first: of each node what is gravest, before a second offence of any other.
    #[must_use]
    pub fn culprits_to_tell(&self, most: usize) -> Vec<CulpritRecord> {
        self.shared.culprits.told(most)
    }

    /// Records the duration of a stage that only the service sees, such as [`Stage::Received`].
    pub fn observe_stage(&self, suite: Suite, stage: Stage, instance: Option<&InstanceId>, elapsed: Duration) {
        self.shared.metrics.suite(suite).stage(stage, instance, elapsed);
    }

    /// How many of [these computations](Self::compute) run or wait, and how many may.
    #[must_use]
    pub fn computations(&self) -> (usize, usize) {
        (self.shared.computations.used(), self.shared.computations.limit())
    }

    /// Runs a computation on the CPU threads, with a random number generator. If the future is dropped before the
    /// computation starts, it never does.
    ///
    /// # Errors
    /// [`ComputeError`]: too many wait already, the node is stopping, or the computation panicked.
    pub async fn compute<T: Send + 'static>(
        &self,
        computation: impl FnOnce(&mut dyn CryptoRng) -> T + Send + 'static,
    ) -> Result<T, ComputeError> {
        let Some(permit) = self.shared.computations.take(1) else {
            self.shared.metrics.overloaded("computations");
            return Err(ComputeError::Overloaded("computations"));
        };
        let index = self.idlest();
        let inbox = self.inboxes.get(index).ok_or(ComputeError::ShuttingDown)?;
        let computing = Computing::on(&self.shared, index);
        let (reply, answer) = oneshot::channel();
        let computation = move |rng: &mut dyn CryptoRng| {
            let (_permit, _computing) = (permit, computing);
            if !reply.is_closed() {
                let result = computation(rng);
                // If the caller has gone away, nobody needs the result.
                drop(reply.send(result));
            }
        };
        inbox.send(Command::Compute(Box::new(computation))).await.map_err(|_| ComputeError::ShuttingDown)?;
        answer.await.map_err(|_| if self.is_stopping() { ComputeError::ShuttingDown } else { ComputeError::Panicked })
    }

    /// Stops the threads after their present work, and waits for them. Callers that wait for an outcome get an error.
    pub fn shutdown(&self) {
        self.shared.stopping.store(true, Release);
        for task in &self.tasks {
            task.abort();
        }
        for inbox in self.inboxes.iter() {
            // With a full inbox the thread is awake.
            drop(inbox.try_send(Command::Stop));
        }
        if let Some(custodian) = &self.custodian {
            drop(custodian.try_send(Order::Stop));
        }
        if let Some(slots) = &self.slots {
            slots.stop();
        }
        self.shared.burning.stop();
        let threads = core::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // The last owner may be a computation on one of these very threads.
            if thread.thread().id() != thread::current().id() {
                drop(thread.join());
            }
        }
    }

    /// Asks the custodian.
    pub(super) async fn ask_custodian<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> Order,
    ) -> Result<T, NoCustodian> {
        let custodian = self.custodian.as_ref().ok_or(NoCustodian::Fixed)?;
        let (reply, answer) = oneshot::channel();
        custodian.send(question(reply)).await.map_err(|_| NoCustodian::ShuttingDown)?;
        answer.await.map_err(|_| NoCustodian::ShuttingDown)
    }

    pub(super) const fn slots(&self) -> Option<&SlotsInbox> {
        self.slots.as_ref()
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Relaxed)
    }

    async fn enqueue(
        &self,
        request: Certified,
        asker: Option<Asker>,
        waits: bool,
    ) -> Result<(InstanceId, Ending), SubmitError> {
        let admitted = self.shared.admit(request, asker)?;
        let id = self.identify(admitted.identification()).await.map_err(|error| match error {
            ComputeError::Overloaded(limit) => SubmitError::Overloaded(limit),
            ComputeError::ShuttingDown => SubmitError::ShuttingDown,
            ComputeError::Panicked => SubmitError::Bug(Bug("hashing a request panicked")),
        })?;
        let (submission, answer) = admitted.into_submission(id, waits);
        let inbox = inbox_of(&self.inboxes, &id).ok_or(SubmitError::ShuttingDown)?;
        inbox.send(Command::Submit(submission)).await.map_err(|_| SubmitError::ShuttingDown)?;
        answer.await.map_err(|_| SubmitError::ShuttingDown)?
    }

    async fn identify(&self, request: Identification) -> Result<InstanceId, ComputeError> {
        if request.is_long() { self.compute(move |_| request.id()).await } else { Ok(request.id()) }
    }

    /// Asks an instance's shard; `None` if it is gone.
    async fn ask<T>(&self, id: &InstanceId, question: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        inbox_of(&self.inboxes, id)?.send(question(reply)).await.ok()?;
        answer.await.ok()
    }

    /// The less busy of two shards, which are chosen in turn: nearly as good as the least busy of all. Computations on
    /// a shard count most, since they have left the inbox and may take long.
    fn idlest(&self) -> usize {
        let turn = self.next.fetch_add(1, Relaxed);
        let pick = |offset: usize| turn.wrapping_add(offset).checked_rem(self.inboxes.len()).unwrap_or_default();
        let busy = |shard: &usize| {
            let computing = self.shared.shards.get(*shard).map(ShardLoad::computing);
            let waiting = self.inboxes.get(*shard).map(|inbox| inbox.max_capacity() - inbox.capacity());
            (computing, waiting)
        };
        [pick(0), pick(1)].into_iter().min_by_key(busy).unwrap_or_default()
    }
}

impl Drop for Orchestrator {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl core::fmt::Debug for Orchestrator {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Orchestrator").field("local", &self.shared.local).field("load", &self.load()).finish()
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<thread::JoinHandle<()>, StartError> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map_err(StartError::Thread)
}

/// The tasks that send ticks to all shards.
fn tick_all(inboxes: &Inboxes, shared: &Shared) -> Vec<AbortHandle> {
    let ticks = inboxes.iter().zip(&shared.shards).map(|(inbox, load)| {
        let ticks = tick(inbox.clone(), shared.config.tick, load.ticks.subscribe());
        tokio::spawn(ticks).abort_handle()
    });
    ticks.collect()
}

/// Sends ticks to a shard as it wants them: in equal intervals, unless nothing waits for them, and when it asks for one. A shard that is
/// behind gets fewer ticks, not more.
async fn tick(inbox: mpsc::Sender<Command>, period: Duration, mut wanted: watch::Receiver<Ticks>) {
    let (mut last, mut regular, mut idle) = (None, Instant::now(), false);
    loop {
        let Ticks { none, alarm } = *wanted.borrow_and_update();
        if idle && !none {
            regular = Instant::now() + period;
        }
        idle = none;
        let alarm = alarm.filter(|alarm| last.is_none_or(|last| *alarm > last));
        let next = if none { alarm } else { Some(alarm.map_or(regular, |alarm| alarm.min(regular))) };
        tokio::select! {
            () = sleep_until(next.unwrap_or(regular)), if next.is_some() => {
                let now = Instant::now();
                (last, regular) = (Some(now), now + period);
                if inbox.send(Command::Tick(now)).await.is_err() {
                    return;
                }
            }
            changed = wanted.changed() => if changed.is_err() { return },
        }
    }
}

/// The main loop of a CPU thread: takes its own node's commands first, then as many messages of peers, in turns.
fn work(mut shard: Shard, mut inbox: mpsc::Receiver<Command>, mail: Option<&Mail<Command>>) {
    let Some(mail) = mail else { return };
    let (mut batch, mut took) = (Vec::with_capacity(2 * BATCH), Duration::ZERO);
    while !shard.shared().stopping.load(Acquire) && mail.next(&mut inbox, BATCH, &mut batch) {
        let (began, waited) = (Instant::now(), batch.iter().map(Command::waited).max().unwrap_or_default());
        shard.set_clock(began, waited.max(took));
        shard.carry_out(batch.drain(..));
        shard.report(inbox.len() + mail.len());
        took = began.elapsed();
    }
}

fn seed() -> Result<Zeroizing<[u8; 32]>, StartError> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(seed.as_mut()).map_err(|error| StartError::Entropy(error.to_string()))?;
    Ok(seed)
}
