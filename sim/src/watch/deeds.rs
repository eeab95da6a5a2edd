//! What happened in a run that scenarios are about.

use std::collections::BTreeMap;

/// Something that an adversary did, or that was done against it. A test that wants to see what follows from it asks whether it
/// happened at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    /// A statement of a ceremony left a liar, and was not what it should be.
    Lied,
    /// A node was started with an older copy of its store, or an empty one.
    SetBack,
    /// It was asked for a share for a slot, and did not trust its store.
    Distrusted,
    /// A person said that the store is meant.
    Confirmed,
    /// A request of a ceremony was sent to a node at which that ceremony had ended.
    AskedAgain,
    /// The node said that it was used up.
    UsedUp,
    /// A change of a key's state was sent to a node that had made it.
    ChangedAgain,
    /// The node said that later ones were made.
    OutOfDate,
    /// A thief ran what it had stolen of a node.
    Stolen,
    /// While a ceremony ran there.
    StolenInCeremony,
    /// It had shares of one key of several epochs.
    EpochsRobbed,
    /// It had as many shares of one epoch as it takes, and so the key.
    KeyCombined,
}

/// How often each happened.
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
