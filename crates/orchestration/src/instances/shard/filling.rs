//! Fills the stocks of presignatures while nobody asks for a signature.
//!
//! A stock that is below its level is planned to be filled; plans are made when the node starts, when a key's entry changes, and when an instance of
//! the key ends. A stock that is full is looked at again after some hours, since a node that records what it uses up signs with nothing that is days old.

use core::time::Duration;
use std::{collections::BTreeMap, sync::Arc};

use theta_authority::InstanceId;
use theta_custody::KeyEntry;
use theta_names::{KeyRef, NodeId};
use theta_network::PeerState;
use theta_protocols::{
    AnyMachine,
    ecdsa::{Filling, Majority, made_at_once, most_kept},
};
use theta_rounds::PartyId;
use theta_schemes::keys::{KeyId, KeyName};
use tokio::time::Instant;
use tracing::debug;

use super::Shard;
use crate::{
    asked::Asked,
    filling::{Beginning, Filled, FillingPermit, STEP},
    instances::{
        ending::{Audience, Ending},
        envelope::{Announcement, Content},
        instance::Instance,
    },
};

/// The most fillings of keys that a thread begins at once, and the most in which it takes part.
const MOST_AT_ONCE: (usize, usize) = (4, 16);

/// How long a stock that is full is left alone: what is in it grows old.
const REVIEW: Duration = Duration::from_secs(6 * 60 * 60);

/// When a thread is to look at which stock.
pub(crate) type Plans = BTreeMap<KeyId, (Instant, KeyRef)>;

/// This version of the key, whichever is the primary one.
fn named(key: &KeyEntry) -> KeyRef {
    KeyRef { name: key.name.clone(), version: Some(key.version) }
}

/// How many holders one program takes.
fn members(key: &KeyEntry) -> usize {
    Majority::of(key.delivery).members(key.public.threshold())
}

/// How many presignatures one program makes for a stock of this level.
fn made_by_one(key: &KeyEntry, level: usize) -> usize {
    made_at_once(level, Majority::of(key.delivery))
}

impl Shard {
    /// The number of presignatures that a stock should have.
    fn level(&self, key: &KeyEntry) -> usize {
        // A stock that takes exactly k holders is of all of them: if somebody cheated, there is no other set.
        let is_stopped = Majority::of(key.delivery) == Majority::Dishonest && !key.stock.quarantined().is_empty();
        if key.suite.takes_honest_majority() && !is_stopped { self.worker.shared.stock_level(key) } else { 0 }
    }

    /// Plans to fill the stocks of all keys that are in this thread's care.
    pub(super) fn plan_all(&mut self) {
        for key in self.worker.shared.keys.iter() {
            self.plan_here(&key);
        }
    }

    /// The entries of a key have changed.
    pub(in crate::instances) fn plan_changed(&mut self, name: &KeyName) {
        self.plans.retain(|_, (_, key)| key.name != *name);
        for key in self.worker.shared.keys.versions(name.as_str()) {
            // Who is disabled or has given way to another version makes no programs, for months perhaps.
            if self.worker.shared.keys.resolve(&named(&key), None).is_err() {
                let _ = key.stock.set_ups().wipe_before(u32::MAX);
            }
            self.plan_here(&key);
        }
        if self.index == 0 {
            let shared = &self.worker.shared;
            let known: Vec<KeyId> = shared.keys.iter().map(|entry| entry.key_id).collect();
            shared.fillings.keep(|key| known.contains(key));
        }
    }

    /// Plans to fill the stock of a key if it is in this thread's care.
    fn plan_here(&mut self, key: &Arc<KeyEntry>) {
        let [a, b, ..] = *key.key_id.as_bytes();
        let threads = self.worker.shared.config.thread_count();
        if usize::from(u16::from_be_bytes([a, b])).checked_rem(threads) == Some(self.index) {
            self.plan(key, Duration::ZERO);
        }
    }

    /// Plans to fill the stock of a key if that is low, not before so much time has passed.
    pub(super) fn plan(&mut self, key: &Arc<KeyEntry>, after: Duration) {
        if self.level(key) == 0 {
            // What programs have left to others is looked at, too.
            if key.stock.set_ups().ready() > 0 {
                let at = self.now.max(self.clock) + REVIEW;
                self.plans.entry(key.key_id).or_insert_with(|| (at, named(key)));
            }
            return;
        }
        let shared = &self.worker.shared;
        let _ = key.stock.wipe_before(shared.burning.oldest(&shared.today));
        let now = self.now.max(self.clock);
        let pause =
            if self.is_low(key) { shared.fillings.pause(key, shared.local, now).saturating_add(after) } else { REVIEW };
        let at = now + pause;
        let planned = self.plans.entry(key.key_id).or_insert_with(|| (at, named(key)));
        planned.0 = planned.0.min(at);
    }

