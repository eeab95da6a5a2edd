//! The custodian of one node.

mod ceremonies;
mod greetings;
mod ledger;
mod message;
mod open;
mod seats;
mod states;
mod subjects;
mod witness;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use theta_ceremonies::CeremonyKeys;
use theta_ledger::{Input, Replica, WarrantRefusal};
use theta_names::NodeId;
use theta_schemes::keys::KeyName;
use theta_store::{Frozen, Store};

use crate::ceremony::Plans;
use crate::keys::entries;
use crate::request::{CeremonyReport, CustodyEffect, CustodyInput, To};
use crate::seating::{Members, Seating};
use crate::{Burner, Certifier, CustodyError, KeyTable, Quarantines, Roster, StoreSlots, StoreStanding};
use ceremonies::{Early, Ended, Helped, Requests, Running};
use greetings::Greetings;
use ledger::MemberRequests;
use message::{Id, Message, Part};
use witness::Witnesses;
use work::Work;

pub use message::{announcement, message_subject};

/// Keeps a node's keys: its live table, its ceremonies, and the record of both in the store. Each node has one.
///
/// It is a pure machine except for the store: inputs go in one after another, effects come out, and everything on which
/// an effect depends is durable before the effect comes out. Ticks are its only time. If it is killed at any moment and
/// opened again, it goes on where it was.
pub struct Custodian {
    store: Arc<Store>,
    local: NodeId,
    group: Roster,
    /// The same, for those who run beside this.
    seating: Arc<Seating>,
    /// At which tick this machine became a member's; 0 if it was one at its start.
    seated: u64,
    /// The members that others were told of last.
    followed: Option<Members>,
    keys: Option<Arc<CeremonyKeys>>,
    table: Arc<KeyTable>,
    /// What is not used here any more, before the group has decided so.
    frozen: Vec<Frozen>,
    requests: Requests,
    running: BTreeMap<Id, Running>,
    ended: BTreeMap<Id, Ended>,
    /// Ceremonies that run or ended here, by the ids of their plans.
    plans: BTreeMap<Id, Id>,
    /// The plans of ceremonies that the group may begin or has begun.
    planned: Plans,
    /// At which tick this node learned of the ceremonies that run in the group, by their numbers.
    begun_at: BTreeMap<u64, u64>,
    /// Ceremonies in which this node cannot take part.
    barred: BTreeSet<Id>,
    /// Whether a ceremony has come to something since the group was last told.
    over: bool,
    /// Whether the table has to follow a change of the store before this node can go on with what the ledger says.
    unsettled: bool,
    /// The epilogue of which peers were sent parts last.
    helped: Option<Helped>,
    early: Early,
    greetings: Greetings,
    witnesses: Witnesses,
    /// The group's ledger; `None` if a node of the group has no identity to vote with.
    ledger: Option<Replica>,
    requests_of_members: MemberRequests,
    /// Why the warrant that was brought last does not serve.
    unserving: Option<WarrantRefusal>,
    /// The time of the last tick, in seconds since 1970.
    now: u64,
    ticks: u64,
    /// Why nothing can be done until the store has recovered.
    failed: Option<String>,
}

impl core::fmt::Debug for Custodian {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Custodian(node {}, {} keys, {} ceremonies)", self.local, self.table.len(), self.running.len())
    }
}

impl Custodian {
    /// The live table of keys.
    #[must_use]
    pub const fn keys(&self) -> &Arc<KeyTable> {
        &self.table
    }

    /// The group.
    #[must_use]
    pub const fn group(&self) -> &Roster {
        &self.group
    }

    /// A certifier for the slots of this node's requests, with its identity and the slots in its store.
    #[must_use]
    pub fn certifier(&self) -> Certifier {
        let memory = Box::new(StoreSlots::new(Arc::clone(&self.store)));
        Certifier::following(Arc::clone(&self.seating), self.local, self.keys.clone(), memory)
    }

    /// The standing of the store, for code that only asks whether it may be believed.
    #[must_use]
    pub fn standing(&self) -> StoreStanding {
        StoreStanding::new(Arc::clone(&self.store))
    }

    /// Records which nonces are used up.
    #[must_use]
    pub fn burner(&self) -> Burner {
        Burner::new(Arc::clone(&self.store))
    }

