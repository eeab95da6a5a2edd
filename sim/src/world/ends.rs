//! Whether all has come to its end, and whether the honest nodes agree on it.

use std::collections::BTreeMap;

use theta_custody::{CeremonyState, SlotQuorum};

use super::World;
use crate::scenario::{Asked, Sabotage};
use crate::watch::{Invariant, Violation};

impl World<'_> {
    /// The honest nodes that permitted a request and have not its result, if there are enough of them.
    fn waiting(&self, request: usize) -> Vec<u16> {
        let permitted: Vec<u16> =
            self.scenario.honest().filter(|node| self.permitted.contains(&(request, *node))).collect();
        let Some(wanted) = self.wanted.get(request) else { return Vec::new() };
        let key = self.scenario.keys.get(wanted.asked.key);
        let lost = key.and_then(|key| key.lost_by);
        let able: Vec<u16> =
            permitted.into_iter().filter(|node| Some(*node) != lost && self.holds_shares(*node, request)).collect();
        if able.len() < usize::from(self.scenario.k) {
            return Vec::new();
        }
        // A refusal for want of a certificate is an end, too: but not where nothing stands against one.
        let is_certain = key.is_some_and(|key| key.slots) && self.must_be_certified(request);
        let ended = |node: &u16| {
            let refused = self.refused.contains_key(&(request, *node)) && !is_certain;
            refused || self.served.contains(&(request, *node))
        };
        able.into_iter().filter(|node| !ended(node)).collect()
    }

    /// Whether a request's slot must come to be certified for it: no other message asks for the slot, and as many honest nodes
    /// permit it as it takes.
    fn must_be_certified(&self, request: usize) -> bool {
        let Some(asked) = self.scenario.requests.get(request) else { return false };
        let of_slot = |other: &&Asked| (other.key, other.slot) == (asked.key, asked.slot);
        let alone = self.scenario.requests.iter().filter(of_slot).count() == 1;
        let promised = self.scenario.honest().filter(|node| self.permitted.contains(&(request, *node))).count();
        let quorum = SlotQuorum { n: self.scenario.n, t: self.scenario.k - 1 };
        alone && promised >= usize::from(quorum.need())
    }

    /// Whether a node has shares of the key of a request: it may have been away when new ones were dealt. Of one that is down
    /// nothing is known.
    fn holds_shares(&self, node: u16, request: usize) -> bool {
        let Some(wanted) = self.wanted.get(request) else { return false };
        let life = self.nodes.get(&node).and_then(|node| node.life.as_ref());
        life.is_none_or(|life| {
            life.engine.keys().versions(&wanted.request.key).iter().all(|entry| entry.share.is_some())
        })
    }

    /// Notes how ceremonies stand; says whether all requests and ceremonies are over.
    pub(super) fn is_done(&mut self) -> bool {
        self.note_ends();
        let all_asked = self.scenario.requests.iter().all(|asked| asked.at + 4_000 <= self.now);
        all_asked
            && (0..self.wanted.len()).all(|request| self.waiting(request).is_empty())
            && (0..self.ceremonies.len()).all(|ceremony| self.unended(ceremony).is_empty())
    }

    /// Honest nodes at which a ceremony is not over; nobody, if fewer than k of them took it: then it need not begin.
    fn unended(&self, ceremony: usize) -> Vec<u16> {
        let held = self.scenario.honest().filter(|node| self.held.contains(&(ceremony, *node))).count();
        if held < usize::from(self.scenario.k) {
            return Vec::new();
        }
        self.scenario.honest().filter(|node| !self.ended.contains_key(&(ceremony, *node))).collect()
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
                    Some(CeremonyState::CalledOff) => "called off".to_owned(),
                    Some(CeremonyState::Failed(why)) => format!("failed: {why}"),
                    Some(CeremonyState::Running { .. }) | None => continue,
                };
                let other = self.bug(*number) == Some(Sabotage::OtherOutcome);
                self.ended.insert((ceremony, *number), if other { "called off".to_owned() } else { end });
            }
        }
    }

    /// At the end of time.
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
        Ok(())
    }

    /// All honest nodes agree on ceremonies and keys, and blame none of them.
    pub(super) fn all_agree(&mut self) -> Result<(), Violation> {
        self.note_ends();
        let mut ends: BTreeMap<usize, (u16, &String)> = BTreeMap::new();
        for ((ceremony, node), end) in &self.ended {
            let (first, other) = ends.entry(*ceremony).or_insert((*node, end));
            if *other != end {
                let text = format!("ceremony {ceremony}: {other} at node {first}, {end} at node {node}");
                return self.watch.violated(Invariant::Agreement, text);
            }
        }
        let honest: Vec<u16> = self.scenario.honest().collect();
        let mut keys = BTreeMap::new();
        for number in &honest {
            let Some(life) = self.nodes.get(number).and_then(|node| node.life.as_ref()) else { continue };
            for entry in life.engine.keys().iter() {
                let known = (entry.epoch, entry.key_id, entry.public.to_text(&entry.name));
                let (first, other) =
                    keys.entry((entry.name.clone(), entry.version)).or_insert((*number, known.clone()));
                if *other != known {
                    let text = format!("key {} differs between nodes {first} and {number}", entry.qualified_name());
                    return self.watch.violated(Invariant::Agreement, text);
                }
            }
            let falsely = |party: u16| self.scenario.honest().any(|honest| honest == party);
            for record in life.engine.culprits() {
                if falsely(record.culprit.party.get()) {
                    let text =
                        format!("node {number} accuses {}: {}", record.culprit.party, record.culprit.misbehaviour);
                    return self.watch.violated(Invariant::NoFalseBlame, text);
                }
            }
        }
        Ok(())
    }
}
