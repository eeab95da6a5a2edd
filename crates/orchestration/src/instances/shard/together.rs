//! Requests that wait for others, as their proofs are checked or their shares made for less together, and results that are checked together.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time,
};

use theta_protocols::Supply;
use theta_rounds::{Abort, Bug, Input};
use theta_schemes::{check_together, prove_together};

use super::{CLAIMS, Shard, Waiting};
use crate::{InstanceId, SubmitError, instances::command::Command, metrics::Stage};

impl Shard {
    /// Whether the requests that wait for their proofs have to begin before this is done: it may be about one of them.
    pub(super) fn must_begin_before(&self, command: &Command) -> bool {
        match command {
            _ if self.unproven.is_empty() => false,
            Command::Submit(_) => self.unproven.len() >= CLAIMS || self.are_enough(),
            Command::Message { .. } | Command::Supply { .. } | Command::Mail => false,
            _ => true,
        }
    }

    /// Whether all that wait need no others: then the first shares leave before the last are made.
    fn are_enough(&self) -> bool {
        let count = self.unproven.len();
        self.unproven.iter().all(|waiting| waiting.machine.enough().is_some_and(|enough| count >= enough))
    }

    pub(super) fn is_unproven(&self, id: &InstanceId) -> bool {
        self.unproven.iter().any(|waiting| waiting.submission.id == *id)
    }

    /// Checks the proofs of the requests that wait, all together, makes shares that are made for less together, and begins those whose proofs hold. An
    /// invalid request leaves no trace.
    pub(super) fn begin_proven(&mut self) {
        if self.unproven.is_empty() {
            return;
        }
        let (waiting, machines): (Vec<_>, Vec<_>) = core::mem::take(&mut self.unproven)
            .into_iter()
            .map(|Waiting { submission, permit, took, machine }| ((submission, permit, took), machine))
            .unzip();
        let (began, count) = (time::Instant::now(), waiting.len());
        let metrics = &self.worker.shared.metrics;
        let proofs = machines.iter().filter(|machine| machine.enough().is_none()).count();
        metrics.proofs.inc_by(u64::try_from(proofs).unwrap_or(u64::MAX));
        metrics.proof_checks.inc_by(u64::from(proofs > 0));
        let proven = catch_unwind(AssertUnwindSafe(|| prove_together(machines, &mut self.worker.rng)));
        let share = u32::try_from(count).ok().and_then(|count| began.elapsed().checked_div(count)).unwrap_or_default();
        let panicked = || (0..count).map(|_| Err(SubmitError::Bug(Bug("a request's validation panicked")))).collect();
        let proven: Vec<_> = match proven {
            Ok(proven) => proven.into_iter().map(|machine| machine.map_err(SubmitError::Request)).collect(),
            Err(_) => panicked(),
        };
        for ((submission, permit, took), machine) in waiting.into_iter().zip(proven) {
            self.begin(submission, permit, machine, took.saturating_add(share));
        }
    }

    /// Checks the results that wait, until there are none: instances may go on to others.
    pub(super) fn check_claims(&mut self) {
        while !self.worker.claims.is_empty() {
            let (ids, claims): (Vec<_>, Vec<_>) = core::mem::take(&mut self.worker.claims).into_iter().unzip();
            let metrics = &self.worker.shared.metrics;
            metrics.claims.inc_by(u64::try_from(ids.len()).unwrap_or(u64::MAX));
            metrics.checks.inc();
            let began = time::Instant::now();
            let checked = catch_unwind(AssertUnwindSafe(|| check_together(&claims, &mut self.worker.rng)));
            let took = u32::try_from(ids.len()).ok().and_then(|count| began.elapsed().checked_div(count));
            match checked {
                Ok(verdicts) => {
                    for (id, right) in ids.into_iter().zip(verdicts) {
                        self.take_verdict(id, right, took.unwrap_or_default());
                    }
                }
                Err(_) => {
                    for id in ids {
                        self.finish(id, Err(Abort::Bug(Bug("checking results panicked"))));
                    }
                }
            }
        }
    }

    /// Tells an instance whether its result is right; `took` is its part of the time for the check.
    fn take_verdict(&mut self, id: InstanceId, right: bool, took: time::Duration) {
        let Some(instance) = self.running.get_mut(&id) else { return };
        let began = time::Instant::now();
        let end = instance.step(Input::Supply(Supply::Checked(right)), &mut self.worker);
        instance.metrics.stage(Stage::Combining, Some(&id), took.saturating_add(began.elapsed()));
        if let Some(result) = end {
            self.finish(id, result);
        }
    }
}
