//! The requests for changes of the members that a node remembers.

use std::collections::BTreeMap;

use crate::custodian::message::Id;

/// Ticks for which a warrant that is brought again is not passed on again.
const TOLD_TICKS: u64 = 40;
/// The most requests that are remembered, and as many of which nothing came.
const MOST_KEPT: usize = 256;

/// Requests for changes of the members, by their digests.
#[derive(Default)]
pub(in crate::custodian) struct MemberRequests {
    /// Those that wait, with the digest of the action.
    pub(super) waiting: BTreeMap<Id, Id>,
    /// Those that came to nothing, and why.
    pub(super) refused: BTreeMap<Id, String>,
    /// When a warrant was brought that serves.
    pub(super) told: BTreeMap<Id, u64>,
}

impl MemberRequests {
    pub(super) fn wait(&mut self, request: Id, action: Id) {
        bound(&mut self.waiting);
        self.waiting.insert(request, action);
    }

    pub(super) fn is_told(&self, warrant: &Id, now: u64) -> bool {
        self.told.get(warrant).is_some_and(|at| now < at.saturating_add(TOLD_TICKS))
    }

    pub(super) fn tell(&mut self, warrant: Id, now: u64) {
        bound(&mut self.told);
        self.told.insert(warrant, now);
    }

    pub(super) fn refuse(&mut self, request: Id, why: String) {
        self.waiting.remove(&request);
        bound(&mut self.refused);
        self.refused.insert(request, why);
    }

    /// Nothing comes of an action: of all requests that asked for it, which this gives.
    pub(super) fn drop_action(&mut self, action: &Id, why: &str) -> Vec<Id> {
        let asked: Vec<Id> = self.waiting.iter().filter(|(_, it)| *it == action).map(|(request, _)| *request).collect();
        asked.iter().for_each(|request| self.refuse(*request, why.to_owned()));
        asked
    }

    /// Whether a client has asked for an action, of which nothing has come yet.
    pub(super) fn wants(&self, action: &Id) -> bool {
        self.waiting.values().any(|asked| asked == action)
    }
}

fn bound<T>(kept: &mut BTreeMap<Id, T>) {
    if kept.len() >= MOST_KEPT {
        kept.pop_first();
    }
}
