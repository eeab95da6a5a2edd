//! How instances end: with a result, by a failure, or when their time is over.

use core::time::Duration;
use std::sync::Arc;

use theta_names::Delivery;
use theta_protocols::Outcome;
use theta_rounds::Abort;

use super::Shard;
use crate::{
    Asker, Finished, InstanceError, InstanceId,
    instances::{ending, instance::Instance, results::Record},
    metrics::{Ended, Stage},
};

/// The estimated size, in bytes, of an instance that is kept after its end, beside its statement and what its machine keeps of what others have sent.
const MACHINE_BYTES: usize = 8 << 10;

impl Shard {
    pub(super) fn finish(&mut self, id: InstanceId, result: Result<Outcome, Abort>) {
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
                self.worker.shared.failures.warn(format_args!("instance {id} failed: {abort}"));
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
            self.hedge.learn(instance.key.suite, took, (&self.worker.shared.config, self.behind));
        }
    }

    /// Ends an instance whose time is over; it is kept, so that the same request can resume it.
    pub(super) fn expire(&mut self, id: InstanceId) {
        // A result may be here that has not been checked.
        self.check_claims();
        let Some(instance) = self.running.remove(&id) else { return };
        let left = instance.deadline.saturating_duration_since(self.now);
        let after = self.worker.shared.config.instance_ttl.saturating_sub(left);
        let text = instance.expiry_text(&self.worker.shared, after);
        let resumable = instance.filling.is_none();
        if resumable {
            instance.metrics.ended(Ended::Expired);
            self.worker.shared.failures.warn(format_args!("instance {id} ran out of time: {text}"));
        }
        self.end(*instance, &Err(InstanceError::Expired(text)), 0, resumable);
    }

    /// Answers all callers and keeps the record.
    pub(in crate::instances) fn end(
        &mut self,
        mut instance: Instance,
        outcome: &ending::Outcome,
        bytes: usize,
        expired: bool,
    ) {
        let id = instance.id;
        instance.permits = None;
        let owner = instance.asker.take().map(|Asker { name, result_bytes, .. }| (name, result_bytes));
        let mut audiences = core::mem::take(&mut instance.joined);
        for audience in core::iter::once(&mut instance.audience).chain(&mut audiences) {
            audience.end(id, outcome);
        }
        if expired {
            instance.rest();
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
            let machine = MACHINE_BYTES.saturating_add(instance.machine.kept_bytes());
            record.bytes = record.bytes.saturating_add(machine).saturating_add(instance.asked.len());
            let place = if expired { &mut record.expired } else { &mut record.lingering };
            *place = Some(Box::new(instance));
        }
        self.results.insert(id, record, self.now);
    }
}
