//! Checks that what was requested once is done once: ceremonies, and changes of the states of keys.

use std::collections::{BTreeMap, BTreeSet};

use theta_custody::{CeremonyReport, CeremonyState};
use theta_names::KeyState;
use theta_schemes::keys::KeyName;

/// What has become of the requests.
#[derive(Default)]
pub(crate) struct Consents {
    /// The ceremony that was held for each request.
    held: BTreeMap<usize, [u8; 32]>,
    /// The ceremonies that took place.
    came_about: BTreeSet<[u8; 32]>,
    /// The last change of state of each key at each node: generation and state.
    states: BTreeMap<(u16, KeyName), (u64, KeyState)>,
}

fn came_about(report: &CeremonyReport) -> bool {
    matches!(report.state, CeremonyState::Activated { .. } | CeremonyState::Recovered)
}

impl Consents {
    /// A node reports the state or end of the ceremony of a request.
    pub(crate) fn answered(&mut self, request: usize, report: &CeremonyReport) -> Result<(), String> {
        if !came_about(report) {
            return Ok(());
        }
        let first = *self.held.entry(request).or_insert(report.id);
        if first == report.id {
            return Ok(());
        }
        Err(format!("the request of ceremony {request} has held two: one more is {}", hex::encode(report.id)))
    }

    /// A node reports its ceremonies, of which clients have requested `asked`.
    pub(crate) fn reported(&mut self, node: u16, reports: &[CeremonyReport], asked: usize) -> Result<(), String> {
        self.came_about.extend(reports.iter().filter(|report| came_about(report)).map(|report| report.id));
        if self.came_about.len() <= asked {
            return Ok(());
        }
        Err(format!(
            "node {node} knows of the {}. ceremony that came about; {asked} were asked for",
            self.came_about.len()
        ))
    }

    /// The state of a key at a node after a request to change it.
    pub(crate) fn changed(&mut self, node: u16, key: &KeyName, generation: u64, state: KeyState) -> Result<(), String> {
        let last = self.states.insert((node, key.clone()), (generation, state));
        match last {
            Some((before, _)) if generation < before => {
                Err(format!("key {key} of node {node} goes back from generation {before} to {generation}"))
            }
            Some((before, was)) if generation == before && state != was => {
                Err(format!("an old change makes key {key} of node {node} {state:?}, which was {was:?}"))
            }
            _ => Ok(()),
        }
    }

    /// A node's store was set back, so it may repeat what it has done.
    pub(crate) fn set_back(&mut self, node: u16) {
        self.states.retain(|(at, _), _| *at != node);
    }
}
