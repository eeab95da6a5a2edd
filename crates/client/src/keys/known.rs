//! The public keys that a client knows without asking anybody.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
    time::Duration,
};

use theta_names::{Delivery, Epoch, KeyRef, KeyState, Version};
use theta_network::group::GroupFile;
use theta_schemes::keys::{AnyPublicKey, KeyId, KeyName};
use tokio::time::Instant;

use crate::{
    Checkpoint, OpenError, folder,
    ledger::{Book, Certified},
};

/// The most keys that are remembered as untold: for these, a ciphertext does not make the client ask the nodes again.
const MOST_UNTOLD: usize = 1024;
/// For how long: after that the key may have come, or the leave to ask for it.
const UNTOLD_FOR: Duration = Duration::from_secs(10);

/// How many sharings of a version an answer of nodes is checked with. A node that is behind uses the one before the newest; more would
/// let a liar waste the client's time.
const RECENT: usize = 3;

/// A public key, and what the client knows of it.
#[derive(Clone, Debug)]
pub struct KnownKey {
    /// Its name.
    pub name: KeyName,
    /// Which version it is; `None` for a key that is not in the group's ledger.
    pub version: Option<Version>,
    /// Which sharing its verification keys are of; `None` for a key that is not in the group's ledger.
    pub epoch: Option<Epoch>,
    /// Who makes shares for a request; `None` for a key that is not in the group's ledger.
    pub delivery: Option<Delivery>,
    /// The version's state, as far as the ledger says; `None` for a key that is not in it.
    pub state: Option<KeyState>,
    /// When it will be destroyed, in seconds since 1970, if the ledger says so; until then it is disabled.
    pub doomed: Option<u64>,
    /// The key.
    pub public: AnyPublicKey,
}

impl KnownKey {
    /// A key that is not in the ledger.
    fn alone(key: &KeyRef, public: AnyPublicKey) -> Self {
        let (name, version) = (key.name.clone(), key.version);
        Self { name, version, epoch: None, delivery: None, state: None, doomed: None, public }
    }
}

impl From<Certified> for KnownKey {
    fn from(found: Certified) -> Self {
        let (version, epoch, state) = (Some(found.version), Some(found.epoch), Some(found.state));
        let (delivery, doomed) = (Some(found.delivery), found.doomed);
        Self { name: found.name, version, epoch, delivery, state, doomed, public: found.public }
    }
}

/// Why the nodes have not told a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untold {
    /// Rules of so many nodes deny it that too few are left: this client may not ask.
    Denied,
    /// No version of the name has this id.
    Absent,
}

/// All public keys that a client knows: from its group's ledger, every version and epoch, and besides those that were given to it in
/// files or that enough nodes have told. Reading them takes no node and no runtime.
#[derive(Debug)]
pub struct KnownKeys {
    given: RwLock<HashMap<String, AnyPublicKey>>,
    untold: RwLock<HashMap<(String, KeyId), (Instant, Untold)>>,
    book: Book,
}

