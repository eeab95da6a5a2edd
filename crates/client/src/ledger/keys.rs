//! Public keys that follow from the ledger.

use std::{
    collections::{HashMap, HashSet},
    sync::PoisonError,
};

use theta_ledger::{Epochs, KeyHistory, LedgerState};
use theta_names::{Delivery, Epoch, KeyName, KeyRef, KeyState, SuiteName, Version};
use theta_schemes::keys::{AnyPublicKey, KeyId};

use super::Book;

/// The most public keys that are kept decoded.
const MOST_DECODED: usize = 1024;

/// A sharing of a key's version, certified by a quorum of the group.
#[derive(Clone, Debug)]
pub(crate) struct Certified {
    pub(crate) name: KeyName,
    pub(crate) version: Version,
    pub(crate) epoch: Epoch,
    /// Who makes shares for a request.
    pub(crate) delivery: Delivery,
    /// Of this version, as far as the ledger says.
    pub(crate) state: KeyState,
    /// When it will be destroyed, in seconds since 1970.
    pub(crate) doomed: Option<u64>,
    pub(crate) public: AnyPublicKey,
}

/// Which versions have which ids, as of one height.
#[derive(Debug, Default)]
pub(super) struct Ids {
    height: Option<u64>,
    of: HashMap<KeyId, (KeyName, Version)>,
    read: HashSet<(KeyName, Version)>,
}

/// Where a sharing stands in the ledger.
struct Entry {
    version: Version,
    suite: SuiteName,
    delivery: Delivery,
    state: KeyState,
    doomed: Option<u64>,
    epochs: Epochs,
}

impl Book {
    /// All names of keys in the ledger.
    pub(crate) fn names(&self) -> Vec<KeyName> {
        self.look(|state| state.keys().keys().cloned().collect()).unwrap_or_default()
    }

    /// The version that is meant where none is named.
    pub(crate) fn primary(&self, name: &KeyName) -> Option<Version> {
        self.look(|state| state.keys().get(name)?.primary()).flatten()
    }

    /// The sharings of a key, or of one version of it, at most so many of each version: the version that is meant where none is named first,
    /// then the others from the newest on, each with its newest sharing first. Each is decoded when it is looked at.
    pub(crate) fn sharings<'a>(
        &'a self,
        key: &'a KeyRef,
        epochs: usize,
    ) -> impl Iterator<Item = Certified> + 'a + use<'a> {
        let name = &key.name;
        let found = self.look(|state| state.keys().get(name).map(|line| of_line(line, key.version, epochs))).flatten();
        found.unwrap_or_default().into_iter().filter_map(|entry| self.decode(name, entry))
    }

    /// The newest sharing of the version with this public key.
    pub(crate) fn of_id(&self, id: &KeyId) -> Option<Certified> {
        self.read_ids();
        let (name, version) = self.ids.read().unwrap_or_else(PoisonError::into_inner).of.get(id).cloned()?;
        let entry = self.look(|state| newest(state.keys().get(&name)?, version)).flatten()?;
        self.decode(&name, entry)
    }

    /// Learns the ids of the versions that have come into the ledger. A version has one id in all of its sharings, so each is decoded once.
    fn read_ids(&self) {
        let Some(height) = self.look(LedgerState::height) else { return };
        if self.ids.read().unwrap_or_else(PoisonError::into_inner).height == Some(height) {
            return;
        }
        let mut ids = self.ids.write().unwrap_or_else(PoisonError::into_inner);
        let unread = |state: &LedgerState| -> Vec<((KeyName, Version), Entry)> {
            let lines = state.keys().iter();
            let all = lines.flat_map(|(name, line)| line.versions.keys().map(move |version| (name, line, *version)));
            let new = all.filter(|(name, _, version)| !ids.read.contains(&((*name).clone(), *version)));
            new.filter_map(|(name, line, version)| Some(((name.clone(), version), newest(line, version)?))).collect()
        };
        for (place, entry) in self.look(unread).unwrap_or_default() {
            // What cannot be decoded now never can.
            if let Some(public) = decode(&entry.suite, &entry.epochs.public) {
                ids.of.entry(*public.key_id()).or_insert_with(|| place.clone());
            }
            ids.read.insert(place);
        }
        ids.height = Some(height);
    }

    fn decode(&self, name: &KeyName, entry: Entry) -> Option<Certified> {
        let Entry { version, suite, delivery, state, doomed, epochs } = entry;
        let place = (name.clone(), version, epochs.epoch);
        let known = self.decoded.read().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        let public = match known {
            Some(public) => public,
            None => {
                let public = decode(&suite, &epochs.public)?;
                let mut decoded = self.decoded.write().unwrap_or_else(PoisonError::into_inner);
                if decoded.len() >= MOST_DECODED {
                    decoded.clear();
                }
                decoded.insert(place, public.clone());
                public
            }
        };
        Some(Certified { name: name.clone(), version, epoch: epochs.epoch, delivery, state, doomed, public })
    }
}

fn of_line(line: &KeyHistory, version: Option<Version>, most: usize) -> Vec<Entry> {
    let primary = line.primary();
    let mut versions: Vec<_> = line.versions.iter().rev().filter(|(it, _)| version.is_none_or(|v| v == **it)).collect();
    versions.sort_by_key(|(version, _)| Some(**version) != primary);
    let all = versions.into_iter().flat_map(|(version, history)| {
        let (state, suite) = (line.state_of(*version).unwrap_or(history.state), history.suite.clone());
        let epochs = history.epochs.iter().rev().take(most).cloned();
        let (doomed, delivery) = (line.doom_of(*version), history.delivery);
        epochs.map(move |epochs| Entry { version: *version, suite: suite.clone(), delivery, state, doomed, epochs })
    });
    all.collect()
}

/// The newest sharing of a version.
fn newest(line: &KeyHistory, version: Version) -> Option<Entry> {
    let history = line.versions.get(&version)?;
    let state = line.state_of(version).unwrap_or(history.state);
    let (suite, doomed) = (history.suite.clone(), line.doom_of(version));
    let (delivery, epochs) = (history.delivery, history.serving()?.clone());
    Some(Entry { version, suite, delivery, state, doomed, epochs })
}

/// A public key as entries have it, if it is of the suite that the entry names.
fn decode(suite: &SuiteName, part: &[u8]) -> Option<AnyPublicKey> {
    AnyPublicKey::from_bytes(part).ok().filter(|public| SuiteName::from(public.suite()) == *suite)
}
