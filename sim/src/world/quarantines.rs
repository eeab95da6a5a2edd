//! Checks whom honest nodes leave alone for good, where exactly k holders compute together (`spec/ecdsa.md`, Dishonest majority).

use std::collections::BTreeSet;

use theta_names::Delivery;
use theta_orchestration::Quarantine;

use super::World;
use crate::watch::{Invariant, Observation, Violation};

impl World<'_> {
    /// Notes what an honest node has in quarantine: each set has a liar in it, and whoever is named is one, whatever else went wrong.
    pub(super) fn look_at_quarantines(&mut self, number: u16) -> Result<(), Violation> {
        let Some(life) = self.nodes.get(&number).and_then(|node| node.life.as_ref()) else { return Ok(()) };
        let computed_by_k =
            |delivery| matches!(delivery, Delivery::DishonestMajority | Delivery::PassiveDishonestMajority);
        let keys = life.engine.keys();
        let found: Vec<Quarantine> = keys
            .iter()
            .filter(|entry| computed_by_k(entry.delivery))
            .flat_map(|entry| Quarantine::of(&entry))
            .collect();
        for Quarantine { nodes, phase, culprit } in found {
            let nodes: BTreeSet<u16> = nodes.iter().map(|node| node.get()).collect();
            let culprit = culprit.map(|node| node.get());
            let lies = |node: &u16| self.scenario.liars.contains_key(node);
            if !nodes.iter().any(lies) || !culprit.iter().all(lies) {
                let text = format!("node {number} has {nodes:?} in quarantine and names {culprit:?}: {phase}");
                return self.watch.violated(Invariant::Quarantine, text);
            }
            if self.quarantined.insert((nodes, culprit)) {
                self.watch.observations.note(Observation::Quarantined);
            }
        }
        Ok(())
    }

    /// Whether honest nodes may give a request up: where these are k, they are a set without a liar.
    pub(super) fn may_lack_a_set(&self) -> bool {
        self.scenario.honest().count() < usize::from(self.scenario.k)
    }
}
