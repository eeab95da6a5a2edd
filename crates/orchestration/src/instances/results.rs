//! Instances that have ended, kept for those who ask again.

use core::{mem::size_of, time::Duration};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use theta_custody::KeyEntry;
use theta_names::KeyRef;
use theta_schemes::keys::KeyName;

use tokio::time::Instant;

use super::{
    asked::Asked,
    backlog::Early,
    ending::Ending,
    instance::{Instance, Sent, Worker},
};
use crate::{InstanceId, InstanceSnapshot, InstanceState};

/// A statement that is longer is not kept when its instance has ended.
const LONG_STATEMENT: usize = 4 << 10;

/// An instance that has ended, or has gone on as another.
pub(crate) struct Record {
    /// The key, as it was asked for.
    pub(crate) key: KeyRef,
    pub(crate) operation: &'static str,
    /// How many shares there were, and how many it took.
    pub(crate) contributions: (usize, usize),
    pub(crate) ending: Ending,
    /// What this node sent, for peers that ask for it.
    pub(crate) sent: Sent,
    /// What was asked for, unless it is long: under the key's next epoch, others may have to ask this node for its share of it
    /// once more.
    pub(crate) asked: Option<Asked>,
    /// The instance that goes on with this one's request, or would if somebody asked for it.
    pub(crate) next: Option<InstanceId>,
    /// The instance itself if it ran out of time: a new request revives it with all that it has.
    pub(crate) expired: Option<Box<Instance>>,
    /// The instance itself if it has finished and may have to help others to do so.
    pub(crate) lingering: Option<Box<Instance>>,
    /// What it weighs beside its own size: results, messages, statements.
    pub(crate) bytes: usize,
    /// On whose account it is, and how much room that one has.
    pub(crate) owner: Option<(Arc<str>, usize)>,
}

impl Record {
    /// What is left of an instance but for its machine; `bytes` is the weight of its outcome.
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
        // One that went on under another epoch has got the rest there.
        let shares = if matches!(state, InstanceState::Finished(_)) { shares.max(needed) } else { shares };
        InstanceSnapshot { key: self.key.to_string(), operation: self.operation, shares, needed, state }
    }

    /// Whether it has a result.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.ending.get(), Some(Ok(_)))
    }

    /// Whether it has a result that is as good under every epoch of its key. A coin's proof is about the shares of one.
    pub(crate) fn holds_in_every_epoch(&self) -> bool {
        matches!(self.ending.get(), Some(Ok(finished)) if finished.proof.is_empty())
    }

    /// Goes on with this entry of the key, whose shares are the same.
    pub(crate) fn use_entry(&mut self, key: &Arc<KeyEntry>) {
        for instance in [&mut self.expired, &mut self.lingering].into_iter().flatten() {
            instance.key = Arc::clone(key);
        }
    }

    /// Forgets the machines, with the shares that they hold.
    pub(crate) fn drop_machines(&mut self) {
        self.expired = None;
        self.lingering = None;
    }

    /// Lets an instance that has finished answer one that has not. The answer stays with the rest that was sent, once.
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

/// Results, bounded by age, number and bytes. When there are too many, those leave first whose asker has more than its room, then
/// the oldest. Secrets are wiped when their last reader drops them.
pub(crate) struct Results {
    limits: ResultLimits,
    records: HashMap<InstanceId, (Instant, Record)>,
    /// When which record came, oldest first. Records that were taken out leave their entry until its turn.
    order: VecDeque<(Instant, InstanceId)>,
    bytes: usize,
    /// Of each asker: what its results weigh, and when which came.
    owners: HashMap<Arc<str>, Owned>,
    /// How many threads share the bounds: this is the part of one of them.
    parts: usize,
}

#[derive(Default)]
struct Owned {
    weight: usize,
    /// How much room it has.
    room: usize,
    order: VecDeque<(Instant, InstanceId)>,
}

impl Results {
    /// `parts`: among how many the room of each asker is divided.
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

    /// All that are for a key, in no order.
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
        // Entries of records that were taken out: few in practice, bounded in any case.
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

    /// What a record takes of its owner's room: its bytes, or its part of the number that is kept at all if that is more.
    fn cost(&self, record: &Record) -> usize {
        record.weight().max(self.least_cost())
    }

    /// What each record takes of its owner's room at least.
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
        // Entries of records that are gone, as in the order of all: of those that are there, there are no more than this.
        let most = owned.weight.checked_div(least).unwrap_or(0);
        if owned.order.len() > 2 * most + 64 {
            let records = &self.records;
            owned.order.retain(|(since, other)| {
                *other == id || records.get(other).is_some_and(|(current, _)| current == since)
            });
        }
    }

    /// Drops the oldest result of whoever is furthest beyond its room; says whether anybody is.
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
