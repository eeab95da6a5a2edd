//! The instances that one CPU thread owns.

mod drawing;
mod filling;
mod finishing;
mod machines;
mod refused;
mod starting;
mod timing;
mod together;

use core::{cmp::Reverse, time::Duration};
use std::{
    collections::{BinaryHeap, HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time,
};

use theta_names::NodeId;
use theta_protocols::{AnyMachine, Supply};
use theta_rounds::Input;
use theta_schemes::Unproven;
use tokio::{sync::watch, time::Instant};
use tracing::warn;

use filling::Plans;
use refused::Refused;

use super::{
    backlog::{Backlog, BacklogLimits, Early},
    command::{Command, Submission},
    ending::Ending,
    instance::{Instance, Worker},
    results::{Record, ResultLimits, Results},
    shared::{Shared, Ticks},
};
use crate::{
    InstanceError, InstanceId, InstanceSnapshot, entropy::Entropy, hedge::Hedge, metrics::Stage, quota::Permit,
};

/// The most results, and the most proofs of requests, that wait to be checked together: each further one saves less, and all wait for
/// the last.
const CLAIMS: usize = 32;

/// One CPU thread's part of a node. Only that thread touches these instances, so there are no locks.
pub(crate) struct Shard {
    pub(super) index: usize,
    pub(super) worker: Worker,
    pub(super) running: HashMap<InstanceId, Box<Instance>>,
    pub(super) backlog: Backlog,
    pub(super) results: Results,
    refused: Refused,
    /// Instances that this node would start if a peer sent a message of them: requests that it has answered under a
    /// former epoch of their key, by their present ids, with their former ids.
    pub(super) heirs: HashMap<InstanceId, InstanceId>,
    /// When to look after each instance; an entry is void if its instance has another time by now.
    timers: BinaryHeap<Reverse<(Instant, InstanceId)>>,
    /// The time as of the last tick.
    pub(super) now: Instant,
    /// The time as of the last batch of commands, from which an instance that begins counts how long it waits. An engine has
    /// no clock but its ticks.
    pub(super) clock: Instant,
    /// How far this node is behind with its own work; an engine never is.
    behind: Duration,
    hedge: Hedge,
    /// The ticks that it has asked for.
    ticks: Ticks,
    /// Stocks that are to be filled, and the fillings that run.
    pub(super) plans: Plans,
    pub(super) filling: usize,
    /// Requests that wait for the check of their proofs; none between two batches of commands.
    unproven: Vec<Waiting>,
}

/// A request that waits for the check of its proof.
struct Waiting {
    submission: Submission,
    permit: Permit,
    /// How long it took to parse.
    took: time::Duration,
    machine: Unproven<AnyMachine>,
}

impl Shard {
    /// All shards of a node, each with the randomness that `entropy` gives for its number.
    pub(crate) fn all(shared: &Arc<Shared>, entropy: impl Fn(u64) -> Entropy, now: Instant) -> Vec<Self> {
        let shard = |(index, stream)| {
            let worker = Worker {
                shared: Arc::clone(shared),
                rng: entropy(stream),
                claims: Vec::new(),
                drawing: VecDeque::new(),
            };
            let mut shard = Self::new(index, worker, now);
            shard.plan_all();
            shard
        };
        (0..shared.config.thread_count()).zip(0..).map(shard).collect()
    }

    fn new(index: usize, worker: Worker, now: Instant) -> Self {
        let config = &worker.shared.config;
        let share = |limit: usize| limit.div_ceil(config.thread_count());
        let backlog = BacklogLimits {
            messages: share(config.backlog_messages_per_peer),
            bytes: share(config.backlog_bytes_per_peer),
            age: config.backlog_age,
        };
        let results = ResultLimits {
            count: share(config.results_count),
            bytes: share(config.results_bytes),
            age: config.results_age,
        };
        Self {
            index,
            running: HashMap::new(),
            refused: Refused::default(),
            backlog: Backlog::new(backlog),
            results: Results::new(results, config.thread_count()),
            heirs: HashMap::new(),
            timers: BinaryHeap::new(),
            now,
            clock: now,
            behind: Duration::ZERO,
            hedge: Hedge::default(),
            ticks: Ticks::default(),
            plans: Plans::new(),
            filling: 0,
            unproven: Vec::new(),
            worker,
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.worker.shared
    }

    /// Carries out commands that have come, and then checks the proofs of requests and the results that they brought, all together:
    /// under load that is cheaper, and a request that is alone waits for nothing.
    pub(crate) fn carry_out(&mut self, commands: impl IntoIterator<Item = Command>) {
        for command in commands {
            if self.must_begin_before(&command) {
                self.begin_proven();
            }
            // No instance that waits for a verdict may end or move on without it.
            if self.worker.claims.len() >= CLAIMS || matches!(command, Command::Tick(_) | Command::KeyChanged(_)) {
                self.check_claims();
            }
            self.handle(command);
        }
        self.begin_proven();
        self.check_claims();
        self.draw();
        self.fill();
    }

    /// Carries out a command.
    fn handle(&mut self, command: Command) {
        // If the caller has gone away, sending the reply fails, which is no error.
        match command {
            Command::Submit(submission) => self.submit(*submission),
            Command::Message { instance, message } => self.message(instance, message),
            Command::Supply { instance, supply } => self.drive(instance, Input::Supply(supply), Stage::ShareReceived),
            Command::Announced { from, instance, announcement } => self.announced(from, instance, &announcement),
            Command::Refused(id) => self.refused(id),
            Command::Resend { from, instance } => self.resend(from, &instance),
            Command::Ending(id, reply) => drop(reply.send(self.ending(&id))),
            Command::Status(id, reply) => drop(reply.send(self.status(&id))),
            Command::Watch(id, reply) => drop(reply.send(self.watch(&id))),
            Command::KeyChanged(name) => self.key_changed(&name),
            Command::Compute(computation) => {
                if catch_unwind(AssertUnwindSafe(|| computation(&mut self.worker.rng))).is_err() {
                    warn!("bug: a computation panicked; please report it");
                }
            }
            Command::Tick(now) => self.tick(now),
            Command::Mail | Command::Stop => {}
        }
    }

    fn message(&mut self, id: InstanceId, message: Early) {
        if let Some(instance) = self.running.get_mut(&id) {
            let from = message.from;
            let Some(input) = instance.input(message) else { return };
            instance.hear(from);
            self.drive(id, input, Stage::ShareReceived);
        } else if let Some(record) = self.results.get_mut(&id) {
            self.worker.shared.metrics.late.inc();
            record.reply(message, &mut self.worker);
        } else {
            let begins = self.is_unproven(&id);
            if !begins {
                self.takes_part(id, message.from);
            }
            self.backlog.push(id, message, self.now);
            if begins {
                return;
            }
            // Whatever the message contains, it is for an instance that this node can start by itself.
            self.inherit(&id);
        }
    }

    /// Gives an instance one input, and ends it if it has finished.
    fn drive(&mut self, id: InstanceId, input: Input<Supply>, stage: Stage) {
        let Some(instance) = self.running.get_mut(&id) else { return };
        let began = time::Instant::now();
        let end = instance.step(input, &mut self.worker);
        let took = began.elapsed();
        instance.metrics.stage(stage, Some(&id), took);
        if end.is_some() && stage == Stage::ShareReceived {
            instance.metrics.stage(Stage::Combining, Some(&id), took);
        }
        if let Some(result) = end {
            self.finish(id, result);
        }
    }

    /// Answers a holder that asks for the messages that this node sent.
    fn resend(&mut self, from: NodeId, id: &InstanceId) {
        let shared = &self.worker.shared;
        let (sent, holders) = match self.running.get_mut(id) {
            Some(instance) => (&mut instance.sent, &instance.key.holders),
            None => match self.results.get_mut(id) {
                Some(record) => (&mut record.sent, &record.holders),
                // The peer gets them when the instance starts.
                None => {
                    self.takes_part(*id, from);
                    return self.inherit(id);
                }
            },
        };
        // Shares and results are for those who hold shares; other members of the group have no part in them.
        if holders.contains(from) && sent.may_answer(from, self.now, shared.config.resend_interval) {
            sent.answer(from, shared);
        }
    }

    fn ending(&self, id: &InstanceId) -> Option<Ending> {
        match self.running.get(id) {
            Some(instance) => Some(instance.audience.ending.clone()),
            None => self.record(id).map(|record| record.ending.clone()),
        }
    }

    pub(crate) fn status(&self, id: &InstanceId) -> Option<InstanceSnapshot> {
        let current = self.current(id);
        match self.running.get(&current) {
            Some(instance) => Some(instance.snapshot()),
            None => self.record(&current).or_else(|| self.record(id)).map(Record::snapshot),
        }
    }

    pub(crate) fn watch(&mut self, id: &InstanceId) -> Option<watch::Receiver<InstanceSnapshot>> {
        let current = self.current(id);
        match self.running.get_mut(&current) {
            Some(instance) => Some(instance.watch()),
            None => self.status(id).map(|snapshot| watch::channel(snapshot).1),
        }
    }
}

impl Drop for Shard {
    /// Runs also after a panic, so that no caller waits for ever.
    fn drop(&mut self) {
        for instance in self.running.values() {
            for audience in instance.joined.iter().chain([&instance.audience]) {
                audience.ending.set(Err(InstanceError::ShuttingDown));
            }
        }
    }
}