    /// Whether the stock of a key is below its level, or nearly without presignatures of which this node says what they sign: requests that it
    /// coordinates use those up, whatever others have left.
    fn is_low(&self, key: &KeyEntry) -> bool {
        let (level, stock) = (self.level(key), &key.stock);
        if level == 0 {
            return false;
        }
        // Half of what falls to each holder; nothing where that is less than one.
        let own = level.checked_div(2 * members(key)).unwrap_or(0);
        let local = key.holders.index_of(self.worker.shared.local).map(PartyId::of_share);
        self.ready(key) < level
            || (self.has_room(key) && local.is_some_and(|local| stock.presignatures_of(local) < own))
    }

    /// Whether there is room in the stock of a key for what one program makes.
    fn has_room(&self, key: &KeyEntry) -> bool {
        let level = self.level(key);
        self.ready(key).saturating_add(made_by_one(key, level)) <= most_kept(level)
    }

    /// How many presignatures of a key wait, with no more of each holder than falls to it: what one has too much of serves no others.
    fn ready(&self, key: &KeyEntry) -> usize {
        let part = most_kept(self.level(key)).div_ceil(key.holders.len().max(1));
        key.stock.presignatures_of_each(part)
    }

    /// When the next stock is to be looked at.
    pub(super) fn next_plan(&self) -> Option<Instant> {
        self.plans.values().map(|(at, _)| *at).min()
    }

    /// Begins the fillings whose time has come.
    pub(super) fn fill(&mut self) {
        let now = self.now.max(self.clock);
        while self.filling < MOST_AT_ONCE.0
            && let Some(key) = self.plans.iter().find(|(_, (at, _))| *at <= now).map(|(key, _)| *key)
            && let Some((_, named)) = self.plans.remove(&key)
        {
            // Whoever is disabled or gone needs none.
            if let Ok(key) = self.worker.shared.keys.resolve(&named, None) {
                self.fill_stock(&key, now);
            }
        }
    }

    /// Begins to fill the stock of a key, if that is low and nobody else is at it.
    fn fill_stock(&mut self, key: &Arc<KeyEntry>, now: Instant) {
        let shared = &self.worker.shared;
        // Nobody has used it since the day before yesterday.
        let _ = key.stock.set_ups().wipe_before(shared.today.get().saturating_sub(1));
        if self.level(key) == 0 {
            return self.plan(key, Duration::ZERO);
        }
        if key.stock.wipe_before(shared.burning.oldest(&shared.today)) {
            // The others see at the same time that theirs are too old: they take turns.
            return self.plan(key, Duration::ZERO);
        }
        if shared.fillings.is_under_way(key) || !self.is_low(key) {
            // Whatever ends the one that is under way plans again.
            return self.plan(key, REVIEW);
        }
        let avoided = self.unreached(key);
        let reached = key.holders.len().saturating_sub(avoided.len());
        if self.cannot_serve() || reached < members(key) {
            return self.look_again(key, now);
        }
        let Some(announcement) = self.announcement(key) else { return };
        let (id, initiator) = (announcement.id(self.worker.shared.local), self.worker.shared.local);
        debug!(instance = %id, key = %key.qualified_name(), "fills the stock of presignatures");
        let doubted = key.stock.doubted().into_iter();
        let avoided = avoided.into_iter().chain(doubted).collect();
        let (had, unended) = (self.ready(key), key.stock.unended());
        let beginning = Beginning { id, initiator, now, had, unended };
        self.begin_filling(key, beginning, &announcement, avoided);
        // A node that is full has no place for it now.
        if !self.worker.shared.fillings.is_under_way(key) {
            self.look_again(key, now);
        }
    }

    /// Plans to look at the stock of a key again, later each time.
    fn look_again(&mut self, key: &KeyEntry, now: Instant) {
        let at = now + self.worker.shared.fillings.look_again(key);
        self.plans.insert(key.key_id, (at, named(key)));
    }

    /// Whether this node uses no key at present, or never again.
    fn cannot_serve(&self) -> bool {
        self.worker.shared.failure.get().is_some() || self.worker.shared.departure.get().is_some()
    }

    /// The holders to which there is no connection.
    fn unreached(&self, key: &KeyEntry) -> Vec<PartyId> {
        let shared = &self.worker.shared;
        let status = shared.transport.status();
        let is_reached =
            |node: NodeId| status.iter().any(|peer| peer.peer == node && peer.state == PeerState::Connected);
        let unreached = key.holders.iter().filter(|node| *node != shared.local && !is_reached(*node));
        unreached.filter_map(|node| key.holders.index_of(node).map(PartyId::of_share)).collect()
    }

