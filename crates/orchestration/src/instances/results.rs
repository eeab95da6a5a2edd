//! Instances that have ended, kept for those who ask again.

use core::{mem::size_of, time::Duration};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use theta_rounds::Input;
use tokio::time::Instant;

use super::{
    backlog::Early,
    ending::Ending,
    instance::{Instance, Sent, Worker},
};
use crate::{InstanceId, InstanceSnapshot, InstanceState, KeyEntry};

/// An instance that has ended.
pub(crate) struct Record {
    pub(crate) key: Arc<KeyEntry>,
    pub(crate) operation: &'static str,
    pub(crate) shares: usize,
    pub(crate) ending: Ending,
    /// What this node sent, for peers that ask for it.
    pub(crate) sent: Sent,
    /// The instance itself if it ran out of time: a new request revives it with all that it has.
    pub(crate) expired: Option<Box<Instance>>,
    /// The instance itself if it has finished and may have to help others to do so.
    pub(crate) lingering: Option<Box<Instance>>,
    /// What it weighs beside its own size: results, messages, statements.
    pub(crate) bytes: usize,
}

impl Record {
    pub(crate) fn snapshot(&self) -> InstanceSnapshot {
        InstanceSnapshot {
            key: self.key.name.to_string(),
            operation: self.operation,
            shares: self.shares,
            needed: self.key.public.threshold().k().into(),
            state: self.ending.state().unwrap_or(InstanceState::Running),
        }
    }

    /// Lets an instance that has finished answer one that has not. The answer stays with the rest that was sent, once.
    pub(crate) fn reply(&mut self, message: Early, worker: &mut Worker) {
        let Some(instance) = &mut self.lingering else { return };
        let Early { from, slot, channel, payload } = message;
        if instance.step(Input::Message { from, slot, channel, payload }, worker).is_some() {
            self.lingering = None;
            return;
        }
        self.sent.keep_reply(&mut instance.sent);
    }

    fn weight(&self) -> usize {
        // The map, the queue and the allocations behind the pointers cost about as much again.
        self.bytes.saturating_add(2 * (size_of::<Self>() + size_of::<InstanceId>()))
    }
}

/// How many results are kept, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultLimits {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    pub(crate) age: Duration,
}

/// Results, bounded by age, number and bytes; the oldest leave first. Secrets are wiped when their last reader drops them.
pub(crate) struct Results {
    limits: ResultLimits,
    records: HashMap<InstanceId, (Instant, Record)>,
    /// When which record came, oldest first. Records that were taken out leave their entry until its turn.
    order: VecDeque<(Instant, InstanceId)>,
    bytes: usize,
}

impl Results {
    pub(crate) fn new(limits: ResultLimits) -> Self {
        Self { limits, records: HashMap::new(), order: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn get(&self, id: &InstanceId) -> Option<&Record> {
        self.records.get(id).map(|(_, record)| record)
    }

    pub(crate) fn get_mut(&mut self, id: &InstanceId) -> Option<&mut Record> {
        self.records.get_mut(id).map(|(_, record)| record)
    }

    pub(crate) fn insert(&mut self, id: InstanceId, record: Record, now: Instant) {
        self.remove(&id);
        self.bytes = self.bytes.saturating_add(record.weight());
        self.records.insert(id, (now, record));
        self.order.push_back((now, id));
        while self.records.len() > self.limits.count || self.bytes > self.limits.bytes {
            if !self.drop_oldest() {
                break;
            }
        }
        // Entries of records that were taken out: few in practice, bounded in any case.
        if self.order.len() > 2 * self.records.len() + 64 {
            let records = &self.records;
            self.order.retain(|(since, id)| records.get(id).is_some_and(|(current, _)| current == since));
        }
    }

    pub(crate) fn remove(&mut self, id: &InstanceId) -> Option<Record> {
        let (_, record) = self.records.remove(id)?;
        self.bytes = self.bytes.saturating_sub(record.weight());
        Some(record)
    }

    /// Drops what is too old.
    pub(crate) fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(since, _)| now.duration_since(*since) >= self.limits.age) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) -> bool {
        let Some((since, id)) = self.order.pop_front() else { return false };
        if self.records.get(&id).is_some_and(|(current, _)| *current == since) {
            self.remove(&id);
        }
        true
    }
}
