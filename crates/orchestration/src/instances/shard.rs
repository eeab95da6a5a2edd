//! A CPU thread and the instances that it owns.

use core::cmp::Reverse;
use std::{
    collections::{BinaryHeap, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Relaxed},
    },
    time,
};

use theta_protocols::{Outcome, frost};
use theta_rounds::{Abort, Bug, Input, PartyId};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tracing::{debug, warn};

use super::{
    backlog::{Backlog, BacklogLimits, Early},
    command::{Command, Reply, Submission},
    ending::Ending,
    instance::{Instance, Sent, Worker},
    results::{Record, ResultLimits, Results},
};
use crate::{
    Finished, InstanceError, InstanceId, InstanceSnapshot, SubmitError,
    metrics::{Ended, Stage, SuiteMetrics},
    quota::Permit,
    request,
};

/// Commands taken from the inbox at once.
const BATCH: usize = 64;
/// Requests to send again that leave at one tick: a node that is behind must not add to its peers' load.
const ASKS_PER_TICK: usize = 256;
/// What an instance that is kept after its end is taken to weigh beside its statement: its machine with what is in it.
const MACHINE_BYTES: usize = 8 << 10;

/// One CPU thread's part of the orchestrator: it alone touches these instances, so there are no locks.
pub(crate) struct Shard {
    index: usize,
    worker: Worker,
    inbox: mpsc::Receiver<Command>,
    running: HashMap<InstanceId, Box<Instance>>,
    backlog: Backlog,
    results: Results,
    /// When to look after which instance; an entry whose instance has another time by now is void.
    timers: BinaryHeap<Reverse<(Instant, InstanceId)>>,
    /// The time as of the last tick.
    now: Instant,
}

