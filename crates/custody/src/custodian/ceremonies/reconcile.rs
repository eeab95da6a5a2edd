//! Brings this node to where the ledger is: begins what was begun, ends what was ended, and takes over the public part of sharings
//! that were made without it.

use std::collections::BTreeMap;

use theta_ceremonies::Memory;
use theta_ledger::{Action, Begun, Ended as LedgerEnd, Input, Outcome, Replica};
use theta_names::{KeyName, Version};

use super::{Ended, Running};
use crate::ceremony::{Ending, public_of};
use crate::custodian::message::Id;
use crate::custodian::work::{Record, Work};
use crate::request::CeremonyState;
use crate::{CeremonyError, Custodian, CustodyEffect};

/// Ticks after which a node agrees that nothing comes of a ceremony in which it has no part.
const OTHERS: u64 = 480;
/// Ticks between the turns of two nodes.
const TURN: u64 = 8;
/// Of so many nodes two have their turn at once, of twice as many three, and so on.
const AT_ONCE_OF: u64 = 16;
/// Ticks for which a node goes on after the others have ended, so that it gets its share from what they kept.
const LATE: u32 = 240;

impl Custodian {
    /// After each entry, and now and then.
    pub(in crate::custodian) fn reconcile(&mut self, work: &mut Work) {
        let Some(ledger) = self.ledger() else { return };
        let (local, now) = (self.local.get(), self.ticks);
        let running: BTreeMap<u64, u64> = ledger
            .running()
            .keys()
            .map(|number| (*number, self.begun_at.get(number).copied().unwrap_or(now)))
            .collect();
        let due: Vec<(u64, Begun)> = ledger
            .running()
            .iter()
            .filter(|(_, begun)| begun.nodes().contains(&local))
            .map(|(number, begun)| (*number, begun.clone()))
            .collect();
        self.begun_at = running;
        // One that is over in the group is not begun anywhere any more.
        self.barred.retain(|id| due.iter().any(|(_, begun)| begun.request.digest() == *id));
        let news = self.ledger.as_ref().map_or_else(Vec::new, |replica| self.requests.settle(replica.state()));
        self.vouch(work);
        // A ceremony may begin with the share that another one ends with.
        for id in self.running.keys().copied().collect::<Vec<_>>() {
            self.conclude(&id, work);
        }
        for (number, begun) in due {
            self.begin(number, &begun, work);
        }
        self.forget_plans();
        self.take_over(work);
        self.follow_states(work);
        // Who takes part has reported by itself.
        let elsewhere = news.iter().filter(|id| !self.running.contains_key(*id) && !self.ended.contains_key(*id));
        let reports = elsewhere.filter_map(|id| self.report_of_ledger(id)).map(CustodyEffect::Report);
        work.effects.extend(reports.collect::<Vec<_>>());
    }

    /// Ceremonies that are over need no plan.
    fn forget_plans(&mut self) {
        let Self { planned, ledger, .. } = self;
        let Some(ledger) = ledger.as_ref().map(Replica::state) else { return };
        planned.retain(|id| ledger.request(id).is_none_or(|history| history.ended.is_none()));
    }

    /// Takes part in a ceremony that the group has begun, unless it did already.
    fn begin(&mut self, number: u64, begun: &Begun, work: &mut Work) {
        let id = begun.request.digest();
        if self.running.contains_key(&id) || self.ended.contains_key(&id) || self.barred.contains(&id) {
            return;
        }
        let key = begun.request.change.key();
        // The share with which it begins may be about to come into use.
        if work.changed().any(|name| name == key) {
            self.unsettled = true;
            return;
        }
        // Or it comes late: this is asked again when that ceremony ends.
        if self.running.values().any(|running| running.is_of(key, Some(begun.version))) {
            return;
        }
        // Until its peers have confirmed its store, it does not know whether it took part before.
        let Some(memory) = self.memory_of(number) else { return };
        let planned = self.planned.of(&self.group.name, begun);
        let launched = planned.and_then(|planned| self.launch(&planned, memory, work));
        if let Err(error) = launched
            && !matches!(error, CeremonyError::StoreFailed(_))
        {
            self.barred.insert(id);
        }
    }