    /// Records which holders of a key compute no more together.
    #[must_use]
    pub fn quarantines(&self) -> Quarantines {
        Quarantines::new(Arc::clone(&self.store))
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Takes one input.
    pub fn handle(&mut self, input: CustodyInput) -> Vec<CustodyEffect> {
        self.handle_all([input])
    }

    /// Takes several inputs in their order, with one commit of the store for all of them. If the store fails, the only
    /// effect is [`CustodyEffect::StoreFailed`], and none follow until the store has recovered, which is tried on every
    /// fourth tick; then everything goes on as after a restart.
    pub fn handle_all(&mut self, inputs: impl IntoIterator<Item = CustodyInput>) -> Vec<CustodyEffect> {
        let effects = self.take_all(inputs);
        // Other users of the store read it there, and decide nothing once and for all in a copy that may be old.
        self.store.set_confirmed(self.is_trusted());
        effects
    }

    fn take_all(&mut self, inputs: impl IntoIterator<Item = CustodyInput>) -> Vec<CustodyEffect> {
        let mut work = Work::default();
        if self.failed.is_some() {
            return self.recover(inputs);
        }
        if core::mem::take(&mut self.unsettled) {
            self.reconcile(&mut work);
        }
        let inputs: Vec<CustodyInput> = inputs.into_iter().collect();
        self.look_ahead(&inputs);
        for input in inputs {
            let taken = match input {
                CustodyInput::Message { from, bytes } => self.receive(from, &bytes, &mut work),
                CustodyInput::Tick(now) => {
                    self.tick(now, &mut work);
                    Ok(())
                }
                CustodyInput::Connected(peer) => {
                    self.greet(peer, &mut work);
                    self.drive_ledger(Input::Connected(peer), &mut work);
                    Ok(())
                }
            };
            if let Err(error) = taken {
                return self.fail(&error);
            }
        }
        if core::mem::take(&mut self.over) {
            self.propose_ends(&mut work);
        }
        self.settle(work)
    }

    /// Lets each ceremony check the signatures in all messages together that have come for it.
    fn look_ahead(&mut self, inputs: &[CustodyInput]) {
        let mut items: BTreeMap<Id, Vec<(NodeId, Bytes)>> = BTreeMap::new();
        for input in inputs {
            if let CustodyInput::Message { from, bytes } = input
                && let Ok(Message::Ceremony { id, part: Part::Items, payload }) = Message::decode(bytes)
            {
                items.entry(id).or_default().push((*from, payload));
            }
        }
        for (plan, items) in items.into_iter().filter(|(_, items)| items.len() > 1) {
            let id = self.plans.get(&plan);
            if let Some(running) = id.and_then(|id| self.running.get_mut(id)) {
                running.look_ahead(&items);
            }
        }
    }

    fn tick(&mut self, now: u64, work: &mut Work) {
        self.now = now;
        self.ticks += 1;
        self.tick_ceremonies(work);
        self.early.forget_old(self.ticks);
        self.forget_helped();
        self.tick_greetings(work);
        self.tick_ledger(work);
    }

    /// Makes the changes durable, then updates the table from the store, then returns the effects.
    fn settle(&mut self, mut work: Work) -> Vec<CustodyEffect> {
        if !work.records.is_empty() {
            // The record needs no commit of its own.
            self.write_down_seen(true, &mut work);
        }
        let done = self.commit(&work);
        let done = done.and_then(|()| work.changed().try_for_each(|name| self.reload(name)));
        match done {
            Ok(()) => {
                // Whoever hears what this node says knows by then how far its store was: a copy from before is found out.
                if work.speaks {
                    let bytes = Message::Now(self.store.incarnation()).encode();
                    work.effects.insert(0, CustodyEffect::Send { to: To::All, bytes });
                }
                work.effects
            }
            Err(error) => self.fail(&error),
        }
    }

    fn commit(&self, work: &Work) -> Result<(), CustodyError> {
        if work.records.is_empty() {
            return Ok(());
        }
        self.store.write(|transaction| work.records.iter().try_for_each(|record| record.apply(transaction)))
    }

    fn fail(&mut self, error: &CustodyError) -> Vec<CustodyEffect> {
        let text = error.to_string();
        self.failed = Some(text.clone());
        self.store.set_confirmed(false);
        vec![CustodyEffect::StoreFailed(text)]
    }

    /// Updates the table's entries of a key from the store.
    fn reload(&mut self, name: &KeyName) -> Result<(), CustodyError> {
        self.frozen.retain(|frozen| frozen.key != *name);
        self.frozen.extend(self.store.frozen_of(name)?);
        let Some(record) = self.store.key(name)? else { return Ok(()) };
        let entries = entries(&self.store, &record, self.local, &self.table.versions(name.as_str()))?;
        self.table.check(&entries)?;
        self.table.put(name, entries);
        Ok(())
    }

    /// The state of a ceremony, by the digest of its request; `None` if nobody asked for it here and it never began.
    #[must_use]
    pub fn report(&self, id: &Id) -> Option<CeremonyReport> {
        let running = self.running.get(id).map(Running::report);
        let known = running.or_else(|| self.ended.get(id).map(|ended| ended.report.clone()));
        known.or_else(|| self.report_of_request(id)).or_else(|| self.report_of_ledger(id))
    }

    /// The states of all ceremonies that are asked for or run, and of the last ones that ended.
    #[must_use]
    pub fn reports(&self) -> Vec<CeremonyReport> {
        let ended = self.ended.values().map(|ended| ended.report.clone());
        let all = self.running.values().map(Running::report).chain(ended).chain(self.reports_of_requests());
        let known: Vec<CeremonyReport> = all.collect();
        let elsewhere = self.ledger().into_iter().flat_map(|ledger| ledger.running().values());
        let elsewhere = elsewhere.map(|begun| begun.request.digest());
        let others = elsewhere.filter(|id| known.iter().all(|report| report.id != *id));
        let others: Vec<_> = others.filter_map(|id| self.report_of_ledger(&id)).collect();
        known.into_iter().chain(others).collect()
    }

    /// Whether this store may decide what must not be decided twice: enough peers have told what they remember of it,
    /// its history contains that, and not enough peers remember more. Enough peers are as many as must include an
    /// honest one. See the module `witness`.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.failed.is_none() && self.witnesses.is_trusted(self.needed())
    }

    fn others(&self) -> impl Iterator<Item = NodeId> {
        self.group.nodes.iter().copied().filter(|node| *node != self.local)
    }
}
