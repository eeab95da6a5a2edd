//! The results of instances that have ended, kept for later questions.

use core::{mem::size_of, time::Duration};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use theta_custody::KeyEntry;
use theta_names::{Holders, KeyRef};
use theta_schemes::keys::KeyName;

use tokio::time::Instant;

use super::{
    backlog::Early,
    ending::Ending,
    instance::{Instance, Sent, Worker},
};
use crate::{InstanceId, InstanceSnapshot, InstanceState, asked::Asked};

/// Longer statements are not kept when their instance has ended. In bytes.
const LONG_STATEMENT: usize = 4 << 10;

/// An instance that has ended, or that another one continues.
pub(crate) struct Record {
    /// The key, as the request named it.
    pub(crate) key: KeyRef,
    pub(crate) operation: &'static str,
    /// How many shares there were, and how many were needed.
    pub(crate) contributions: (usize, usize),
    pub(crate) ending: Ending,
    /// The messages that this node sent, for holders that ask for them.
    pub(crate) sent: Sent,
    /// Who holds shares in its epoch.
    pub(crate) holders: Holders,
    /// The request, unless its statement is long: under the key's next epoch, others may need this node's share for it
    /// once more.
    pub(crate) asked: Option<Asked>,
    /// The instance that continues this one's request, or would if somebody asked for it.
    pub(crate) next: Option<InstanceId>,
    /// The instance itself if it ran out of time: a new request resumes it with all that it has.
    pub(crate) expired: Option<Box<Instance>>,
    /// The instance itself if it has finished and others may still need its answers.
    pub(crate) lingering: Option<Box<Instance>>,
    /// Its size in bytes beside that of this struct: results, messages, statements.
    pub(crate) bytes: usize,
    /// The client on whose account it is, and how much room that client has.
    pub(crate) owner: Option<(Arc<str>, usize)>,
}

impl Record {
    /// The record of an instance, without its machine; `bytes` is the size of its outcome.
    pub(crate) fn of(instance: &mut Instance, bytes: usize) -> Self {
        let sent = core::mem::take(&mut instance.sent);
        let asked = (instance.asked.len() <= LONG_STATEMENT).then(|| instance.asked.to_owned_bytes());
        let statement = asked.as_ref().map_or(0, Asked::len);
        Self {
            key: instance.asked.key.clone(),
            operation: instance.asked.statement.as_statement().operation(),
            contributions: instance.machine.contributions(),
            ending: instance.audience.ending.clone(),
            bytes: bytes.saturating_add(sent.bytes()).saturating_add(statement),
            sent,
            holders: instance.key.holders.clone(),
            asked,
            next: None,
            expired: None,
            lingering: None,
            owner: None,
        }
    }

    pub(crate) fn snapshot(&self) -> InstanceSnapshot {
        let (shares, needed) = self.contributions;
        let state = self.ending.state().unwrap_or(InstanceState::Running);
        // An instance that was continued under another epoch has got the remaining shares there.
        let shares = if matches!(state, InstanceState::Finished(_)) { shares.max(needed) } else { shares };
        InstanceSnapshot { key: self.key.to_string(), operation: self.operation, shares, needed, state }
    }

    /// Whether it has a result.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.ending.get(), Some(Ok(_)))
    }

    /// Whether its result is valid under every epoch of its key. A coin's proof is about the shares of one epoch.
    pub(crate) fn holds_in_every_epoch(&self) -> bool {
        matches!(self.ending.get(), Some(Ok(finished)) if finished.proof.is_empty())
    }

    /// Replaces the key's entry by one with the same shares.
    pub(crate) fn use_entry(&mut self, key: &Arc<KeyEntry>) {
        for instance in [&mut self.expired, &mut self.lingering].into_iter().flatten() {
            instance.key = Arc::clone(key);
        }
    }

    /// Drops the machines, with the shares that they hold.
    pub(crate) fn drop_machines(&mut self) {
        self.expired = None;
        self.lingering = None;
    }

    /// Lets a finished instance answer one that has not finished. The answer is kept once, with the other sent
    /// messages.
    pub(crate) fn reply(&mut self, message: Early, worker: &mut Worker) {
        let Some(instance) = &mut self.lingering else { return };
        let Some(input) = instance.input(message) else { return };
        if instance.step(input, worker).is_some() {
            self.lingering = None;
            return;
        }
        self.sent.keep_reply(&mut instance.sent);
    }

    fn weight(&self) -> usize {
        // The map, the queue and the allocations behind the pointers take about as much again.
        self.bytes.saturating_add(2 * (size_of::<Self>() + size_of::<InstanceId>()))
    }
}

/// How many results are kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultLimits {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    pub(crate) age: Duration,
}