    /// Ceremonies that go on after a start speak again when this node's peers have confirmed its store. If the store was set back instead,
    /// the node may have said what its journals do not have: they begin anew, as at one that has forgotten.
    pub(in crate::custodian) fn vouch(&mut self, work: &mut Work) {
        let resumed = self.running.values().filter(|running| running.is_unconfirmed()).map(|running| running.id);
        for id in resumed.collect::<Vec<_>>() {
            let number = self.ledger().and_then(|ledger| ledger.request(&id)).map(|history| history.number);
            let Some(memory) = number.and_then(|number| self.memory_of(number)) else { continue };
            if self.running.get_mut(&id).is_some_and(|running| !running.vouch(memory)) {
                self.running.remove(&id);
                work.records.push(Record::Discard(id));
            }
        }
    }

    fn memory_of(&self, number: u64) -> Option<Memory> {
        self.ledger.as_ref()?.spoke_at(number).map(|spoke| if spoke { Memory::Lost } else { Memory::Kept })
    }

    /// Ends a ceremony as the ledger says, when it does.
    pub(super) fn conclude(&mut self, id: &Id, work: &mut Work) {
        let Some(ended) = self.ledger().and_then(|ledger| ledger.request(id)).and_then(|history| history.ended) else {
            return;
        };
        let Some(running) = self.running.get_mut(id) else { return };
        let recovered = |ending: &Ending| matches!(ending, Ending::Recovered { .. });
        let activated = |ending: &Ending| matches!(ending, Ending::Activated { .. });
        match (ended, running.ending.take()) {
            (LedgerEnd::Activated, Some(Ok(ending))) if activated(&ending) => self.finish(id, Ok(ending), work),
            (LedgerEnd::Recovered, Some(Ok(ending))) if recovered(&ending) => self.finish(id, Ok(ending), work),
            // What the others kept may still give this node its share.
            (LedgerEnd::Activated, None) if running.waits_late(LATE) => {}
            (LedgerEnd::Activated, _) => {
                let state = self.report_of_ledger(id).map(|report| report.state);
                let state = state.unwrap_or_else(|| CeremonyState::Failed("the key was changed since then".to_owned()));
                self.close(id, state, Vec::new(), work);
            }
            (LedgerEnd::Recovered, _) => self.close(id, CeremonyState::Recovered, Vec::new(), work),
            (LedgerEnd::Aborted, _) => self.close(id, CeremonyState::Aborted, Vec::new(), work),
            (LedgerEnd::Cancelled, _) => self.close(id, CeremonyState::Cancelled, Vec::new(), work),
        }
    }

    /// Takes over the public part of sharings that this node holds, or held, and did not help to make. It has no share of them.
    fn take_over(&mut self, work: &mut Work) {
        let lacking = self.sharings_that_are_news();
        for (name, version) in lacking {
            if work.changed().any(|changed| *changed == name) {
                self.unsettled = true;
                continue;
            }
            let Some(history) = self.ledger().and_then(|ledger| ledger.keys().get(&name)?.versions.get(&version))
            else {
                continue;
            };
            let Some(sharing) = history.serving() else { continue };
            let (Ok(public), Ok(suite)) = (public_of(&sharing.public), history.suite.as_str().parse()) else {
                continue;
            };
            let (epoch, holders, delivery) = (sharing.epoch, sharing.holders.clone(), history.delivery);
            let parts = (public, None, sharing.certificate.clone());
            let about = (&name, version, epoch);
            if self.admits_epoch(about, false).unwrap_or(false) && self.takes(about, &parts.0, delivery, &holders) {
                self.write_sharing(about, (suite, delivery), &holders, parts, work);
            }
        }
    }

    /// Sharings that serve, with this node among their holders or those of the one before, whose ceremony does not run here.
    fn sharings_that_are_news(&self) -> Vec<(KeyName, Version)> {
        let Some(ledger) = self.ledger() else { return Vec::new() };
        let mut news = Vec::new();
        for (name, line) in ledger.keys() {
            let known = self.table.versions(name.as_str());
            for (version, history) in &line.versions {
                let Some(sharing) = history.serving() else { continue };
                let own = known.iter().find(|entry| entry.version == *version);
                let holds = sharing.holders.contains(&self.local.get());
                let is_news = own.map_or(holds, |entry| entry.epoch < sharing.epoch);
                let runs = || self.running.values().any(|running| running.is_of(name, Some(*version)));
                if is_news && !runs() {
                    news.push((name.clone(), *version));
                }
            }
        }
        news
    }

