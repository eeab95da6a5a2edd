//! The face of orchestration.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, Release},
        },
    },
    thread, time,
};

use core::time::Duration;

use prometheus_client::registry::Registry;
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use theta_network::{Inbound, Transport};
use theta_rounds::PartyId;
use theta_schemes::{RequestError, StatementBytes, Suite, signatures::frost::check_seed};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::AbortHandle,
    time::{Instant, MissedTickBehavior, interval},
};
use zeroize::Zeroizing;

use super::{
    command::{Command, Submission},
    ending::Ending,
    instance::Worker,
    router::{self, Shards, shard_of},
    shard::Shard,
    shared::{Computing, Load, ShardLoad, Shared},
};
use crate::{
    ConfigError, CulpritRecord, Finished, InstanceError, InstanceId, InstanceSnapshot, KeyEntry, KeyStore,
    OrchestratorConfig, Request, Seed, Stage, SubmitError, culprits::Culprits, metrics::Metrics, quota::Quota,
};

/// Statements longer than this are hashed on the CPU threads rather than on the caller's.
const LONG_STATEMENT: usize = 32 << 10;

/// Takes requests, meets the peers' messages with them and keeps the results. Shared by `Arc`; all methods may be called
/// from any number of tasks at once. Futures may be dropped at any time.
pub struct Orchestrator {
    shared: Arc<Shared>,
    shards: Shards,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    tasks: Vec<AbortHandle>,
    next: AtomicUsize,
}

/// Why an orchestrator cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A limit that cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Keys of another node.
    #[error(
        "the key shares are those of node {keys}, this is node {local}: take the keys that were dealt to node {local}"
    )]
    WrongNode {
        /// Whose shares they are.
        keys: u16,
        /// Who this is.
        local: u16,
    },
    /// The operating system gives no randomness.
    #[error("the operating system gives no randomness: {0}")]
    Entropy(String),
    /// The operating system gives no thread.
    #[error("cannot start a CPU thread: {0}")]
    Thread(io::Error),
}

/// Why a computation did not run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// Too many wait already.
    #[error("this node is at its limit of {0}: try again later or ask another node")]
    Overloaded(&'static str),
    /// The node is stopping.
    #[error("this node is shutting down")]
    ShuttingDown,
    /// Our own mistake.
    #[error("bug: the computation panicked; please report it")]
    Panicked,
}

impl Orchestrator {
    /// Starts the CPU threads, and on the current Tokio runtime the tasks that feed them.
    ///
    /// `inbound` is the receiver that came with `transport`; metrics go to `registry` with the prefix `theta_`.
    ///
    /// # Errors
    /// [`StartError`]: limits that cannot work, keys of another node, or no resources.
    ///
    /// # Panics
    /// Outside a Tokio runtime, as everything that spawns tasks.
    pub fn start(
        config: OrchestratorConfig,
        keys: KeyStore,
        transport: Arc<dyn Transport>,
        inbound: mpsc::Receiver<Inbound>,
        registry: &mut Registry,
    ) -> Result<Arc<Self>, StartError> {
        config.check()?;
        let shared = share(config, keys, transport, registry)?;
        let config = &shared.config;
        let mut senders = Vec::new();
        let mut threads = Vec::new();
        for index in 0..config.thread_count() {
            let (sender, inbox) = mpsc::channel(config.inbox);
            let worker = Worker { shared: Arc::clone(&shared), rng: seeded_rng()? };
            let shard = Shard::new(index, worker, inbox, Instant::now());
            let thread = thread::Builder::new().name(format!("theta-cpu-{index}")).spawn(move || shard.run());
            // On failure the senders go, and with them the threads that did start.
            threads.push(thread.map_err(StartError::Thread)?);
            senders.push(sender);
        }
        let shards = Shards::from(senders);
        let mut tasks: Vec<AbortHandle> =
            shards.iter().map(|shard| tokio::spawn(tick(shard.clone(), config.tick)).abort_handle()).collect();
        let route = router::route(inbound, Arc::clone(&shards), Arc::clone(&shared));
        tasks.push(tokio::spawn(route).abort_handle());
        Ok(Arc::new(Self { shared, shards, threads: Mutex::new(threads), tasks, next: AtomicUsize::new(0) }))
    }

    /// Starts an instance for a request, or joins the one that runs or has a result; returns its id at once.
    ///
    /// # Errors
    /// [`SubmitError`]; a request that is not valid leaves no trace.
    pub async fn submit(&self, request: Request) -> Result<InstanceId, SubmitError> {
        let (id, _) = self.enqueue(request, false).await?;
        Ok(id)
    }

