//! The requests for ceremonies that a node remembers.

use std::collections::BTreeMap;

use theta_ledger::LedgerState;
use theta_statements::KeyChange;

use crate::custodian::message::Id;
use crate::request::{CeremonyReport, CeremonyState};

/// The most requests that are remembered though nothing came of them.
const MOST_DROPPED: usize = 256;

/// Requests that wait for the group's decision, and those that the group did not take: by the digest of the request.
#[derive(Default)]
pub(in crate::custodian) struct Requests {
    /// With the digest of the action that is to be decided.
    pub(super) waiting: BTreeMap<Id, (Id, CeremonyReport)>,
    pub(super) dropped: BTreeMap<Id, CeremonyReport>,
}

impl Requests {
    /// All of them.
    pub(super) fn ids(&self) -> impl Iterator<Item = &Id> {
        self.waiting.keys().chain(self.dropped.keys())
    }

    /// What the ledger has decided on does not wait any more.
    pub(super) fn settle(&mut self, ledger: &LedgerState) {
        self.waiting.retain(|id, _| ledger.request(id).is_none());
        self.dropped.retain(|id, _| ledger.request(id).is_none());
    }

    pub(super) fn drop(&mut self, id: Id, why: String) -> Option<CeremonyReport> {
        let before = self.waiting.remove(&id)?.1;
        let report = CeremonyReport { state: CeremonyState::Failed(why), awaits: "", request: None, ..before };
        self.keep(id, report.clone());
        Some(report)
    }

    /// Remembers a request of which nothing came.
    pub(super) fn keep(&mut self, id: Id, report: CeremonyReport) {
        if self.dropped.len() >= MOST_DROPPED {
            self.dropped.pop_first();
        }
        self.dropped.insert(id, report);
    }
}

/// Whether a change gives this node its share back.
pub(super) const fn recovers(change: &KeyChange, local: u16) -> bool {
    matches!(change, KeyChange::Recover { node, .. } if *node == local)
}