    /// Proposes the end of each ceremony that is over here. Each node that took part has a certificate of its own, so that one after the
    /// other tells all of its own, until one is decided.
    pub(in crate::custodian) fn propose_ends(&mut self, work: &mut Work) {
        let Some(ledger) = self.ledger() else { return };
        let running = ledger.running().iter().map(|(number, begun)| {
            let orphaned = begun.is_orphaned(ledger.members());
            (*number, begun.request.digest(), begun.nodes(), orphaned)
        });
        for (number, id, nodes, orphaned) in running.collect::<Vec<_>>() {
            let outcome = if orphaned { Some(Outcome::Aborted) } else { self.outcome_of(number, &id) };
            let Some(outcome) = outcome else { continue };
            let action = Action::End { ceremony: number, outcome };
            let over = self.running.get(&id).filter(|running| running.ending.is_some());
            let over = over.map_or(u64::MAX, |running| running.over);
            let input = if over >= turn(&nodes, self.local.get(), number) {
                Input::Propose(action, Vec::new())
            } else {
                Input::Expect(action)
            };
            self.drive_ledger(input, work);
        }
    }

    /// How a ceremony has ended, as far as this node can tell.
    fn outcome_of(&self, number: u64, id: &Id) -> Option<Outcome> {
        match self.running.get(id).map(|running| (running.ending.as_ref(), running)) {
            Some((Some(Ok(Ending::Activated { public, certificate, .. })), _)) => {
                Some(Outcome::Activated { public: public.to_bytes(), certificate: certificate.clone() })
            }
            Some((Some(Ok(Ending::Recovered { .. })), running)) => {
                let owner = super::requests::recovers(&running.subject.request.change, self.local.get());
                owner.then_some(Outcome::Recovered)
            }
            _ => {
                let Self { running, ended, begun_at, ticks, .. } = self;
                let prospects = Prospects { running, ended, begun_at, now: *ticks };
                prospects.are_none(number, id).then_some(Outcome::Aborted)
            }
        }
    }
}

/// The ceremonies of the group as this node sees them.
pub(in crate::custodian) struct Prospects<'a> {
    pub(in crate::custodian) running: &'a BTreeMap<Id, Running>,
    pub(in crate::custodian) ended: &'a BTreeMap<Id, Ended>,
    /// At which tick this node learned of each, by their numbers.
    pub(in crate::custodian) begun_at: &'a BTreeMap<u64, u64>,
    /// The present tick.
    pub(in crate::custodian) now: u64,
}

impl Prospects<'_> {
    /// Whether nothing will come of a ceremony, for all that this node knows.
    pub(in crate::custodian) fn are_none(&self, number: u64, id: &Id) -> bool {
        let Some(running) = self.running.get(id) else {
            let since = self.begun_at.get(&number).copied().unwrap_or(self.now);
            return self.ended.contains_key(id) || self.now.saturating_sub(since) >= OTHERS;
        };
        match &running.ending {
            Some(Ok(Ending::Activated { .. } | Ending::Recovered { .. })) => false,
            Some(Ok(Ending::Aborted) | Err(_)) => true,
            None => running.is_stuck(),
        }
    }
}

/// After how many ticks it is a node's turn to tell the others of a ceremony's end. They begin with another one each time; of many, some
/// have their turn at once, since one that is done late would keep all others waiting.
fn turn(nodes: &[u16], local: u16, number: u64) -> u64 {
    let place = nodes.iter().position(|node| *node == local).unwrap_or(nodes.len());
    let (place, count) = (u64::try_from(place).unwrap_or(0), u64::try_from(nodes.len().max(1)).unwrap_or(1));
    let at = place.saturating_add(number).checked_rem(count).unwrap_or(0);
    at.checked_div(1 + count / AT_ONCE_OF).unwrap_or(0).saturating_mul(TURN)
}
