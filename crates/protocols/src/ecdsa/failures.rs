//! What is known of holders when those of a program are chosen: who was in programs that failed, and who was missing then.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use theta_mpc::ecdsa::Curve;
use theta_rounds::PartyId;
use theta_sharing::ShareIndex;

use super::run::Run;

/// Of one holder, how many programs failed...
#[derive(Clone, Copy, Default)]
pub(super) struct Failure {
    /// ... that it was in.
    pub(super) member: u32,
    /// ... while this party waited for its message.
    pub(super) missing: u32,
}

/// Of so many programs that failed it is known which holders they had.
const MOST_SETS: usize = 64;

/// The programs of a request that have failed at this party.
#[derive(Default)]
pub(super) struct Failures {
    of_each: BTreeMap<PartyId, Failure>,
    /// Their holders, the oldest first.
    sets: VecDeque<Vec<ShareIndex>>,
}

impl Failures {
    /// A program came to nothing, and it is not known whose fault that was: whoever is missing here may wait for another one.
    pub(super) fn note<G: Curve>(&mut self, run: &Run<G>) {
        for holder in run.holders() {
            let failure = self.of_each.entry(PartyId::of_share(*holder)).or_default();
            failure.member = failure.member.saturating_add(1);
        }
        for party in run.missing() {
            let failure = self.of_each.entry(party).or_default();
            failure.missing = failure.missing.saturating_add(1);
        }
        if !self.is_of(run.holders()) {
            self.sets.push_back(run.holders().to_vec());
            self.sets.drain(..self.sets.len().saturating_sub(MOST_SETS));
        }
    }

    /// The same, unless nobody else was heard in it at all: that tells of the line, and nothing of the others.
    pub(super) fn note_unless_alone<G: Curve>(&mut self, run: &Run<G>) {
        if run.missing().count() + 1 < run.holders().len() {
            self.note(run);
        }
    }

    /// Whether a program of just these holders failed.
    pub(super) fn is_of(&self, holders: &[ShareIndex]) -> bool {
        self.sets.iter().any(|set| set == holders)
    }

    pub(super) fn of(&self, party: PartyId) -> Failure {
        self.of_each.get(&party).copied().unwrap_or_default()
    }
}

/// What a coordinator chooses by.
pub(super) struct Known<'a> {
    /// Takes part in nothing any more.
    pub(super) excluded: &'a BTreeSet<PartyId>,
    pub(super) failures: &'a Failures,
    /// Kept an attempt waiting and has not been heard since.
    pub(super) late: &'a BTreeSet<PartyId>,
    /// Was in what failed in other requests.
    pub(super) doubted: &'a [PartyId],
    /// Whether it counts, before anything else, who was missing.
    pub(super) counts_missing: bool,
}
