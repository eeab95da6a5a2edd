//! Attacks from outside: exchanged disks, replayed requests, and thefts.

use theta_authority::{Asks, Granted};
use theta_custody::{CeremonyError, ChangeError, Custodian};
use theta_names::KeyState;
use theta_orchestration::{ChangeKeyError, HoldError};
use theta_statements::UnixTime;
use theta_store::{KeyError, disk::SimulatedDisk};

use super::{Event, World};
use crate::node::Life;
use crate::permission::presented;
use crate::watch::{Invariant, Observation, Violation};

impl World<'_> {
    /// Copies a node's disk.
    pub(super) fn copy(&mut self, number: u16) {
        if let Some(node) = self.nodes.get_mut(&number)
            && let Some(custodian) = node.life.as_ref().and_then(|life| life.engine.custodian())
        {
            node.copy = Some((node.disk.content(), custodian.store().incarnation()));
        }
    }

    /// A node loses power and restarts with another disk: the copy, or an empty one.
    pub(super) fn set_back(&mut self, number: u16, copied: bool) -> Result<(), Violation> {
        let found = self.nodes.get_mut(&number).and_then(|node| node.copy.take());
        let (content, copy) = match found.filter(|_| copied) {
            Some((content, incarnation)) => (content, Some(incarnation)),
            None if copied => return Ok(()),
            None => match self.setup.empty_disk(number) {
                Ok(disk) => (disk.content(), None),
                Err(text) => return self.watch.violated(Invariant::Works, text),
            },
        };
        self.watch.crashed(number);
        let liars = &self.scenario.liars;
        let honest = self.nodes.iter().filter(|(other, _)| **other != number && !liars.contains_key(other));
        let peers = honest.filter_map(|(_, node)| node.life.as_ref()?.engine.custodian());
        self.watch.stores.set_back(number, copy, peers, (self.scenario.k, self.scenario.last()));
        self.watch.consents.set_back(number);
        self.watch.ledger.set_back(number);
        self.watch.observations.note(Observation::SetBack);
        self.taken.retain(|(_, node)| *node != number);
        if let Some(node) = self.nodes.get_mut(&number) {
            node.crash(&mut self.rng);
            node.disk = SimulatedDisk::with_content(content);
        }
        Ok(())
    }

    /// A person confirms a node's store and restarts the node.
    pub(super) fn confirm(&mut self, number: u16) -> Result<(), Violation> {
        if !self.watch.stores.is_set_back(number) {
            return Ok(());
        }
        let Some(node) = self.nodes.get_mut(&number) else { return Ok(()) };
        let Some(store) = node.life.as_ref().and_then(|life| Some(life.engine.custodian()?.store())) else {
            return Ok(());
        };
        let next = store.incarnation().opening.generation.saturating_add(1);
        if let Err(error) = store.write(|transaction| transaction.trust_opening(next)) {
            return self.watch.violated(Invariant::Works, format!("node {number} cannot be confirmed: {error}"));
        }
        node.life = None;
        node.outbox.take();
        self.watch.crashed(number);
        self.watch.confirmed(number);
        self.watch.observations.note(Observation::Confirmed);
        self.step(Event::Start(number))
    }

    /// Whether a node trusts its store. A node that was set back must not, if its peers have seen more of the store.
    pub(super) fn trusts_its_store(&mut self, number: u16) -> Result<bool, Violation> {
        let custodian = self.nodes.get(&number).and_then(|node| node.life.as_ref()?.engine.custodian());
        let trusted = custodian.is_none_or(Custodian::is_trusted);
        if trusted && self.watch.stores.is_found_out(number) {
            let text = format!("node {number} trusts a store that was set back");
            return self.watch.violated(Invariant::SetBack, text);
        }
        Ok(trusted)
    }

    /// A thief copies a node's disk.
    pub(super) fn steal(&mut self, number: u16) {
        if let Some(node) = self.nodes.get(&number).filter(|node| node.life.is_some()) {
            self.thief.steals(number, node.disk.content());
        }
    }

    /// The changes of states that nodes have not made yet, for clients to request; and everything again that others have
    /// recorded.
    pub(super) fn changes_and_repetitions(&self) -> Vec<Event> {
        let again = self.scenario.again_from.is_some_and(|from| from <= self.now);
        let mut asks = Vec::new();
        for (change, wish) in self.scenario.changes.iter().enumerate().filter(|(_, wish)| wish.at <= self.now) {
            // A client requests one change after the other.
            let earlier = |node: u16| {
                let mut before = self.scenario.changes.iter().enumerate().take(change);
                before.all(|(other, before)| before.key != wish.key || self.taken.contains(&(other, node)))
            };
            let due = |node: &&u16| {
                let taken = self.taken.contains(&(change, **node));
                if taken { again } else { earlier(**node) }
            };
            asks.extend(self.places().filter(due).map(|node| Event::Change { node: *node, change }));
        }
        for (ceremony, planned) in self.scenario.ceremonies.iter().enumerate().filter(|_| again) {
            let over = |node: &&u16| planned.at <= self.now && self.ended.contains_key(&(ceremony, **node));
            asks.extend(self.places().filter(over).map(|node| Event::Hold { node: *node, ceremony }));
        }
        asks
    }

    /// What a node's policy grants to a caller now, and the node, if it is running and not paused.
    pub(super) fn granted<R: Asks>(&mut self, number: u16, request: R) -> Option<(Granted<R>, &mut Life)> {
        let now = self.now;
        let node = self.awake(number)?;
        let time = UnixTime(1_000 * node.wall_clock(now));
        let life = node.life.as_mut()?;
        let judged = life.gate.decide(&presented(&[]), request, time).ok()?;
        Some((judged.answer.ok()?, life))
    }

    /// A caller asks a node to change the state of a key; the node asks its policy.
    pub(super) fn change(&mut self, number: u16, change: usize) -> Result<(), Violation> {
        let Some(change_of) = self.changes.get(change).cloned() else { return Ok(()) };
        let key = change_of.key.clone();
        let Some((granted, life)) = self.granted(number, change_of) else { return Ok(()) };
        let disables = granted.request().state == KeyState::Disabled;
        let answer = life.engine.change_key(granted, Vec::new());
        let entry = life.engine.keys().versions(key.as_str()).first().cloned();
        if self.taken.contains(&(change, number)) {
            self.watch.observations.note(Observation::ChangedAgain);
        }
        match answer {
            Ok(report) if report.decided => {}
            // The client asks again; who was asked to disable a key has stopped.
            Ok(report) => {
                let goes_on = entry.is_some_and(|entry| entry.state < KeyState::Disabled || !report.frozen);
                if disables && goes_on && self.is_honest(number) {
                    let text = format!("node {number} was asked to disable key {key}, and goes on using it");
                    return self.watch.violated(Invariant::Frozen, text);
                }
                self.watch.observations.note(if disables { Observation::Frozen } else { Observation::ChangeWaits });
                return Ok(());
            }
            Err(ChangeKeyError::Change(ChangeError::Key(KeyError::Generation { .. }))) => {
                self.watch.observations.note(Observation::OutOfDate);
            }
            // The client asks again.
            Err(_) => return Ok(()),
        }
        self.taken.insert((change, number));
        if let Some(entry) = entry.filter(|entry| self.is_honest(number) && !entry.frozen) {
            let changed = self.watch.consents.changed(number, &entry.name, entry.generation, entry.state);
            changed.or_else(|text| self.watch.violated(Invariant::ConsentOnce, text))?;
        }
        self.look(number)
    }

    /// The answer to a request for a ceremony that had ended at the node before.
    pub(super) fn asked_again(&mut self, answer: Option<&HoldError>) {
        self.watch.observations.note(Observation::AskedAgain);
        if matches!(answer, Some(HoldError::Ceremony(CeremonyError::Used))) {
            self.watch.observations.note(Observation::UsedUp);
        }
    }

    /// Checks that each honest node has the latest requested states, whatever was replayed, and that no ceremony was held
    /// twice.
    pub(super) fn consents_held(&mut self) -> Result<(), Violation> {
        let honest: Vec<u16> = self.scenario.honest().collect();
        for number in honest {
            let Some(life) = self.nodes.get(&number).and_then(|node| node.life.as_ref()) else { continue };
            let reports = life.engine.custodian().map(Custodian::reports).unwrap_or_default();
            let reported = self.watch.consents.reported(number, &reports, self.ceremonies.len());
            reported.or_else(|text| self.watch.violated(Invariant::ConsentOnce, text))?;
            for (place, last) in self.changes.iter().enumerate() {
                let later = |other: &theta_statements::StateChange| other.key == last.key;
                let is_last = !self.changes.iter().skip(place + 1).any(later);
                let Some(entry) = life.engine.keys().get(last.key.as_str()).filter(|_| is_last) else { continue };
                if self.taken.contains(&(place, number)) && entry.state != last.state {
                    let text = format!(
                        "key {} is {:?} at node {number}, and should be {:?}",
                        last.key, entry.state, last.state
                    );
                    return self.watch.violated(Invariant::ConsentOnce, text);
                }
            }
        }
        Ok(())
    }

    /// At the end of the run the thief tries everything.
    pub(super) fn nothing_is_learnt(&mut self) -> Result<(), Violation> {
        let tried = self.thief.tries(&self.setup, &self.ceremonies, &mut self.watch.observations);
        tried.or_else(|text| self.watch.violated(Invariant::Secrecy, text))
    }
}
