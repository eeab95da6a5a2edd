//! Keys by name and by id.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
};

use theta_protocols::frost::NoncePool;
use theta_schemes::{
    Suite,
    keys::{AnyKeyShare, AnyPublicKey, KeyId, KeyName},
};
use theta_sharing::ShareIndex;

use super::{KeyStoreError, files};

/// One key of this node.
#[derive(Debug)]
pub struct KeyEntry {
    /// What people call it.
    pub name: KeyName,
    /// What everybody may know of it.
    pub public: AnyPublicKey,
    /// This node's part of its secret.
    pub share: Arc<AnyKeyShare>,
    /// Its digest.
    pub key_id: KeyId,
    /// What it is made for.
    pub suite: Suite,
    /// What this node has made in advance for it; gone when the key goes.
    pub(crate) nonces: NoncePool,
}

/// The keys of one node: public material and this node's shares, checked against each other. Fixed once it is made.
#[derive(Debug, Default)]
pub struct KeyStore {
    names: BTreeMap<String, Arc<KeyEntry>>,
    ids: HashMap<KeyId, Arc<KeyEntry>>,
}

impl KeyStore {
    /// Reads `keys/*.pub` and `keys/*.share` of a node's directory. A node without a folder `keys` has no keys.
    ///
    /// # Errors
    /// [`KeyStoreError`]: a file that cannot be read, is readable by others, is malformed, or does not belong to the rest.
    pub fn load(directory: &Path) -> Result<Self, KeyStoreError> {
        Self::new(files::read(&directory.join("keys"))?)
    }

    /// Makes a store of keys that are in memory already.
    ///
    /// # Errors
    /// [`KeyStoreError`] if a share is not of its key, shares are of different nodes, or keys are the same.
    pub fn new(keys: impl IntoIterator<Item = (KeyName, AnyPublicKey, AnyKeyShare)>) -> Result<Self, KeyStoreError> {
        let mut store = Self::default();
        for (name, public, share) in keys {
            store.insert(name, public, share)?;
        }
        Ok(store)
    }

    fn insert(&mut self, name: KeyName, public: AnyPublicKey, share: AnyKeyShare) -> Result<(), KeyStoreError> {
        let (key_id, suite) = (*public.key_id(), public.suite());
        if *share.key_id() != key_id || share.suite() != suite {
            return Err(KeyStoreError::OtherKey(name));
        }
        if let Some(first) = self.ids.get(&key_id) {
            return Err(KeyStoreError::SameKey { first: first.name.clone(), second: name });
        }
        let abused = |entry: &&Arc<KeyEntry>| {
            entry.suite.purpose() != suite.purpose() && entry.public.public_key_bytes() == public.public_key_bytes()
        };
        if let Some(first) = self.iter().find(abused) {
            return Err(KeyStoreError::SameSecret { first: first.name.clone(), second: name });
        }
        if self.names.contains_key(name.as_str()) {
            return Err(KeyStoreError::SameName(name));
        }
        if let Some(first) = self.iter().next()
            && first.share.index() != share.index()
        {
            return Err(KeyStoreError::MixedNodes {
                first: first.name.clone(),
                first_index: first.share.index(),
                second: name,
                second_index: share.index(),
            });
        }
        let nonces = NoncePool::new(&public);
        let entry = Arc::new(KeyEntry { name, public, share: Arc::new(share), key_id, suite, nonces });
        self.names.insert(entry.name.as_str().to_owned(), Arc::clone(&entry));
        self.ids.insert(key_id, entry);
        Ok(())
    }

    /// The key of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<KeyEntry>> {
        self.names.get(name)
    }

    /// The key of this id.
    #[must_use]
    pub fn get_by_id(&self, id: &KeyId) -> Option<&Arc<KeyEntry>> {
        self.ids.get(id)
    }

    /// All keys by name, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KeyEntry>> {
        self.names.values()
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whose shares these are; `None` without keys.
    #[must_use]
    pub fn index(&self) -> Option<ShareIndex> {
        self.iter().next().map(|entry| entry.share.index())
    }

    /// The names for people: `alpha, beta`, or `none`.
    pub(crate) fn known(&self) -> String {
        if self.is_empty() {
            return "none".to_owned();
        }
        self.names.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}
