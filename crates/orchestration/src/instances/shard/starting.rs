//! How requests begin: joined to an instance that there is, started, or resumed.

use core::cmp::Reverse;
use std::time;

use theta_protocols::AnyMachine;
use theta_rounds::Input;
use theta_schemes::Unproven;

use super::{Shard, Waiting};
use crate::{
    InstanceError, InstanceId, SubmitError,
    instances::{
        command::Submission,
        ending::{Audience, Ending},
        instance::Instance,
        results::Record,
    },
    metrics::Stage,
    quota::Permit,
};

impl Shard {
    pub(super) fn submit(&mut self, mut submission: Submission) {
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

    /// The ending of an instance that runs or has a result; a repeated request joins it. It does not join one that ended because its key could not be used:
    /// the key can again, or the request would not be here.
    fn joinable(&self, id: &InstanceId) -> Option<Ending> {
        if let Some(instance) = self.running.get(id) {
            return Some(instance.audience.ending.clone());
        }
        let has_ended = |record: &&Record| {
            record.expired.is_none() && !matches!(record.ending.get(), Some(Err(InstanceError::Key(_))))
        };
        self.record(id).filter(has_ended).map(|record| record.ending.clone())
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
    pub(super) fn begin(
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
        self.refused.forget(&id);
        let instance = self.instance(id, asked, key, machine, audience, (permit, bytes));
        self.launch(Instance { submitted, asker, ..instance });
    }

    /// Starts an instance with a new machine, and gives it the messages that have come for it.
    pub(in crate::instances) fn launch(&mut self, mut instance: Instance) {
        let id = instance.id;
        let now = self.now.max(self.clock);
        instance.began = now;
        instance.patience = self.hedge.patience(&instance.key, &self.worker.shared, now);
        instance.looked_around = false;
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
}
