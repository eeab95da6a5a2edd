//! The instances that one CPU thread owns.

mod filling;
mod machines;
mod together;

use core::{cmp::Reverse, time::Duration};
use std::{
    collections::{BinaryHeap, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering::Relaxed},
    time,
};

use theta_names::{Delivery, NodeId};
use theta_protocols::{AnyMachine, Outcome, Supply};
use theta_rounds::{Abort, Input};
use theta_schemes::Unproven;
use tokio::{sync::watch, time::Instant};
use tracing::{debug, warn};

use filling::Plans;

use super::{
    backlog::{Backlog, BacklogLimits, Early},
    command::{Command, Submission},
    ending::{self, Audience, Ending},
    instance::{Instance, Worker},
    results::{Record, ResultLimits, Results},
    shared::{ShardLoad, Shared, Ticks},
};
use crate::{
    Asker, Finished, InstanceError, InstanceId, InstanceSnapshot, SubmitError,
    entropy::Entropy,
    filling::FillingPermit,
    hedge::Hedge,
    metrics::{Ended, Stage},
    quota::Permit,
};

/// The most requests to send again that leave at one tick: a node that is behind must not add to its peers' load.
const ASKS_PER_TICK: usize = 256;
/// The least time between two ticks, however many instances want one.
const FINEST: Duration = Duration::from_millis(5);
/// The estimated size, in bytes, of an instance that is kept after its end, beside its statement: its machine and that
/// machine's content.
const MACHINE_BYTES: usize = 8 << 10;
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
            let worker = Worker { shared: Arc::clone(shared), rng: entropy(stream), claims: Vec::new() };
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
            backlog: Backlog::new(backlog),
            results: Results::new(results, config.thread_count()),
            heirs: HashMap::new(),
            timers: BinaryHeap::new(),
            now,
            clock: now,
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

    fn submit(&mut self, mut submission: Submission) {
        // The caller went away before anything was done, so nothing needs to be done.
        if submission.reply.is_closed() {
            return;
        }
        if let Err(error) = submission.refresh(&self.worker.shared.keys) {
            return drop(submission.reply.send(Err(error.into())));
        }
        let metrics = self.worker.shared.metrics.suite(submission.key.suite);
        metrics.stage(Stage::Assigned, Some(&submission.id), submission.submitted.elapsed());
        if self.is_unproven(&submission.id) {
            self.begin_proven();
        }
        if let Some(ending) = self.joinable(&submission.id) {
            return drop(submission.reply.send(Ok((submission.id, ending))));
        }
        let Some(permit) = self.worker.shared.running.take(1) else {
            self.worker.shared.metrics.overloaded("running");
            return drop(submission.reply.send(Err(SubmitError::Overloaded("running instances"))));
        };
        match self.results.remove(&submission.id) {
            // The messages that it has sent must be kept for peers that still ask for them.
            Some(Record { expired: Some(instance), sent, .. }) => {
                self.revive(Instance { sent, ..*instance }, submission, permit);
            }
            _ => self.start(submission, permit),
        }
    }

    /// The ending of an instance that runs or has a result; a repeated request joins it.
    fn joinable(&self, id: &InstanceId) -> Option<Ending> {
        if let Some(instance) = self.running.get(id) {
            return Some(instance.audience.ending.clone());
        }
        self.record(id).filter(|record| record.expired.is_none()).map(|record| record.ending.clone())
    }

    /// Starts an instance, or lets it wait until its proof has been checked with those of others. An invalid request leaves no trace.
    fn start(&mut self, submission: Submission, permit: Permit) {
        let began = time::Instant::now();
        let machine = match self.unproven_machine(&submission.key, &submission.asked).map(Unproven::proven) {
            Ok(Err(machine)) => {
                self.unproven.push(Waiting { submission, permit, took: began.elapsed(), machine });
                return;
            }
            Ok(Ok(machine)) => Ok(machine),
            Err(error) => Err(error),
        };
        self.begin(submission, permit, machine, began.elapsed());
    }

    /// Starts an instance whose request took so long to validate, unless it is invalid.
    fn begin(
        &mut self,
        submission: Submission,
        permit: Permit,
        machine: Result<AnyMachine, SubmitError>,
        took: time::Duration,
    ) {
        let Submission { id, key, asked, asker, submitted, queued, bytes, waits, reply, .. } = submission;
        drop(queued);
        let machine = match machine {
            Ok(machine) => machine,
            Err(error) => {
                // The room of the instance is given back before the caller learns of the failure, since it may ask
                // again at once.
                drop((permit, bytes, asker));
                return drop(reply.send(Err(error)));
            }
        };
        self.worker.shared.metrics.suite(key.suite).stage(Stage::Validated, Some(&id), took);
        let audience = Audience::new(id, waits, reply);
        self.heirs.remove(&id);
        let instance = self.instance(id, asked, key, machine, audience, (permit, bytes));
        self.launch(Instance { submitted, asker, ..instance });
    }

    /// Starts an instance with a new machine, and gives it the messages that have come for it.
    pub(super) fn launch(&mut self, mut instance: Instance) {
        let id = instance.id;
        let now = self.now.max(self.clock);
        instance.began = now;
        instance.patience = self.hedge.patience(&instance.key, &self.worker.shared, now);
        self.run(instance);
        self.drive(id, Input::Start, Stage::ShareMade);
        for early in self.backlog.take(&id) {
            // The first messages may have finished it; the record of the result answers any questions among the others.
            self.message(id, early);
        }
    }

    /// Resumes an instance that ran out of time, with all that it has, and asks for the rest at once.
    fn revive(&mut self, mut instance: Instance, submission: Submission, permit: Permit) {
        let Submission { id, asker, submitted, queued, bytes, waits, reply, .. } = submission;
        drop(queued);
        let config = &self.worker.shared.config;
        instance.audience = Audience::new(id, waits, reply);
        instance.submitted = submitted;
        // Before, nobody waited for it: that time says nothing of how long results take.
        instance.began = self.now.max(self.clock);
        instance.deadline = self.now + config.instance_ttl;
        instance.patience = config.resend_after;
        instance.permits = Some((permit, bytes));
        instance.asker = asker;
        instance.ask(&self.worker.shared, usize::MAX);
        self.run(instance);
    }

    fn run(&mut self, mut instance: Instance) {
        instance.wake = instance.deadline.min(self.now.max(self.clock) + instance.patience);
        self.timers.push(Reverse((instance.wake, instance.id)));
        self.running.insert(instance.id, Box::new(instance));
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

    fn finish(&mut self, id: InstanceId, result: Result<Outcome, Abort>) {
        let Some(mut instance) = self.running.remove(&id) else { return };
        let result = result.and_then(|outcome| {
            let nodes =
                outcome.contributors.iter().map(|index| instance.holder(*index)).collect::<Result<Vec<_>, _>>()?;
            Ok((outcome, nodes))
        });
        if result.is_ok() {
            self.learn(&instance);
        }
        let metrics = &instance.metrics;
        let (outcome, bytes) = match result {
            Ok((Outcome { result, proof, .. }, contributors)) => {
                if instance.filling.is_none() {
                    metrics.ended(Ended::Finished);
                    metrics.stage(Stage::Finished, Some(&id), instance.submitted.elapsed());
                }
                let bytes = result.expose().len() + proof.len() + 2 * contributors.len();
                let culprits = core::mem::take(&mut instance.culprits);
                (Ok(Arc::new(Finished { result, proof, contributors, culprits })), bytes)
            }
            Err(abort) => {
                metrics.ended(Ended::Aborted);
                warn!(instance = %id, %abort, "an instance failed");
                (Err(InstanceError::Aborted(abort)), 0)
            }
        };
        self.end(*instance, &outcome, bytes, false);
    }

    /// Notes how long the result of a key in quorum mode took, whoever combined it: a node that lost its patience may have its own result just
    /// before the one that was on its way.
    fn learn(&mut self, instance: &Instance) {
        if instance.key.delivery == Delivery::Quorum {
            let took = self.now.max(self.clock).saturating_duration_since(instance.began);
            self.hedge.learn(instance.key.suite, took, self.worker.shared.config.resend_after);
        }
    }

    /// Ends an instance whose time is over; it is kept, so that the same request can resume it.
    fn expire(&mut self, id: InstanceId) {
        let Some(instance) = self.running.get_mut(&id) else { return };
        if let Some(result) = instance.step(Input::Tick, &mut self.worker) {
            return self.finish(id, result);
        }
        // Its last step may have brought a result.
        self.check_claims();
        let Some(instance) = self.running.remove(&id) else { return };
        let left = instance.deadline.saturating_duration_since(self.now);
        let after = self.worker.shared.config.instance_ttl.saturating_sub(left);
        let text = instance.expiry_text(&self.worker.shared, after);
        let resumable = instance.filling.is_none();
        if resumable {
            instance.metrics.ended(Ended::Expired);
            warn!(instance = %id, reason = text, "an instance ran out of time");
        }
        self.end(*instance, &Err(InstanceError::Expired(text)), 0, resumable);
    }

    /// Answers all callers and keeps the record.
    pub(super) fn end(&mut self, mut instance: Instance, outcome: &ending::Outcome, bytes: usize, expired: bool) {
        let id = instance.id;
        instance.permits = None;
        let owner = instance.asker.take().map(|Asker { name, result_bytes, .. }| (name, result_bytes));
        let mut audiences = core::mem::take(&mut instance.joined);
        for audience in core::iter::once(&mut instance.audience).chain(&mut audiences) {
            audience.end(id, outcome);
        }
        let mut record = Record::of(&mut instance, bytes);
        record.owner = owner;
        match instance.filling.take() {
            Some(permit) => {
                record.asked = None;
                let by = outcome.as_ref().map_or(&[][..], |finished| &finished.contributors);
                self.filled(&instance.key, permit, by);
            }
            None => self.plan(&instance.key, Duration::ZERO),
        }
        for audience in core::iter::once(&mut instance.audience).chain(&mut audiences) {
            audience.close(|| record.snapshot());
        }
        if expired || instance.machine.lingers() {
            record.bytes = record.bytes.saturating_add(MACHINE_BYTES).saturating_add(instance.asked.len());
            let place = if expired { &mut record.expired } else { &mut record.lingering };
            *place = Some(Box::new(instance));
        }
        self.results.insert(id, record, self.now);
    }

    /// Answers a holder that asks for the messages that this node sent.
    fn resend(&mut self, from: NodeId, id: &InstanceId) {
        let shared = &self.worker.shared;
        let (sent, holders) = match self.running.get_mut(id) {
            Some(instance) => (&mut instance.sent, &instance.key.holders),
            None => match self.results.get_mut(id) {
                Some(record) => (&mut record.sent, &record.holders),
                // The peer gets them when the instance starts.
                None => return self.inherit(id),
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

    fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.backlog.expire(self.now);
        self.results.expire(self.now);
        self.look_after();
        self.fill();
        let shared = &self.worker.shared;
        shared.metrics.ticks.inc();
        shared.metrics.backlog_dropped.inc_by(self.backlog.take_dropped());
        shared.publish_load();
        // Not before all that is to be seen of it has been published.
        self.ticks.none = self.is_idle() && self.load().is_some_and(|load| load.inbox.load(Relaxed) == 0);
    }

    /// Whether nothing here waits for the time, but for results that will be too old.
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.backlog.len() == 0
    }

    fn load(&self) -> Option<&ShardLoad> {
        self.worker.shared.shards.get(self.index)
    }

    /// Lets instances whose time has come ask for what they lack, or ends them.
    fn look_after(&mut self) {
        let mut asks = ASKS_PER_TICK;
        while asks > 0
            && let Some(&Reverse((wake, id))) = self.timers.peek()
            && wake <= self.now
        {
            self.timers.pop();
            let Some(instance) = self.running.get_mut(&id).filter(|instance| instance.wake == wake) else { continue };
            let is_superseded = instance.filling.as_ref().is_some_and(FillingPermit::is_superseded);
            if is_superseded || instance.deadline <= self.now || instance.is_in_vain(&self.worker.shared, self.now) {
                self.expire(id);
                continue;
            }
            // The tick comes first: what the machine gets by it need not be asked for, and what it sends need not be repeated.
            let sent = instance.sent.count();
            if instance.key.delivery == Delivery::Quorum && !instance.hedged {
                instance.hedged = true;
                self.worker.shared.metrics.hedges.inc();
            }
            if let Some(result) = instance.step(Input::Tick, &mut self.worker) {
                self.finish(id, result);
                continue;
            }
            let Some(instance) = self.running.get_mut(&id) else { continue };
            let shared = &self.worker.shared;
            let asked = instance.ask(shared, sent);
            debug!(instance = %id, asked, "asked the silent to send again");
            asks = asks.saturating_sub(asked.max(1));
            let least = shared.config.resend_after;
            instance.patience = (2 * instance.patience).clamp(least, 16 * least);
            instance.wake = instance.deadline.min(self.now + instance.patience);
            self.timers.push(Reverse((instance.wake, id)));
        }
    }

    /// The clock's time, which rises. Where no ticks come, it stands for them.
    pub(crate) fn set_clock(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
        if self.ticks.none {
            self.now = self.now.max(now);
        }
    }

    /// When to wake up before the next tick that comes by itself, if that is earlier than what was asked for last.
    fn next_alarm(&mut self) -> Option<Instant> {
        let void = |running: &HashMap<_, Box<Instance>>, (wake, id): &(Instant, InstanceId)| {
            running.get(id).is_none_or(|instance| instance.wake != *wake)
        };
        while self.timers.peek().is_some_and(|Reverse(timer)| void(&self.running, timer)) {
            self.timers.pop();
        }
        let Reverse((wake, _)) = self.timers.peek()?;
        let next = (*wake).max(self.now + FINEST);
        let waits = self.ticks.alarm.filter(|alarm| *alarm > self.now);
        let soon = next < self.now + self.worker.shared.config.tick;
        (soon && waits.is_none_or(|alarm| next < alarm)).then_some(next)
    }

    /// Updates what others see of this shard, and the ticks that it wants; `inbox` commands wait for it.
    pub(crate) fn report(&mut self, inbox: usize) {
        if self.ticks.none && self.is_idle() {
            let due = self.results.due().into_iter().chain(self.next_plan()).min();
            self.ticks.alarm = due.map(|due| due.max(self.now + self.worker.shared.config.tick));
        } else {
            self.ticks.none = false;
            self.ticks.alarm = self.next_alarm().or(self.ticks.alarm);
        }
        let Some(load) = self.load() else { return };
        load.inbox.store(inbox, Relaxed);
        load.backlog.store(self.backlog.len(), Relaxed);
        load.results.store(self.results.len(), Relaxed);
        let ticks = self.ticks;
        load.ticks.send_if_modified(|wanted| core::mem::replace(wanted, ticks) != ticks);
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