impl Shard {
    pub(crate) fn new(index: usize, worker: Worker, inbox: mpsc::Receiver<Command>, now: Instant) -> Self {
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
            inbox,
            running: HashMap::new(),
            backlog: Backlog::new(backlog),
            results: Results::new(results),
            timers: BinaryHeap::new(),
            now,
            worker,
        }
    }

    /// Works until it is told to stop.
    pub(crate) fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        while !self.worker.shared.stopping.load(Acquire) && self.inbox.blocking_recv_many(&mut batch, BATCH) > 0 {
            for command in batch.drain(..) {
                self.handle(command);
            }
            self.report();
        }
    }

    fn handle(&mut self, command: Command) {
        // Those who asked and went away need no answer: failures to reply are not errors.
        match command {
            Command::Submit(submission) => self.submit(*submission),
            Command::Message { instance, message } => self.message(instance, message),
            Command::Resend { from, instance } => self.resend(from, &instance),
            Command::Ending(id, reply) => drop(reply.send(self.ending(&id))),
            Command::Status(id, reply) => drop(reply.send(self.status(&id))),
            Command::Watch(id, reply) => drop(reply.send(self.watch(&id))),
            Command::Compute(computation) => {
                if catch_unwind(AssertUnwindSafe(|| computation(&mut self.worker.rng))).is_err() {
                    warn!("bug: a computation panicked; please report it");
                }
            }
            Command::Tick(now) => self.tick(now),
            Command::Stop => {}
        }
    }

    fn submit(&mut self, submission: Submission) {
        // Whoever asked has gone away before anything was done: then nothing is.
        if submission.reply.is_closed() {
            return;
        }
        let Some(metrics) = self.worker.shared.metrics.suite(submission.key.suite).cloned() else { return };
        metrics.stage(Stage::Assigned, Some(&submission.id), submission.submitted.elapsed());
        if let Some(ending) = self.joinable(&submission.id) {
            drop(submission.reply.send(Ok(ending)));
            return;
        }
        let Some(permit) = self.worker.shared.running.take(1) else {
            self.worker.shared.metrics.overloaded("running");
            drop(submission.reply.send(Err(SubmitError::Overloaded("running instances"))));
            return;
        };
        match self.results.remove(&submission.id).and_then(|record| record.expired) {
            Some(instance) => self.revive(*instance, submission, permit),
            None => self.start(submission, permit, metrics),
        }
    }

    /// The ending of an instance that runs or has a result, which a repeated request joins.
    fn joinable(&self, id: &InstanceId) -> Option<Ending> {
        if let Some(instance) = self.running.get(id) {
            return Some(instance.ending.clone());
        }
        self.results.get(id).filter(|record| record.expired.is_none()).map(|record| record.ending.clone())
    }

    /// Starts an instance, unless the request is not valid: then it is as if it had never come.
    fn start(&mut self, submission: Submission, permit: Permit, metrics: Arc<SuiteMetrics>) {
        let Submission { id, key, statement, seed, submitted, queued, bytes, waits, reply } = submission;
        drop(queued);
        let began = time::Instant::now();
        let nonces = Some((key.nonces.clone(), self.worker.shared.config.nonces_per_peer));
        let options = frost::Options { nonces, seed };
        let machine = catch_unwind(AssertUnwindSafe(|| {
            theta_protocols::start_with(&key.public, &key.share, &statement, options)
        }));
        let checked = match machine {
            Ok(Ok(machine)) => Ok(machine),
            Ok(Err(error)) => Err(SubmitError::Request(error)),
            Err(_) => Err(SubmitError::Bug(Bug("a request's validation panicked"))),
        };
        let machine = match checked {
            Ok(machine) => machine,
            Err(error) => {
                // Its room is free before anybody hears of it.
                drop((permit, bytes));
                return drop(reply.send(Err(error)));
            }
        };
        metrics.stage(Stage::Validated, Some(&id), began.elapsed());
        let config = &self.worker.shared.config;
        let patience = config.resend_after;
        let deadline = self.now + config.instance_ttl;
        let wake = deadline.min(self.now + patience);
        let ending = Ending::default();
        let instance = Instance {
            caller: hold(waits, reply, &ending),
            id,
            operation: request::name(&statement),
            statement_bytes: statement.as_statement().bytes().len(),
            key,
            machine,
            metrics,
            ending,
            watch: None,
            heard: Vec::new(),
            sent: Sent::default(),
            culprits: Vec::new(),
            submitted,
            deadline,
            wake,
            patience,
            permits: Some((permit, bytes)),
        };
        self.timers.push(Reverse((wake, id)));
        self.running.insert(id, Box::new(instance));
        self.drive(id, Input::Start, Stage::ShareMade);
        for early in self.backlog.take(&id) {
            // The first of them may have been enough: then a question among the others is answered by the result's record.
            self.message(id, early);
        }
    }

    /// Goes on with an instance that ran out of time, with all that it has, and asks for the rest at once.
    fn revive(&mut self, mut instance: Instance, submission: Submission, permit: Permit) {
        let Submission { id, submitted, queued, bytes, waits, reply, .. } = submission;
        drop(queued);
        let config = &self.worker.shared.config;
        instance.ending = Ending::default();
        instance.watch = None;
        instance.submitted = submitted;
        instance.deadline = self.now + config.instance_ttl;
        instance.patience = config.resend_after;
        instance.wake = instance.deadline.min(self.now + instance.patience);
        instance.permits = Some((permit, bytes));
        instance.caller = hold(waits, reply, &instance.ending);
        instance.ask(&self.worker.shared);
        self.timers.push(Reverse((instance.wake, id)));
        self.running.insert(id, Box::new(instance));
    }

    fn message(&mut self, id: InstanceId, message: Early) {
        if let Some(instance) = self.running.get_mut(&id) {
            let Early { from, slot, channel, payload } = message;
            instance.hear(from);
            self.drive(id, Input::Message { from, slot, channel, payload }, Stage::ShareReceived);
        } else if let Some(record) = self.results.get_mut(&id) {
            self.worker.shared.metrics.late.inc();
            record.reply(message, &mut self.worker);
        } else {
            self.backlog.push(id, message, self.now);
        }
    }

    /// Gives an instance one input; ends it if that was all it needed.
    fn drive(&mut self, id: InstanceId, input: Input, stage: Stage) {
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
        let (shares, _) = instance.machine.contributions();
        let metrics = &instance.metrics;
        let (outcome, bytes) = match result {
            Ok(Outcome { result, proof, contributors }) => {
                metrics.ended(Ended::Finished);
                metrics.stage(Stage::Finished, Some(&id), instance.submitted.elapsed());
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
        self.end(*instance, shares, outcome, bytes, false);
    }

    /// Ends an instance whose time is over; it is kept, so that the same request can go on with it.
    fn expire(&mut self, id: InstanceId) {
        let Some(instance) = self.running.get_mut(&id) else { return };
        if let Some(result) = instance.step(Input::Tick, &mut self.worker) {
            return self.finish(id, result);
        }
        let Some(instance) = self.running.remove(&id) else { return };
        let text = instance.expiry_text(&self.worker.shared);
        instance.metrics.ended(Ended::Expired);
        warn!(instance = %id, reason = text, "an instance ran out of time");
        let (shares, _) = instance.machine.contributions();
        let bytes = instance.statement_bytes.saturating_add(MACHINE_BYTES);
        self.end(*instance, shares, Err(InstanceError::Expired(text)), bytes, true);
    }

    /// Tells everybody and keeps the record.
    fn end(
        &mut self,
        mut instance: Instance,
        shares: usize,
        outcome: Result<Arc<Finished>, InstanceError>,
        bytes: usize,
        expired: bool,
    ) {
        let id = instance.id;
        instance.permits = None;
        instance.ending.set(outcome);
        if let Some(caller) = instance.caller.take() {
            drop(caller.send(Ok(instance.ending.clone())));
        }
        let sent = core::mem::take(&mut instance.sent);
        let mut record = Record {
            key: Arc::clone(&instance.key),
            operation: instance.operation,
            shares,
            ending: instance.ending.clone(),
            bytes: bytes.saturating_add(sent.bytes()),
            sent,
            expired: None,
            lingering: None,
        };
        if let Some(watch) = instance.watch.take() {
            watch.send_replace(record.snapshot());
        }
        if expired {
            record.expired = Some(Box::new(instance));
        } else if instance.machine.lingers() {
            record.bytes = record.bytes.saturating_add(MACHINE_BYTES);
            record.lingering = Some(Box::new(instance));
        }
        self.results.insert(id, record, self.now);
    }

    /// Answers a peer that asks for what this node sent.
    fn resend(&mut self, from: PartyId, id: &InstanceId) {
        let shared = &self.worker.shared;
        let Some(&(peer, _)) = shared.peers.iter().find(|(_, party)| *party == from) else { return };
        let sent = match self.running.get_mut(id) {
            Some(instance) => &mut instance.sent,
            None => match self.results.get_mut(id) {
                Some(record) => &mut record.sent,
                None => return,
            },
        };
        if sent.may_answer(from, self.now, shared.config.resend_interval) {
            sent.answer(peer, from, shared);
        }
    }

    fn ending(&self, id: &InstanceId) -> Option<Ending> {
        match self.running.get(id) {
            Some(instance) => Some(instance.ending.clone()),
            None => self.results.get(id).map(|record| record.ending.clone()),
        }
    }

    fn status(&self, id: &InstanceId) -> Option<InstanceSnapshot> {
        match self.running.get(id) {
            Some(instance) => Some(instance.snapshot()),
            None => self.results.get(id).map(Record::snapshot),
        }
    }

    fn watch(&mut self, id: &InstanceId) -> Option<watch::Receiver<InstanceSnapshot>> {
        match self.running.get_mut(id) {
            Some(instance) => Some(instance.watch()),
            None => self.results.get(id).map(|record| watch::channel(record.snapshot()).1),
        }
    }

    fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.backlog.expire(self.now);
        self.results.expire(self.now);
        self.look_after();
        let shared = &self.worker.shared;
        shared.metrics.backlog_dropped.inc_by(self.backlog.take_dropped());
        shared.publish_load();
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
            if instance.deadline <= self.now {
                self.expire(id);
                continue;
            }
            // Time passes first, so that what the machine does about it is not asked for in vain.
            if let Some(result) = instance.step(Input::Tick, &mut self.worker) {
                self.finish(id, result);
                continue;
            }
            let Some(instance) = self.running.get_mut(&id) else { continue };
            let shared = &self.worker.shared;
            let asked = instance.ask(shared);
            debug!(instance = %id, asked, "asked the silent to send again");
            asks = asks.saturating_sub(asked.max(1));
            instance.patience = (2 * instance.patience).min(16 * shared.config.resend_after);
            instance.wake = instance.deadline.min(self.now + instance.patience);
            self.timers.push(Reverse((instance.wake, id)));
        }
    }

    fn report(&self) {
        let Some(load) = self.worker.shared.shards.get(self.index) else { return };
        load.inbox.store(self.inbox.len(), Relaxed);
        load.backlog.store(self.backlog.len(), Relaxed);
        load.results.store(self.results.len(), Relaxed);
    }
}

/// Answers a caller now, or keeps the way back if the caller waits for the end anyway.
fn hold(waits: bool, reply: Reply, ending: &Ending) -> Option<Reply> {
    if waits {
        return Some(reply);
    }
    drop(reply.send(Ok(ending.clone())));
    None
}

impl Drop for Shard {
    /// Also on the way out of a panic: nobody waits for ever.
    fn drop(&mut self) {
        for instance in self.running.values() {
            instance.ending.set(Err(InstanceError::ShuttingDown));
        }
    }
}