    /// A new announcement, whose instance is in this thread's care.
    fn announcement(&mut self, key: &KeyEntry) -> Option<Announcement> {
        let mut session = [0; 32];
        rand_core::Rng::fill_bytes(&mut self.worker.rng, &mut session);
        let [a, b, ..] = session;
        let threads = self.worker.shared.config.thread_count();
        let place = usize::from(u16::from_be_bytes([a, b]));
        let ours = (place - place.checked_rem(threads)?).checked_add(self.index)?;
        let ours = u16::try_from(ours).or_else(|_| u16::try_from(self.index)).ok()?;
        if let Some(prefix) = session.first_chunk_mut() {
            *prefix = ours.to_be_bytes();
        }
        Some(Announcement { key: key.key_id, epoch: key.epoch, session })
    }

    /// A holder begins a filling. Whoever has no room, or takes part in another one, lets it do without this node.
    pub(super) fn announced(&mut self, from: NodeId, id: InstanceId, announcement: &Announcement) {
        let shared = &self.worker.shared;
        let is_known = self.running.contains_key(&id) || self.results.get(&id).is_some();
        if is_known || announcement.id(from) != id || self.filling >= MOST_AT_ONCE.1 {
            return;
        }
        let Some(key) = shared.keys.of_id(&announcement.key) else { return };
        let Ok(key) = shared.keys.serving(key) else { return };
        let fits = key.epoch == announcement.epoch && self.level(&key) > 0;
        if !fits || !self.has_room(&key) || !key.holders.contains(from) || self.cannot_serve() {
            return;
        }
        let (now, had, unended) = (self.now.max(self.clock), self.ready(&key), key.stock.unended());
        let beginning = Beginning { id, initiator: from, now, had, unended };
        self.begin_filling(&key, beginning, announcement, Vec::new());
    }

    fn begin_filling(
        &mut self,
        key: &Arc<KeyEntry>,
        beginning: Beginning,
        announcement: &Announcement,
        avoided: Vec<PartyId>,
    ) {
        let shared = &self.worker.shared;
        let Some(permits) = shared.running.take(1).zip(shared.statements.take(0)) else { return };
        let Some(permit) = shared.fillings.begin(key, beginning, shared.local) else { return };
        let Some(initiator) = key.holders.index_of(beginning.initiator).map(PartyId::of_share) else { return };
        let filling = Filling { initiator, session: announcement.session, avoided };
        let Some(machine) = self.filling_machine(key, &filling) else { return };
        // What others begin may come to nothing, or may be made without this node.
        if beginning.initiator == shared.local {
            self.plans.remove(&key.key_id);
        }
        self.launch_filling(key, machine, (permit, permits), (beginning, announcement));
    }

    fn launch_filling(
        &mut self,
        key: &Arc<KeyEntry>,
        machine: AnyMachine,
        (permit, permits): (FillingPermit, (crate::quota::Permit, crate::quota::Permit)),
        (beginning, announcement): (Beginning, &Announcement),
    ) {
        let audience = Audience::of(Ending::default());
        let instance = self.instance(beginning.id, Asked::nothing(key), Arc::clone(key), machine, audience, permits);
        let mut instance = Instance { filling: Some(permit), ..instance };
        if beginning.initiator == self.worker.shared.local {
            let bytes = Content::Announcement { instance: beginning.id, announcement: *announcement }.encode();
            instance.announce(bytes, &self.worker.shared);
        }
        self.filling += 1;
        self.launch(instance);
    }

    /// Whether a filling of another holder has brought half of what one program can, or more: some may have been used since. Whoever says that
    /// programs are to make one at a time keeps the others from filling their stocks.
    fn has_brought_enough(&self, key: &KeyEntry, beginning: Beginning) -> bool {
        let level = self.level(key);
        let (had, has) = (beginning.had, self.ready(key));
        let wanted = made_by_one(key, level).min(most_kept(level).saturating_sub(had));
        beginning.initiator == self.worker.shared.local || has.saturating_sub(had) >= wanted.div_ceil(2)
    }

    /// A filling has ended, in which these nodes made presignatures; if none did, it came to nothing.
    pub(super) fn filled(&mut self, key: &Arc<KeyEntry>, permit: FillingPermit, by: &[NodeId]) {
        self.filling = self.filling.saturating_sub(1);
        let local = self.worker.shared.local;
        // Of these a stock takes several programs: the others may not have ended this one yet when the next begins.
        let next = if Majority::of(key.delivery) == Majority::Dishonest { STEP } else { Duration::ZERO };
        let (filled, after) = match by {
            [] => (Filled::Nowhere, Duration::ZERO),
            nodes if nodes.contains(&local) && self.has_brought_enough(key, permit.beginning()) => (Filled::Here, next),
            nodes if nodes.contains(&local) => (Filled::Nowhere, Duration::ZERO),
            // The others may not have ended yet.
            _ => (Filled::Elsewhere, 4 * STEP),
        };
        let (now, unended) = (self.now.max(self.clock), key.stock.unended());
        if by.is_empty() && unended > permit.beginning().unended {
            permit.keep_quiet(unended, now);
        }
        permit.end(local, filled, now);
        self.plan(key, after);
    }
}
