//! Counts the events that scenarios are about.

use std::collections::BTreeMap;

/// Something that an adversary did, or that was done against it. A test checks with these that what it is about has
/// happened at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    /// A liar sent a false statement of a ceremony.
    Lied,
    /// A node was started with an older copy of its store, or an empty one.
    SetBack,
    /// Such a node was asked for a share for a slot, and did not trust its store.
    Distrusted,
    /// A person confirmed the store.
    Confirmed,
    /// A request of a ceremony was sent to a node at which that ceremony had ended.
    AskedAgain,
    /// The node answered that the request is used up.
    UsedUp,
    /// A change of a key's state was sent to a node that had made it before.
    ChangedAgain,
    /// The node answered that it has made later changes.
    OutOfDate,
    /// A node stopped using a key before the group had decided that.
    Frozen,
    /// Another change of a key's state waited for the group's decision.
    ChangeWaits,
    /// A thief ran a stolen copy of a node.
    Stolen,
    /// The copy was made during a ceremony.
    StolenInCeremony,
    /// The thief had shares of several epochs of one key.
    EpochsRobbed,
    /// The thief had k shares of one epoch, and so the key.
    KeyCombined,
}

/// How often each of them happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deeds(BTreeMap<Deed, u64>);

impl Deeds {
    pub(crate) fn note(&mut self, deed: Deed) {
        self.add(deed, 1);
    }

    pub(crate) fn add(&mut self, deed: Deed, times: u64) {
        *self.0.entry(deed).or_default() += times;
    }

    /// How often it happened.
    #[must_use]
    pub fn count(&self, deed: Deed) -> u64 {
        self.0.get(&deed).copied().unwrap_or_default()
    }
}
