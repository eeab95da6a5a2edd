//! What the history says about keys.

use std::collections::BTreeMap;

use theta_names::{Delivery, Epoch, KeyState, SuiteName, Version};
use theta_statements::StateChange;

/// The most versions of a key: as many as a node's store takes.
pub(super) const MOST_VERSIONS: u32 = 1024;

/// A sharing of a key's version, and since when it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epochs {
    /// Its number.
    pub epoch: Epoch,
    /// The height of the entry that said so.
    pub since: u64,
    /// How many shares it takes.
    pub k: u16,
    /// The holders: that of index i at place i - 1.
    pub holders: Vec<u16>,
    /// Its public part in binary: the public key and all verification keys.
    pub public: Vec<u8>,
    /// The certificate of the ceremony that made it, while it serves; empty if a dealer made it.
    pub certificate: Vec<u8>,
}

/// A version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionHistory {
    /// Its scheme and group.
    pub suite: SuiteName,
    /// Who makes shares for a request: the same in all its sharings.
    pub delivery: Delivery,
    /// Its own state; what counts is this and the key's.
    pub state: KeyState,
    /// When it will be destroyed, in seconds since 1970; until then it is disabled.
    pub doomed: Option<u64>,
    /// The number of the last change of this version that enabled, disabled or destroyed it.
    pub settled: u64,
    /// All its sharings, the one that serves last. Old ones stay: what was proven under them can be checked for ever.
    pub epochs: Vec<Epochs>,
}

impl VersionHistory {
    /// The sharing that serves.
    #[must_use]
    pub fn serving(&self) -> Option<&Epochs> {
        self.epochs.last()
    }

    /// A version that begins to serve with this sharing.
    pub(super) fn first(suite: SuiteName, delivery: Delivery, serving: Epochs) -> Self {
        Self { suite, delivery, state: KeyState::Active, doomed: None, settled: 0, epochs: vec![serving] }
    }

    pub(super) fn serve(&mut self, epochs: Epochs) {
        if let Some(before) = self.epochs.last_mut() {
            before.certificate = Vec::new();
        }
        self.epochs.push(epochs);
    }
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHistory {
    /// The state of the key as a whole.
    pub state: KeyState,
    /// When it will be destroyed, in seconds since 1970; until then it is disabled.
    pub doomed: Option<u64>,
    /// The number of the last change of state.
    pub generation: u64,
    /// That change.
    pub last: Option<StateChange>,
    /// The number of the last change of the key as a whole that enabled, disabled or destroyed it.
    pub settled: u64,
    /// All its versions, whatever their state.
    pub versions: BTreeMap<Version, VersionHistory>,
    /// The height of the entry that made it, and how many members there were: those who promise its slots (`spec/policy.md`, Slots). A key
    /// that a dealer brought was born with the group.
    pub born: (u64, usize),
}

impl KeyHistory {
    pub(super) const fn new(born: (u64, usize)) -> Self {
        Self {
            state: KeyState::Active,
            doomed: None,
            generation: 0,
            last: None,
            settled: 0,
            versions: BTreeMap::new(),
            born,
        }
    }

    /// The version that is meant where none is named: the newest that is active, or else the newest that was not destroyed.
    #[must_use]
    pub fn primary(&self) -> Option<Version> {
        let newest = |wanted: fn(KeyState) -> bool| {
            self.versions.iter().rev().find(|(_, version)| wanted(version.state)).map(|(number, _)| *number)
        };
        newest(|state| state == KeyState::Active).or_else(|| newest(|state| state != KeyState::Destroyed))
    }

    /// The sharing that serves of a version; of the newest if there is no such version.
    pub(super) fn known(&self, version: Version) -> Option<&Epochs> {
        self.versions.get(&version).map_or_else(|| self.newest(), VersionHistory::serving)
    }

    /// The sharing that serves of the newest version.
    pub(super) fn newest(&self) -> Option<&Epochs> {
        self.versions.last_key_value().and_then(|(_, version)| version.serving())
    }

    /// Whether the group has decided about what a node froze: about that version, or the key as a whole where none is named, in this
    /// generation or a later one. That another version was changed, or that it was retired, says nothing about it.
    #[must_use]
    pub fn has_settled(&self, version: Option<Version>, generation: u64) -> bool {
        let settled = match version {
            None => self.settled,
            Some(version) => self.versions.get(&version).map_or(0, |history| history.settled),
        };
        settled >= generation || self.state == KeyState::Destroyed
    }

    /// What holds for a version: its own state and the key's.
    #[must_use]
    pub fn state_of(&self, version: Version) -> Option<KeyState> {
        Some(self.versions.get(&version)?.state.and(self.state))
    }

    /// When a version will be destroyed, if it is not yet.
    #[must_use]
    pub fn doom_of(&self, version: Version) -> Option<u64> {
        let own = self.versions.get(&version).and_then(|history| history.doomed);
        self.doomed.into_iter().chain(own).min()
    }

    /// What holds for a version at this time, in seconds since 1970: what is doomed is destroyed when its time has come, whether an entry
    /// has been decided since or not.
    #[must_use]
    pub fn state_at(&self, version: Version, now: u64) -> Option<KeyState> {
        let due = self.doom_of(version).is_some_and(|doom| doom <= now);
        if due { Some(KeyState::Destroyed) } else { self.state_of(version) }
    }

    pub(super) fn next_version(&self) -> Option<Version> {
        let next = self.versions.last_key_value().map_or(Some(Version::FIRST), |(last, _)| last.next());
        next.filter(|version| version.get() <= MOST_VERSIONS)
    }
}