    /// Waits for the outcome of an instance. Any number may wait; to stop waiting, drop the future.
    ///
    /// # Errors
    /// [`InstanceError`]: not known here, failed, or the node is stopping.
    pub async fn outcome(&self, id: InstanceId) -> Result<Arc<Finished>, InstanceError> {
        let ending = self.ask(&id, |reply| Command::Ending(id, reply)).await;
        let ending: Option<Ending> = ending.ok_or(InstanceError::ShuttingDown)?;
        ending.ok_or(InstanceError::Unknown(id))?.wait().await
    }

    /// [`submit`](Self::submit) and [`outcome`](Self::outcome) in one, with one trip to the CPU thread less.
    ///
    /// # Errors
    /// As [`submit`](Self::submit); inside, as [`outcome`](Self::outcome).
    pub async fn run(
        &self,
        request: Request,
    ) -> Result<(InstanceId, Result<Arc<Finished>, InstanceError>), SubmitError> {
        let (id, ending) = self.enqueue(request, true).await?;
        Ok((id, ending.wait().await))
    }

    /// Where an instance stands; `None` if it is not known here.
    pub async fn status(&self, id: InstanceId) -> Option<InstanceSnapshot> {
        self.ask(&id, |reply| Command::Status(id, reply)).await.flatten()
    }

    /// Follows an instance; `None` if it is not known here. The last value that the receiver sees is not
    /// [`Running`](crate::InstanceState::Running), unless the node stops; after it the channel is closed.
    pub async fn watch(&self, id: InstanceId) -> Option<watch::Receiver<InstanceSnapshot>> {
        self.ask(&id, |reply| Command::Watch(id, reply)).await.flatten()
    }

    /// The keys of this node.
    #[must_use]
    pub fn keys(&self) -> &KeyStore {
        &self.shared.keys
    }

    /// How busy this node is.
    #[must_use]
    pub fn load(&self) -> Load {
        self.shared.load()
    }

    /// The nodes that were caught lately, oldest first.
    #[must_use]
    pub fn culprits(&self) -> Vec<CulpritRecord> {
        self.shared.culprits.list()
    }

    /// Records how long a stage took that only the service sees, such as [`Stage::Received`].
    pub fn observe_stage(&self, suite: Suite, stage: Stage, instance: Option<&InstanceId>, elapsed: Duration) {
        if let Some(metrics) = self.shared.metrics.suite(suite) {
            metrics.stage(stage, instance, elapsed);
        }
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
        let shard = self.shards.get(index).ok_or(ComputeError::ShuttingDown)?;
        let computing = Computing::on(&self.shared, index);
        let (reply, answer) = oneshot::channel();
        let computation = move |rng: &mut dyn CryptoRng| {
            let (_permit, _computing) = (permit, computing);
            if !reply.is_closed() {
                let result = computation(rng);
                // Nobody waits any more: then nobody needs it.
                drop(reply.send(result));
            }
        };
        shard.send(Command::Compute(Box::new(computation))).await.map_err(|_| ComputeError::ShuttingDown)?;
        answer.await.map_err(|_| if self.is_stopping() { ComputeError::ShuttingDown } else { ComputeError::Panicked })
    }

    /// Stops the threads after what they do right now, and waits for them. Who waits for an outcome is told.
    pub fn shutdown(&self) {
        self.shared.stopping.store(true, Release);
        for task in &self.tasks {
            task.abort();
        }
        for shard in self.shards.iter() {
            // A full inbox needs no waking.
            drop(shard.try_send(Command::Stop));
        }
        let threads = core::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // The last owner may be a computation on one of these very threads.
            if thread.thread().id() != thread::current().id() {
                drop(thread.join());
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Relaxed)
    }

