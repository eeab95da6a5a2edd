//! Checks that everything has ended, and that the honest nodes agree.

use std::collections::{BTreeMap, BTreeSet};

use theta_custody::{CeremonyState, SlotQuorum};
use theta_keyfiles::PublicKeyText as _;
use theta_names::{Epoch, KeyState, Version};
use theta_orchestration::{Culprit, NodeOffence};
use theta_schemes::keys::{AnyKeyShare, KeyName};

use super::World;
use crate::byzantine::Behaviour;
use crate::scenario::{Asked, Fate, Fault, Sabotage};
use crate::watch::{Invariant, Violation};

impl World<'_> {
    /// The honest nodes that permitted a request and lack its result, if there are enough of them for one.
    fn waiting(&self, request: usize) -> Vec<u16> {
        let mut permitted: BTreeSet<u16> =
            self.scenario.honest().filter(|node| self.permitted.contains(&(request, *node))).collect();
        permitted.extend(self.must_promise(request));
        let Some(wanted) = self.wanted.get(request) else { return Vec::new() };
        let key = self.scenario.keys.get(wanted.asked.key);
        let lost = key.and_then(|key| key.lost_by);
        let is_able = |node: &u16| {
            Some(*node) != lost && self.holds_shares(*node, request) && !self.watch.stores.is_set_back(*node)
        };
        let able: Vec<u16> = permitted.into_iter().filter(is_able).collect();
        let enough = key.map_or(usize::from(self.scenario.k), |key| key.takes(self.scenario.k));
        if able.len() < enough {
            return Vec::new();
        }
        // A refusal without a certificate is an end as well, except where the slot is certain to be certified.
        let is_certain = key.is_some_and(|key| key.slots) && self.must_be_certified(request);
        let refused = |node: &u16| self.refused.contains_key(&(request, *node)) && !is_certain;
        let served = |node: &u16| self.served.contains(&(request, *node));
        // A liar that shows a promise for another message to each may have one node take for certified what the others take for void: too few sign, and
        // whoever waits for them is told so when its time is over.
        let signs = able.iter().filter(|node| !refused(node)).count() >= enough;
        if key.is_some_and(|key| key.slots) && !signs && !able.iter().any(served) {
            return Vec::new();
        }
        able.into_iter().filter(|node| !refused(node) && !served(node)).collect()
    }

    /// Whether the slot is certain to be certified for a request: no other message asks for the slot, and a quorum of
    /// honest nodes permits it.
    fn must_be_certified(&self, request: usize) -> bool {
        let Some(asked) = self.scenario.requests.get(request) else { return false };
        let of_slot = |other: &&Asked| (other.key, other.slot) == (asked.key, asked.slot);
        let alone = self.scenario.requests.iter().filter(of_slot).count() == 1;
        let first = self.must_promise(request);
        let promises = |node: &u16| {
            (self.permitted.contains(&(request, *node)) || first.contains(node))
                && !self.watch.stores.is_set_back(*node)
        };
        let promised = self.scenario.honest().filter(promises).count();
        let quorum = SlotQuorum { n: self.scenario.n, t: self.scenario.k - 1 };
        (alone || !first.is_empty()) && promised >= usize::from(quorum.need())
    }

    /// Whether a node has shares of a request's key; it may have been away when new ones were dealt. A node that is down
    /// counts as if it had.
    fn holds_shares(&self, node: u16, request: usize) -> bool {
        let Some(wanted) = self.wanted.get(request) else { return false };
        let life = self.nodes.get(&node).and_then(|node| node.life.as_ref());
        life.is_none_or(|life| {
            let versions = life.engine.keys().versions(wanted.key.as_str());
            !versions.is_empty() && versions.iter().all(|entry| entry.has_share())
        })
    }

    /// Records the state of ceremonies; returns whether all requests and ceremonies are over.
    pub(super) fn is_done(&mut self) -> bool {
        self.note_ends();
        let all_asked = self.scenario.requests.iter().all(|asked| asked.at + 4_000 <= self.now);
        all_asked
            && (0..self.wanted.len()).all(|request| self.waiting(request).is_empty())
            && (0..self.ceremonies.len()).all(|ceremony| self.unended(ceremony).is_empty())
            && self.unmade().is_none()
            && self.is_tried()
            && self.has_asked_all()
            && self.undecided().is_none()
    }

    /// Whether all late events of the scenario have happened, and have had time to take effect.
    fn is_tried(&self) -> bool {
        let faults = self.scenario.faults.iter().map(|fault| match fault {
            Fault::SetBack { until, confirmed, .. } => confirmed.unwrap_or(*until),
            Fault::Crash { until, .. } => until.saturating_sub(4_000),
            _ => 0,
        });
        let ghosts = self.scenario.exchanges.iter().map(|exchange| match exchange.fate {
            Fate::Gone => exchange.until,
            Fate::Back(at) | Fate::Stolen(at, _) => at.max(exchange.until),
        });
        let renewals = self.scenario.renewals.iter().map(|renewal| renewal.at);
        let arrivals = self.scenario.arrivals.iter().map(|arrival| arrival.at);
        let departures = self.scenario.departures.iter().map(|departure| departure.at);
        let faults = faults.chain(ghosts).chain(renewals).chain(arrivals).chain(departures);
        let ceremonies = self.scenario.ceremonies.iter().map(|planned| planned.at);
        let thefts = self.scenario.thefts.iter().map(|theft| theft.at);
        let again = self.scenario.again_from.into_iter();
        let halt = self.scenario.chain.iter().map(|chain| chain.halt.end);
        faults.chain(ceremonies).chain(thefts).chain(again).chain(halt).all(|at| at + 4_000 <= self.now)
    }

    /// Whether clients have asked for every ceremony: some wait until somebody has joined, if that can be decided.
    fn has_asked_all(&self) -> bool {
        let asked = |ceremony: usize| self.held.iter().any(|(other, _)| *other == ceremony);
        self.scenario.arrivals.is_empty() || !self.has_quorum() || (0..self.ceremonies.len()).all(asked)
    }

    /// An honest node that has not made a change of a key's state although its policy allows it, and that of k honest ones.
    fn unmade(&self) -> Option<(usize, u16)> {
        let changes = self.scenario.changes.iter().enumerate();
        let all = changes.flat_map(|(change, wish)| self.scenario.honest().map(move |node| (wish.key, (change, node))));
        let refuses = |key: usize, node| self.scenario.keys.get(key).is_some_and(|key| key.refused_by.contains(&node));
        let allows = |key, node| !refuses(key, node) && !self.watch.stores.has_forgotten(node);
        let k = usize::from(self.scenario.k);
        let decided = |key| self.scenario.honest().filter(|node| allows(key, *node)).count() >= k;
        let due = all.filter(|(key, (_, node))| allows(*key, *node) && decided(*key));
        due.map(|(_, made)| made).find(|made| !self.taken.contains(made))
    }

    /// The nodes that honest nodes have accused.
    pub(super) fn accused(&self) -> BTreeSet<u16> {
        let lives = self.scenario.honest().filter_map(|node| self.nodes.get(&node)?.life.as_ref());
        lives.flat_map(|life| life.engine.culprits()).map(|record| record.culprit.party.get()).collect()
    }

    /// Honest nodes at which a ceremony is not over. None if fewer than k of them took part, since it need not begin then; nor if they are
    /// no quorum, since its end need not be decided.
    fn unended(&self, ceremony: usize) -> Vec<u16> {
        let held = self.scenario.honest().filter(|node| self.held.contains(&(ceremony, *node))).count();
        if held < usize::from(self.scenario.k) || !self.has_quorum() {
            return Vec::new();
        }
        self.present().filter(|node| !self.ended.contains_key(&(ceremony, *node))).collect()
    }

    /// Whether clients want something else with the key of a ceremony, too, and the group has not begun this one.
    fn is_busy(&self, ceremony: usize) -> bool {
        let Some(request) = self.ceremonies.get(ceremony) else { return false };
        let others = self.ceremonies.iter().enumerate().filter(|(other, _)| *other != ceremony);
        let alone = others.into_iter().all(|(_, other)| other.change.key() != request.change.key());
        !alone && !self.watch.ledger.has_begun(&request.digest())
    }

    fn note_ends(&mut self) {
        let honest: Vec<u16> = self.scenario.honest().collect();
        for (ceremony, id) in self.names.clone() {
            for number in &honest {
                let life = self.nodes.get(number).and_then(|node| node.life.as_ref());
                let report = life.and_then(|life| life.engine.custodian()?.report(&id));
                let end = match report.map(|report| report.state) {
                    Some(CeremonyState::Activated { key_id, .. }) => format!("activated {key_id}"),
                    Some(CeremonyState::Recovered) => "recovered".to_owned(),
                    Some(CeremonyState::Aborted) => "aborted".to_owned(),
                    Some(CeremonyState::Cancelled) => "cancelled".to_owned(),
                    // It may begin as soon as another one about the key has ended: clients ask again.
                    Some(CeremonyState::Failed(_)) if self.is_busy(ceremony) => continue,
                    Some(CeremonyState::Failed(why)) => format!("failed: {why}"),
                    Some(CeremonyState::Running { .. }) | None => continue,
                };
                let other = self.bug(*number) == Some(Sabotage::OtherOutcome);
                self.ended.insert((ceremony, *number), if other { "aborted".to_owned() } else { end });
            }
        }
    }

    /// Checks at the end of the run that nothing is left over.
    pub(super) fn nothing_waits(&mut self) -> Result<(), Violation> {
        self.note_ends();
        for request in 0..self.wanted.len() {
            let waiting = self.waiting(request);
            if !waiting.is_empty() {
                let text = format!("request {request} has no result at nodes {waiting:?}");
                return self.watch.violated(Invariant::Ends, text);
            }
        }
        for ceremony in 0..self.ceremonies.len() {
            let unended = self.unended(ceremony);
            if !unended.is_empty() {
                let text = format!("ceremony {ceremony} has no end at nodes {unended:?}");
                return self.watch.violated(Invariant::Ends, text);
            }
        }
        if let Some(text) = self.undecided() {
            return self.watch.violated(Invariant::Ends, text);
        }
        match self.unmade() {
            None => Ok(()),
            Some((change, node)) => self
                .watch
                .violated(Invariant::Ends, format!("node {node} has not made change {change} of a key's state")),
        }
    }

    /// Checks that all honest nodes agree on ceremonies and keys, and accuse none of them.
    pub(super) fn all_agree(&mut self) -> Result<(), Violation> {
        self.note_ends();
        let mut ends: BTreeMap<usize, (u16, &String)> = BTreeMap::new();
        for ((ceremony, node), end) in &self.ended {
            // A node whose store was set back may have no use for what it has helped to make: then it says so, and has no share until it is
            // given one.
            let set_back = self.watch.stores.is_set_back(*node) || self.watch.stores.was_confirmed(*node);
            if set_back && end.starts_with("failed") {
                continue;
            }
            let (first, other) = ends.entry(*ceremony).or_insert((*node, end));
            if *other != end {
                let text = format!("ceremony {ceremony}: {other} at node {first}, {end} at node {node}");
                return self.watch.violated(Invariant::Agreement, text);
            }
        }
        let honest: Vec<u16> = self.present().collect();
        // Without a quorum of honest nodes a run ends at any moment, also while some have a new epoch and others have not heard of it.
        let quorum = self.has_quorum();
        let mut keys = BTreeMap::new();
        for number in &honest {
            let Some(life) = self.nodes.get(number).and_then(|node| node.life.as_ref()) else { continue };
            for entry in life.engine.keys().iter() {
                let known = (entry.epoch, entry.key_id, entry.public.to_text(&entry.name));
                let epoch = if quorum { None } else { Some(entry.epoch) };
                let (first, other) =
                    keys.entry((entry.name.clone(), entry.version, epoch)).or_insert((*number, known.clone()));
                if *other != known {
                    let text = format!("key {} differs between nodes {first} and {number}", entry.qualified_name());
                    return self.watch.violated(Invariant::Agreement, text);
                }
            }
        }
        self.accuse_rightly(&honest)
    }

    /// Checks whom honest nodes accuse: nobody honest, and of lies that they have read.
    fn accuse_rightly(&mut self, honest: &[u16]) -> Result<(), Violation> {
        for number in honest {
            let Some(life) = self.nodes.get(number).and_then(|node| node.life.as_ref()) else { continue };
            for record in life.engine.culprits() {
                let Culprit { party, offence, .. } = &record.culprit;
                let lies = matches!(
                    self.scenario.liars.get(&party.get()),
                    Some(
                        Behaviour::Ledger(_) | Behaviour::Ceremony(_) | Behaviour::Ecdsa(_) | Behaviour::EcdsaAfter(..)
                    )
                );
                // Bytes that nobody reads would try nothing.
                if lies && matches!(offence, NodeOffence::Envelope(_)) {
                    let text = format!("the lies of node {party} do not arrive: {offence}");
                    return self.watch.violated(Invariant::Works, text);
                }
                if self.is_false(&record.culprit) {
                    let text = format!("node {number} accuses {party}: {offence}");
                    return self.watch.violated(Invariant::NoFalseBlame, text);
                }
            }
        }
        Ok(())
    }

    fn is_false(&self, culprit: &Culprit) -> bool {
        let party = culprit.party.get();
        let by_word = matches!(culprit.offence, NodeOffence::Slot(_));
        self.scenario.honest().any(|honest| honest == party)
            && !(by_word && self.watch.stores.was_confirmed(party))
            && !self.scenario.exchanges.iter().any(|it| it.node == party && matches!(it.fate, Fate::Stolen(..)))
    }

    /// Whether all honest nodes that are up and have lost nothing have the newest sharing of a version, with a share or without.
    fn have_all_heard_of(&self, (name, version): &(KeyName, Version)) -> bool {
        let newest = self.newest.get(&(name.clone(), *version));
        let stores = &self.watch.stores;
        let whole = self.present().filter(|node| !stores.is_set_back(*node) && !stores.has_forgotten(*node));
        let mut lives = whole.filter_map(|node| self.nodes.get(&node)?.life.as_ref());
        lives.all(|life| {
            let versions = life.engine.keys().versions(name.as_str());
            versions.iter().any(|entry| entry.version == *version && Some(&entry.epoch) == newest)
        })
    }

    /// Checks that no key went back to an earlier epoch and that k honest nodes have right shares of each. Returns their
    /// number.
    pub(super) fn shares_are_right(&self) -> Result<usize, Violation> {
        let mut right: BTreeMap<((KeyName, Version), Epoch), BTreeSet<u16>> = BTreeMap::new();
        // Without a quorum of honest nodes a run ends at any moment, also while some have not heard of a new epoch.
        let quorum = self.has_quorum();
        let lives = self.present().filter_map(|node| Some((node, self.nodes.get(&node)?.life.as_ref()?)));
        for (node, life) in lives {
            for entry in life.engine.keys().iter().filter(|entry| entry.state != KeyState::Destroyed) {
                let key = (entry.name.clone(), entry.version);
                let newest = self.newest.get(&key).copied().unwrap_or(Epoch::FIRST);
                if quorum && entry.epoch < newest && !self.watch.stores.is_set_back(node) {
                    let text = format!("key {} is in epoch {} at node {node}, and was in {newest}", key.0, entry.epoch);
                    return self.watch.violated(Invariant::Shares, text);
                }
                let Some(share) = entry.expose_share().filter(|_| !quorum || entry.epoch == newest) else { continue };
                let place = entry.holders.iter().position(|holder| holder.get() == node);
                let belongs = AnyKeyShare::from_bytes(share.to_bytes().expose(), &entry.public).is_ok();
                if !belongs || place != Some(share.index().position()) {
                    let text = format!("node {node} has a false share of key {}", key.0);
                    return self.watch.violated(Invariant::Shares, text);
                }
                right.entry((key, entry.epoch)).or_default().insert(node);
            }
        }
        for key in self.newest.keys() {
            if !quorum && !self.have_all_heard_of(key) {
                continue;
            }
            let of_key = right.iter().filter(|((name, _), _)| name == key);
            let count = of_key.map(|(_, nodes)| nodes.len()).max().unwrap_or(0);
            // Fewer are honest than k where a group of k has liars.
            if count < usize::from(self.scenario.k).min(self.scenario.honest().count()) {
                let text = format!("{count} honest nodes have shares of version {} of key {}", key.1, key.0);
                return self.watch.violated(Invariant::Shares, text);
            }
        }
        Ok(right.values().map(BTreeSet::len).sum())
    }
}