/// Results, bounded by age, number and bytes. When there are too many, results of askers above their room are dropped
/// first, then the oldest. Secrets are wiped when their last reader drops them.
pub(crate) struct Results {
    limits: ResultLimits,
    records: HashMap<InstanceId, (Instant, Record)>,
    /// When each record came, oldest first. The entry of a record that was taken out stays until its turn.
    order: VecDeque<(Instant, InstanceId)>,
    bytes: usize,
    /// For each asker, the size of its results, and when each came.
    owners: HashMap<Arc<str>, Owned>,
    /// How many threads share the bounds; this is the part of one of them.
    parts: usize,
}

#[derive(Default)]
struct Owned {
    weight: usize,
    /// How much room the asker has, in bytes.
    room: usize,
    order: VecDeque<(Instant, InstanceId)>,
}

impl Results {
    /// `parts`: the number of threads among which the room of each asker is divided.
    pub(crate) fn new(limits: ResultLimits, parts: usize) -> Self {
        let (records, owners) = (HashMap::new(), HashMap::new());
        Self { limits, records, order: VecDeque::new(), bytes: 0, owners, parts: parts.max(1) }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn get(&self, id: &InstanceId) -> Option<&Record> {
        self.records.get(id).map(|(_, record)| record)
    }

    /// All records of a key, in no order.
    pub(crate) fn of_key<'a>(
        &'a mut self,
        name: &'a KeyName,
    ) -> impl Iterator<Item = (InstanceId, &'a mut Record)> + 'a {
        let records = self.records.iter_mut().map(|(id, (_, record))| (*id, record));
        records.filter(|(_, record)| record.key.name == *name)
    }

    pub(crate) fn get_mut(&mut self, id: &InstanceId) -> Option<&mut Record> {
        self.records.get_mut(id).map(|(_, record)| record)
    }

    pub(crate) fn insert(&mut self, id: InstanceId, record: Record, now: Instant) {
        self.remove(&id);
        self.bytes = self.bytes.saturating_add(record.weight());
        self.book(&record, now, id);
        self.records.insert(id, (now, record));
        self.order.push_back((now, id));
        while self.records.len() > self.limits.count || self.bytes > self.limits.bytes {
            if !self.drop_of_greediest() && !self.drop_oldest() {
                break;
            }
        }
        // Entries of records that were taken out are few in practice; this bounds them in any case.
        if self.order.len() > 2 * self.records.len() + 64 {
            let records = &self.records;
            self.order.retain(|(since, id)| records.get(id).is_some_and(|(current, _)| current == since));
        }
    }

    pub(crate) fn remove(&mut self, id: &InstanceId) -> Option<Record> {
        let (_, record) = self.records.remove(id)?;
        self.bytes = self.bytes.saturating_sub(record.weight());
        let cost = self.cost(&record);
        if let Some((name, _)) = &record.owner
            && let Some(owned) = self.owners.get_mut(name)
        {
            owned.weight = owned.weight.saturating_sub(cost);
            if owned.weight == 0 {
                self.owners.remove(name);
            }
        }
        Some(record)
    }

    /// How much of its owner's room a record takes: its bytes, or its share of the number of records if that is more.
    fn cost(&self, record: &Record) -> usize {
        record.weight().max(self.least_cost())
    }

    /// The least that a record takes of its owner's room.
    fn least_cost(&self) -> usize {
        self.limits.bytes.checked_div(self.limits.count).unwrap_or(0).max(1)
    }

    fn book(&mut self, record: &Record, now: Instant, id: InstanceId) {
        let Some((name, room)) = &record.owner else { return };
        let (cost, least) = (self.cost(record), self.least_cost());
        let owned = self.owners.entry(Arc::clone(name)).or_default();
        owned.room = room.div_ceil(self.parts);
        owned.weight = owned.weight.saturating_add(cost);
        owned.order.push_back((now, id));
        // Entries of records that are gone, as above: no more records than this can exist.
        let most = owned.weight.checked_div(least).unwrap_or(0);
        if owned.order.len() > 2 * most + 64 {
            let records = &self.records;
            owned.order.retain(|(since, other)| {
                *other == id || records.get(other).is_some_and(|(current, _)| current == since)
            });
        }
    }

    /// Drops the oldest result of the asker that is furthest above its room; returns whether there is one.
    fn drop_of_greediest(&mut self) -> bool {
        let beyond = |(name, owned): (&Arc<str>, &Owned)| {
            let by = owned.weight.checked_sub(owned.room).filter(|by| *by > 0)?;
            Some((by, Arc::clone(name)))
        };
        let Some((_, name)) = self.owners.iter().filter_map(beyond).max() else { return false };
        while let Some((since, id)) = self.owners.get_mut(&name).and_then(|owned| owned.order.pop_front()) {
            if self.records.get(&id).is_some_and(|(current, _)| *current == since) {
                self.remove(&id);
                return true;
            }
        }
        false
    }

    /// When the oldest is too old.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.order.front().map(|(since, _)| *since + self.limits.age)
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
