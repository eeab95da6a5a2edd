//! The requests for ceremonies that a node remembers.

use std::collections::{BTreeMap, BTreeSet};

use theta_ledger::LedgerState;
use theta_statements::{CeremonyRequest, KeyChange};

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
    /// Those that waited here, and that the group has begun and not ended.
    begun: BTreeSet<Id>,
}

impl Requests {
    /// All of them.
    pub(super) fn ids(&self) -> impl Iterator<Item = &Id> {
        self.waiting.keys().chain(self.dropped.keys())
    }

    /// What the ledger has decided on does not wait any more. Returns those of which it has news for whoever asked: they have begun, or ended. A
    /// node that takes no part has nothing else to tell of them.
    pub(super) fn settle(&mut self, ledger: &LedgerState) -> Vec<Id> {
        let runs = |id: &Id| ledger.request(id).is_some_and(|history| history.ended.is_none());
        let mut news: Vec<Id> = self.begun.iter().filter(|id| !runs(id)).copied().collect();
        self.begun.retain(runs);
        let begun: Vec<Id> = self.waiting.keys().filter(|id| ledger.request(id).is_some()).copied().collect();
        self.begun.extend(begun.iter().filter(|id| runs(id)));
        news.extend(begun);
        self.waiting.retain(|id, _| ledger.request(id).is_none());
        self.dropped.retain(|id, _| ledger.request(id).is_none());
        news
    }

    /// Nothing came of a request. The report names one that is `open`: it may still begin, and can be taken back.
    pub(super) fn drop(&mut self, id: Id, why: String, open: Option<CeremonyRequest>) -> Option<CeremonyReport> {
        let before = self.waiting.remove(&id)?.1;
        let request = open;
        let report = CeremonyReport { state: CeremonyState::Failed(why), awaits: "", request, ..before };
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
