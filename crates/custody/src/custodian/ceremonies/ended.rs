//! Ceremonies that ended at this node.

use std::collections::BTreeMap;

use theta_names::{NodeId, Version};
use theta_schemes::keys::KeyName;

use crate::request::CeremonyReport;

/// The most reports that are kept of one key's version.
pub(super) const MOST_ENDED: usize = 16;
/// The number of ticks between two answers to the same peer: between the first ones, and between later ones.
const TICKS: u64 = 4;
const LATER_TICKS: u64 = 240;
/// The number of answers to one peer after which they come more seldom.
const SOON: u8 = 16;

/// The remains of a ceremony.
pub(in crate::custodian) struct Ended {
    pub(in crate::custodian) report: CeremonyReport,
    /// When it began at this node, in seconds since 1970.
    pub(in crate::custodian) started: u64,
    /// Whether the store still has the messages that newcomers need.
    pub(in crate::custodian) epilogue: bool,
    answered: BTreeMap<NodeId, (u8, u64)>,
}

impl Ended {
    pub(in crate::custodian) const fn new(report: CeremonyReport, started: u64, epilogue: bool) -> Self {
        Self { report, started, epilogue, answered: BTreeMap::new() }
    }

    /// Whether it was about this key, and this version if one is given.
    pub(super) fn is_of(&self, key: &KeyName, version: Option<Version>) -> bool {
        self.report.key == *key && version.is_none_or(|version| version == self.report.version)
    }

    /// Whether to answer a peer that asks now. Answers are rare, but do not stop as long as it asks.
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