impl KnownKeys {
    /// The keys in a client folder.
    ///
    /// # Errors
    /// [`OpenError`] names the file that is wrong.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let parts = folder::read_public(folder)?;
        Ok(Self::new(&parts.group, parts.keys, Some(parts.ledger)).since(parts.checkpoint))
    }

    pub(crate) fn new(
        group: &GroupFile,
        keys: impl IntoIterator<Item = (KeyName, AnyPublicKey)>,
        ledger: Option<PathBuf>,
    ) -> Self {
        let given = keys.into_iter().map(|(name, key)| (name.to_string(), key)).collect();
        Self { given: RwLock::new(given), untold: RwLock::default(), book: Book::new(group, ledger) }
    }

    /// The same for a client that takes no other history than the one that goes through here.
    pub(crate) fn since(self, checkpoint: Option<Checkpoint>) -> Self {
        Self { book: self.book.since(checkpoint), ..self }
    }

    pub(crate) const fn book(&self) -> &Book {
        &self.book
    }

    /// The names of all keys, in order.
    #[must_use]
    pub fn names(&self) -> Vec<KeyName> {
        let mut names = self.book.names();
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner);
        names.extend(given.keys().filter_map(|text| Some(text.parse::<KeyRef>().ok()?.name)));
        drop(given);
        names.sort();
        names.dedup();
        names
    }

    /// All that is known by this name, or as this version of it: what is meant where no version is named comes first, then the other
    /// versions from the newest on, each with its newest sharing first.
    #[must_use]
    pub fn versions(&self, key: &KeyRef) -> Vec<KnownKey> {
        self.some_versions(key, usize::MAX, usize::MAX)
    }

    /// The same with the newest sharings alone: what nodes may answer with, even if they are behind or ahead.
    pub(crate) fn recent(&self, key: &KeyRef) -> Vec<KnownKey> {
        self.some_versions(key, RECENT, RECENT * 2)
    }

    /// At most so many sharings of each version, and so many altogether, besides what was given.
    fn some_versions(&self, key: &KeyRef, epochs: usize, all: usize) -> Vec<KnownKey> {
        let mut known: Vec<KnownKey> = self.book.sharings(key, epochs).take(all).map(KnownKey::from).collect();
        let Some(public) = self.given(&key.to_string()) else { return known };
        // The nodes may have told it before it came into the ledger; or somebody put it there who trusts it.
        match self.same(key, &public) {
            None => known.insert(0, KnownKey::alone(key, public)),
            Some(same) if !known.iter().any(|known| known.public.parts() == public.parts()) => {
                known.push(KnownKey { epoch: None, public, ..same });
            }
            Some(_) => {}
        }
        known
    }

    /// The version in the ledger that has this public key.
    fn same(&self, key: &KeyRef, public: &AnyPublicKey) -> Option<KnownKey> {
        let mut versions = self.book.sharings(key, 1);
        versions.find(|certified| certified.public.key_id() == public.key_id()).map(KnownKey::from)
    }

    /// What is meant by this name, or by this version of it.
    #[must_use]
    pub fn find(&self, key: &KeyRef) -> Option<KnownKey> {
        let certified = self.book.sharings(key, 1).next().map(KnownKey::from);
        match self.given(&key.to_string()) {
            Some(public) if self.same(key, &public).is_none() => Some(KnownKey::alone(key, public)),
            _ => certified,
        }
    }

    /// The key with this id.
    #[must_use]
    pub fn of_id(&self, id: &KeyId) -> Option<KnownKey> {
        if let Some(found) = self.book.of_id(id) {
            return Some(found.into());
        }
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner);
        let (text, public) = given.iter().find(|(_, key)| key.key_id() == id)?;
        Some(KnownKey::alone(&text.parse().ok()?, public.clone()))
    }

    /// The version that is meant where none is named, if the ledger says.
    #[must_use]
    pub fn primary(&self, name: &KeyName) -> Option<Version> {
        self.book.primary(name)
    }

    /// What was given under exactly this name.
    pub(crate) fn given(&self, name: &str) -> Option<AnyPublicKey> {
        self.given.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn insert(&self, name: String, key: AnyPublicKey) {
        self.given.write().unwrap_or_else(PoisonError::into_inner).insert(name, key);
    }

    /// Why the nodes did not tell the key of this name and id a moment ago, if they were asked for it.
    pub(crate) fn untold(&self, name: &str, id: &KeyId) -> Option<Untold> {
        let untold = self.untold.read().unwrap_or_else(PoisonError::into_inner);
        let (noted, why) = untold.get(&(name.to_owned(), *id))?;
        (noted.elapsed() < UNTOLD_FOR).then_some(*why)
    }

    pub(crate) fn note_untold(&self, name: String, id: KeyId, why: Untold) {
        let mut untold = self.untold.write().unwrap_or_else(PoisonError::into_inner);
        if untold.len() >= MOST_UNTOLD {
            untold.clear();
        }
        untold.insert((name, id), (Instant::now(), why));
    }
}
