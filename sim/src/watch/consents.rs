//! Whether what was asked for once is done once: requests of ceremonies, and changes of the state of keys.

use std::collections::{BTreeMap, BTreeSet};

use theta_custody::{CeremonyReport, CeremonyState};
use theta_names::KeyState;
use theta_schemes::keys::KeyName;

/// What came of all that was asked for.
#[derive(Default)]
pub(crate) struct Consents {
    /// The ceremony that a request was held as.
    held: BTreeMap<usize, [u8; 32]>,
    /// Ceremonies that came about.
    came_about: BTreeSet<[u8; 32]>,
    /// The last change of the state of a key at a node, by generation, and what was made of it.
    states: BTreeMap<(u16, KeyName), (u64, KeyState)>,
}

fn came_about(report: &CeremonyReport) -> bool {
    matches!(report.state, CeremonyState::Activated { .. } | CeremonyState::Recovered)
}

impl Consents {
    /// A node says how the ceremony of a request ended, or stands.
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

    /// What a node knows of ceremonies, of which clients have asked for so many.
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

    /// How a key stands at a node, after somebody has asked it to change that.
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

    /// A node's store was set back: what it had done it may do again.
    pub(crate) fn set_back(&mut self, node: u16) {
        self.states.retain(|(at, _), _| *at != node);
    }
}
