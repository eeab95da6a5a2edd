//! Ceremonies that ended here.

use std::collections::BTreeMap;

use theta_names::{NodeId, Version};
use theta_schemes::keys::KeyName;

use super::message::Id;
use crate::request::CeremonyReport;

/// Reports of one key's version that are kept.
pub(super) const MOST_ENDED: usize = 16;
/// Ticks between two answers to the same peer: to the first of them, and to the others.
const TICKS: u64 = 4;
const LATER_TICKS: u64 = 240;
/// Answers to one peer that are soon repeated.
const SOON: u8 = 16;

/// What is left of a ceremony.
pub(super) struct Ended {
    pub(super) report: CeremonyReport,
    /// The digest of the request that it was held for.
    pub(super) request: Id,
    /// When it began here, in seconds since 1970.
    pub(super) started: u64,
    /// Whether the store still has what newcomers need.
    pub(super) epilogue: bool,
    answered: BTreeMap<NodeId, (u8, u64)>,
}

impl Ended {
    pub(super) const fn new(report: CeremonyReport, request: Id, started: u64, epilogue: bool) -> Self {
        Self { report, request, started, epilogue, answered: BTreeMap::new() }
    }

    /// Whether it was about this key, and this version if there is one.
    pub(super) fn is_of(&self, key: &KeyName, version: Option<Version>) -> bool {
        self.report.key == *key && version.is_none_or(|version| version == self.report.version)
    }

    /// Whether a peer that asks is to be answered now: seldom, and as long as it asks.
    pub(super) fn may_answer(&mut self, peer: NodeId, now: u64) -> bool {
        let (count, last) = self.answered.entry(peer).or_insert((0, 0));
        let ticks = if *count < SOON { TICKS } else { LATER_TICKS };
        let due = *count == 0 || now >= last.saturating_add(ticks);
        if due {
            (*count, *last) = (count.saturating_add(1), now);
        }
        due
    }
}