    async fn enqueue(&self, request: Request, waits: bool) -> Result<(InstanceId, Ending), SubmitError> {
        let submitted = time::Instant::now();
        let keys = &self.shared.keys;
        let Some(key) = keys.get(&request.key).cloned() else {
            return Err(SubmitError::UnknownKey { name: request.key, known: keys.known() });
        };
        let (statement, seed) = request.operation.into_parts();
        let (asked, purpose) = (statement.as_statement().purpose(), key.suite.purpose());
        if asked != purpose {
            return Err(RequestError::Purpose { key: purpose, asked }.into());
        }
        if let Some(seed) = &seed {
            check_seed(key.suite, seed.expose().len())?;
        }
        self.observe_stage(key.suite, Stage::KeyFound, None, submitted.elapsed());
        let take = |quota: &Arc<Quota>, amount, label, text| {
            quota.take(amount).ok_or_else(|| {
                self.shared.metrics.overloaded(label);
                SubmitError::Overloaded(text)
            })
        };
        let queued = take(&self.shared.queued, 1, "queued", "waiting requests")?;
        let length = statement.as_statement().bytes().len();
        let bytes = take(&self.shared.statements, length, "statement_bytes", "memory for requests")?;
        let id = self.identify(&key, &statement, seed.clone()).await?;
        let (reply, answer) = oneshot::channel();
        let submission = Submission { id, key, statement, seed, submitted, queued, bytes, waits, reply };
        let shard = shard_of(&self.shards, &id).ok_or(SubmitError::ShuttingDown)?;
        shard.send(Command::Submit(Box::new(submission))).await.map_err(|_| SubmitError::ShuttingDown)?;
        let ending = answer.await.map_err(|_| SubmitError::ShuttingDown)??;
        Ok((id, ending))
    }

    async fn identify(
        &self,
        key: &KeyEntry,
        statement: &StatementBytes,
        seed: Option<Seed>,
    ) -> Result<InstanceId, SubmitError> {
        let key_id = key.key_id;
        if statement.as_statement().bytes().len() <= LONG_STATEMENT {
            return Ok(InstanceId::with_seed(&key_id, statement, seed.as_deref()));
        }
        let statement = statement.clone();
        self.compute(move |_| InstanceId::with_seed(&key_id, &statement, seed.as_deref())).await.map_err(|error| {
            match error {
                ComputeError::Overloaded(limit) => SubmitError::Overloaded(limit),
                ComputeError::ShuttingDown => SubmitError::ShuttingDown,
                ComputeError::Panicked => SubmitError::Bug(theta_rounds::Bug("hashing a request panicked")),
            }
        })
    }

    /// Asks an instance's shard; `None` if it is gone.
    async fn ask<T>(&self, id: &InstanceId, question: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        shard_of(&self.shards, id)?.send(question(reply)).await.ok()?;
        answer.await.ok()
    }

    /// The less busy of two shards, the first in turn: nearly as good as the least busy of all. What a shard computes counts
    /// first: it is no longer in the inbox, and can take long.
    fn idlest(&self) -> usize {
        let turn = self.next.fetch_add(1, Relaxed);
        let pick = |offset: usize| turn.wrapping_add(offset).checked_rem(self.shards.len()).unwrap_or_default();
        let busy = |shard: &usize| {
            let computing = self.shared.shards.get(*shard).map(ShardLoad::computing);
            let waiting = self.shards.get(*shard).map(|inbox| inbox.max_capacity() - inbox.capacity());
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

/// Tells a shard the time. A shard that is behind gets fewer ticks, not more.
async fn tick(shard: mpsc::Sender<Command>, period: Duration) {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if shard.send(Command::Tick(Instant::now())).await.is_err() {
            return;
        }
    }
}

fn share(
    config: OrchestratorConfig,
    keys: KeyStore,
    transport: Arc<dyn Transport>,
    registry: &mut Registry,
) -> Result<Arc<Shared>, StartError> {
    let local = transport.local().get();
    if let Some(index) = keys.index().filter(|index| index.get() != local) {
        return Err(StartError::WrongNode { keys: index.get(), local });
    }
    let party = |id: u16| PartyId::try_from(id).map_err(|_| StartError::WrongNode { keys: 0, local });
    let mut peers = Vec::new();
    for peer in transport.peers() {
        peers.push((peer, party(peer.get())?));
    }
    Ok(Arc::new(Shared {
        local: party(local)?,
        peers,
        metrics: Metrics::new(registry, keys.iter().map(|key| key.suite)),
        culprits: Culprits::default(),
        running: Quota::new(config.max_instances),
        queued: Quota::new(config.max_queued_requests),
        statements: Quota::new(config.max_statement_bytes),
        computations: Quota::new(config.max_computations),
        shards: (0..config.thread_count()).map(|_| ShardLoad::default()).collect(),
        stopping: AtomicBool::new(false),
        config,
        keys,
        transport,
    }))
}

fn seeded_rng() -> Result<ChaCha20Rng, StartError> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(seed.as_mut()).map_err(|error| StartError::Entropy(error.to_string()))?;
    Ok(ChaCha20Rng::from_seed(*seed))
}
