//! Continues requests when their key gets new shares.
//!
//! Shares of different epochs do not combine, so an instance belongs to one epoch. When the epoch changes, running
//! instances start again under the new one, for the same callers and until the same deadline. An instance stays with
//! the version of its key that answered when the policy was asked. If that version is rotated out, instances that sign
//! or draw coins end; callers that still want the answer ask again, and with them the policy. Instances that have ended
//! may still be needed: a node that had no result yet starts again, too, and the others, which have theirs, would
//! ignore its instance. They therefore remember the ids that their answered requests would have now, and join such an
//! instance when a peer sends a message of it. Their own clients have been granted exactly that request.

use std::sync::Arc;

use theta_rounds::{Abort, Bug};
use theta_schemes::keys::KeyName;
use tracing::{debug, warn};

use super::{
    ending::{Audience, Ending},
    instance::Instance,
    results::Record,
    shard::Shard,
};
use crate::{InstanceError, InstanceId, metrics::Ended};

impl Shard {
    /// The entries of a key have changed. Nothing here keeps a share that has left the key table.
    pub(super) fn key_changed(&mut self, name: &KeyName) {
        let mut ids: Vec<InstanceId> =
            self.running.iter().filter(|(_, instance)| instance.asked.is_for(name)).map(|(id, _)| *id).collect();
        // The order of messages must not depend on the order of a hash map.
        ids.sort_unstable();
        for id in ids {
            match self.running.remove(&id) {
                Some(instance) if instance.filling.is_some() => self.keep_filling(*instance),
                Some(instance) => self.move_on(*instance),
                None => {}
            }
        }
        self.plan_changed(name);
        for id in self.look_through_records(name) {
            if self.backlog.holds(&id) {
                self.inherit(&id);
            }
        }
    }

    /// Keeps an instance that nobody asked for as long as its key is in use in the same epoch.
    fn keep_filling(&mut self, mut instance: Instance) {
        if let Ok(key) = instance.asked.resolve(&self.worker.shared.keys)
            && key.epoch == instance.key.epoch
        {
            instance.key = key;
            self.running.insert(instance.id, Box::new(instance));
        } else {
            self.filling = self.filling.saturating_sub(1);
        }
    }

    /// Continues an instance under the present entry of its key.
    fn move_on(&mut self, mut instance: Instance) {
        let key = match instance.asked.resolve(&self.worker.shared.keys) {
            Ok(key) => key,
            Err(error) => return self.fail(instance, InstanceError::Key(error)),
        };
        let (old, new) = (instance.id, instance.asked.id_under(&key));
        if old == new {
            instance.key = key;
            self.running.insert(old, Box::new(instance));
            return;
        }
        debug!(instance = %old, next = %new, epoch = key.epoch.get(), "goes on under another epoch of its key");
        let mut record = Record::of(&mut instance, 0);
        record.next = Some(new);
        self.results.insert(old, record, self.now);
        if let Some(other) = self.running.get_mut(&new) {
            other.joined.push(instance.audience);
            other.joined.append(&mut instance.joined);
            return;
        }
        if let Some(record) = self.results.remove(&new).filter(Record::is_finished) {
            let outcome = record.ending.get();
            for audience in instance.joined.iter_mut().chain([&mut instance.audience]) {
                if let Some(outcome) = &outcome {
                    audience.end(new, outcome);
                }
                audience.close(|| record.snapshot());
            }
            self.results.insert(new, record, self.now);
            return;
        }
        match self.machine(&key, &instance.asked) {
            Ok(machine) => {
                instance.id = new;
                instance.metrics = Arc::clone(self.worker.shared.metrics.suite(key.suite));
                instance.machine = machine;
                instance.key = key;
                instance.heard.clear();
                self.heirs.remove(&new);
                self.launch(instance);
            }
            Err(_) => {
                let bug = Bug("a request is not valid under another epoch of its key");
                self.fail(instance, InstanceError::Aborted(Abort::Bug(bug)));
            }
        }
    }

    /// Ends an instance whose key is no longer in use.
    fn fail(&mut self, instance: Instance, error: InstanceError) {
        warn!(instance = %instance.id, %error, "an instance lost its key");
        instance.metrics.ended(Ended::Aborted);
        self.end(instance, &Err(error), 0, false);
    }

    /// Drops the machines of former epochs; returns the ids that the answered requests would have now, in ascending
    /// order.
    fn look_through_records(&mut self, name: &KeyName) -> Vec<InstanceId> {
        let keys = &self.worker.shared.keys;
        let mut heirs = Vec::new();
        for (id, record) in self.results.of_key(name) {
            let key = record.asked.as_ref().map(|asked| (asked, asked.resolve(keys)));
            let now = match &key {
                Some((asked, Ok(key))) => Some(asked.id_under(key)),
                _ => None,
            };
            if now == Some(id) {
                if let Some((_, Ok(key))) = key {
                    record.use_entry(&key);
                }
                continue;
            }
            record.drop_machines();
            if record.is_finished() {
                record.next = now;
                heirs.extend(now.map(|now| (now, id)));
            }
        }
        let results = &self.results;
        self.heirs.retain(|heir, former| results.get(former).is_some_and(|record| record.next == Some(*heir)));
        self.heirs.extend(heirs.iter().copied());
        let mut heirs: Vec<InstanceId> = heirs.into_iter().map(|(heir, _)| heir).collect();
        heirs.sort_unstable();
        heirs
    }

    /// Starts an instance for a request that was answered under a former epoch of its key, because a peer sent a
    /// message of it.
    pub(super) fn inherit(&mut self, id: &InstanceId) {
        let Some(former) = self.heirs.get(id) else { return };
        let Some(record) = self.results.get(former).filter(|record| record.next == Some(*id)) else { return };
        let Some(asked) = record.asked.clone() else { return };
        let ending = if record.holds_in_every_epoch() { record.ending.clone() } else { Ending::default() };
        let shared = &self.worker.shared;
        let Ok(key) = asked.resolve(&shared.keys) else { return };
        // If there is no room now, the peer will ask again.
        let permits = shared.running.take(1).zip(shared.statements.take(asked.len()));
        let (true, Some(permits)) = (asked.id_under(&key) == *id, permits) else { return };
        let Ok(machine) = self.machine(&key, &asked) else { return };
        self.heirs.remove(id);
        debug!(instance = %id, "joins a peer under another epoch of a key");
        let instance = self.instance(*id, asked, key, machine, Audience::of(ending), permits);
        self.launch(instance);
    }

    /// The instance that an id means now: its own, or the one that continues it without a result.
    pub(super) fn current(&self, id: &InstanceId) -> InstanceId {
        let mut current = *id;
        while !self.running.contains_key(&current)
            && let Some(record) = self.results.get(&current).filter(|record| !record.is_finished())
            && let Some(next) = record.next
        {
            current = next;
        }
        current
    }

    /// The record of an instance, or of the one that would answer its request again with the same result.
    pub(super) fn record(&self, id: &InstanceId) -> Option<&Record> {
        let former = || self.results.get(self.heirs.get(id)?).filter(|record| record.holds_in_every_epoch());
        self.results.get(id).or_else(former)
    }
}
