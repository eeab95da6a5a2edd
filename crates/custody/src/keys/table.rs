//! The live table of keys.

use std::collections::BTreeMap;
use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use theta_names::{Delivery, Epoch, Holders, KeyRef, KeyState, NodeId, Version};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyId, KeyName};

use super::{KeyEntry, KeyTableError, ResolveError};

/// The keys of one node. Reading holds a lock only while an [`Arc`] is cloned; entries that were read stay unchanged
/// when the table changes.
#[derive(Debug)]
pub struct KeyTable {
    /// Distinguishes it from all other tables of this process.
    id: u64,
    local: Option<NodeId>,
    content: RwLock<Arc<Content>>,
}

/// The versions of each key, in ascending order.
#[derive(Clone, Debug, Default)]
struct Content {
    keys: BTreeMap<KeyName, Vec<Arc<KeyEntry>>>,
    generation: u64,
}

/// The number of tables that this process has made.
static TABLES: AtomicU64 = AtomicU64::new(0);

fn next_id() -> u64 {
    TABLES.fetch_add(1, Relaxed)
}

impl Content {
    /// The entry that a name means.
    fn named(&self, key: &KeyRef) -> Option<&Arc<KeyEntry>> {
        let versions = self.keys.get(&key.name)?;
        match key.version {
            None => versions.iter().find(|entry| entry.primary).or_else(|| versions.last()),
            Some(version) => versions.iter().find(|entry| entry.version == version),
        }
    }

    /// The entry that a name means; for a bare name, the key id of a ciphertext selects the version.
    fn meant(&self, key: &KeyRef, id: Option<&KeyId>) -> Option<&Arc<KeyEntry>> {
        let named = self.named(key)?;
        let by_id = || self.keys.get(&key.name)?.iter().find(|entry| Some(&entry.key_id) == id);
        Some(if key.version.is_some() || id.is_none() { None } else { by_id() }.unwrap_or(named))
    }

    /// The error for a name that means no entry.
    fn absent(&self, key: &KeyRef) -> ResolveError {
        match (self.keys.get(&key.name).filter(|versions| !versions.is_empty()), key.version) {
            (Some(versions), Some(version)) => {
                let known = list(versions.iter().map(|entry| entry.version));
                ResolveError::NoVersion { name: key.name.clone(), version, known }
            }
            _ => ResolveError::Unknown { name: key.to_string(), known: known(self) },
        }
    }

    fn entries(&self) -> impl Iterator<Item = &Arc<KeyEntry>> {
        self.keys.values().flatten()
    }

    /// Refuses an entry that must not be in one table with those that are here.
    fn check(&self, new: &KeyEntry) -> Result<(), KeyTableError> {
        let KeyEntry { name, public, suite, holders, .. } = new;
        let second = || name.clone();
        if let Some(share) = &new.share
            && (share.key_id() != public.key_id() || share.suite() != *suite)
        {
            return Err(KeyTableError::OtherKey(second()));
        }
        suite
            .check_delivery(new.delivery)
            .map_err(|reason| KeyTableError::UnsupportedDelivery { name: second(), reason })?;
        let no_majority = |reason| KeyTableError::UnfitThreshold { name: second(), reason };
        suite.check_threshold(public.threshold(), new.delivery).map_err(no_majority)?;
        let n = public.threshold().n();
        if holders.len() != usize::from(n) {
            return Err(KeyTableError::Holders { name: second(), holders: holders.len(), n });
        }
        // A new entry may equal the one that it replaces.
        let others = self.keys.values().flatten().filter(|other| other.name != *name || other.version != new.version);
        if let Some(first) = others.clone().find(|other| other.key_id == new.key_id) {
            return Err(KeyTableError::SameKey { first: first.name.clone(), second: second() });
        }
        let has_secret = |other: &&Arc<KeyEntry>| other.public.public_key_bytes() == public.public_key_bytes();
        let is_abused = |other: &&Arc<KeyEntry>| other.suite.purpose() != suite.purpose();
        let is_weaker = |other: &&Arc<KeyEntry>| other.delivery.is_passive() != new.delivery.is_passive();
        if let Some(first) = others.clone().filter(has_secret).find(is_abused) {
            return Err(KeyTableError::SameSecret { first: first.name.clone(), second: second() });
        }
        match others.filter(has_secret).find(is_weaker) {
            Some(first) => Err(KeyTableError::OneIsPassive { first: first.name.clone(), second: second() }),
            None => Ok(()),
        }
    }
}

impl KeyTable {
    /// A table of keys in memory: each is version 1 at epoch 0, active, its shares held by nodes 1 to n. For tests,
    /// benchmarks and users of the library; a node's own table comes from its store.
    ///
    /// # Errors
    /// [`KeyTableError`] if a share does not belong to its key, shares are of different nodes, two keys are the same, or a key has a
    /// threshold that its suite does not have.
    pub fn new(keys: impl IntoIterator<Item = (KeyName, AnyPublicKey, AnyKeyShare)>) -> Result<Self, KeyTableError> {
        Self::delivered(keys.into_iter().map(|(name, public, share)| (name, public, share, Delivery::All)))
    }

    /// The same, each key with its delivery.
    ///
    /// # Errors
    /// As [`KeyTable::new`]; [`KeyTableError::UnsupportedDelivery`].
    pub fn delivered(
        keys: impl IntoIterator<Item = (KeyName, AnyPublicKey, AnyKeyShare, Delivery)>,
    ) -> Result<Self, KeyTableError> {
        let mut content = Content::default();
        let mut first: Option<(KeyName, theta_sharing::ShareIndex)> = None;
        for (name, public, share, delivery) in keys {
            let index = share.index();
            let entry = fixed_entry(name, public, share, delivery);
            content.check(&entry)?;
            let name = entry.name.clone();
            if content.keys.contains_key(&name) {
                return Err(KeyTableError::SameName(name));
            }
            let (first, first_index) = first.get_or_insert_with(|| (name.clone(), index)).clone();
            if first_index != index {
                return Err(KeyTableError::MixedNodes { first, first_index, second: name, second_index: index });
            }
            content.keys.insert(name, vec![Arc::new(entry)]);
        }
        let local = first.and_then(|(name, _)| {
            let [entry] = content.keys.get(&name)?.as_slice() else { return None };
            entry.holders.node_of(entry.share.as_ref()?.index())
        });
        Ok(Self { id: next_id(), local, content: RwLock::new(Arc::new(content)) })
    }

    /// An empty table for the node `local`.
    pub(crate) fn of_node(local: NodeId) -> Self {
        Self { id: next_id(), local: Some(local), content: RwLock::default() }
    }

    fn content(&self) -> Arc<Content> {
        Arc::clone(&self.content.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks whether entries of one key may replace those in the table.
    pub(crate) fn check(&self, entries: &[Arc<KeyEntry>]) -> Result<(), KeyTableError> {
        let content = self.content();
        entries.iter().try_for_each(|entry| content.check(entry))
    }

    /// Replaces all versions of a key.
    pub(crate) fn put(&self, name: &KeyName, entries: Vec<Arc<KeyEntry>>) {
        let mut current = self.content.write().unwrap_or_else(PoisonError::into_inner);
        let mut content = Content::clone(&current);
        content.generation += 1;
        content.keys.insert(name.clone(), entries);
        *current = Arc::new(content);
    }

    /// The key of this name, as [`KeyTable::find`] does; `None` also if the text is no name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<KeyEntry>> {
        self.find(&name.parse().ok()?).ok()
    }

    /// The key of this name: `files` means its primary version, `files@2` its version 2. If no version is in use, the
    /// last that was is found.
    ///
    /// # Errors
    /// [`ResolveError::Unknown`] and [`ResolveError::NoVersion`].
    pub fn find(&self, key: &KeyRef) -> Result<Arc<KeyEntry>, ResolveError> {
        let content = self.content();
        content.named(key).cloned().ok_or_else(|| content.absent(key))
    }

    /// The entry that serves a request for this key. With a key id (that of a ciphertext), it is the version of this
    /// name that has that id, retired or not; otherwise the primary version, or the one that is named.
    ///
    /// # Errors
    /// [`ResolveError`] with the reason and what would help: also for a version whose state or missing share forbids
    /// the use.
    pub fn resolve(&self, key: &KeyRef, id: Option<&KeyId>) -> Result<Arc<KeyEntry>, ResolveError> {
        let content = self.content();
        let entry = content.meant(key, id).cloned().ok_or_else(|| content.absent(key))?;
        self.serving(entry)
    }

    /// The version of a key that has this id, in whatever state.
    #[must_use]
    pub fn of_id(&self, id: &KeyId) -> Option<Arc<KeyEntry>> {
        self.content().entries().find(|entry| entry.key_id == *id).cloned()
    }

    /// The entry that [`KeyTable::resolve`] would use, whether it serves or not. The answer lists no names, so callers
    /// may use it before they know whether the client may see them.
    #[must_use]
    pub fn look_up(&self, key: &KeyRef, id: Option<&KeyId>) -> Option<Arc<KeyEntry>> {
        self.content().meant(key, id).cloned()
    }

    /// The error that there is no such key; it lists the existing ones.
    #[must_use]
    pub fn absent(&self, key: &KeyRef) -> ResolveError {
        self.content().absent(key)
    }

    /// Returns an entry of this table if it serves at this node.
    ///
    /// # Errors
    /// As [`KeyTable::resolve`].
    pub fn serving(&self, entry: Arc<KeyEntry>) -> Result<Arc<KeyEntry>, ResolveError> {
        let qualified = || entry.qualified_name();
        match entry.state {
            KeyState::Disabled => return Err(ResolveError::Disabled(qualified())),
            KeyState::Destroyed => return Err(ResolveError::Destroyed(qualified())),
            KeyState::Pending => return Err(ResolveError::Pending(qualified())),
            KeyState::Retired if !entry.serves() => {
                return Err(ResolveError::Retired { name: qualified(), primary: entry.name.to_string() });
            }
            KeyState::Retired | KeyState::Active => {}
        }
        match self.local {
            _ if entry.share.is_some() => Ok(entry),
            Some(node) if !entry.holders.contains(node) => {
                let holders = list(entry.holders.iter());
                Err(ResolveError::NotHolder { name: qualified(), node, holders })
            }
            node => Err(ResolveError::ShareLost { name: qualified(), key: entry.name.clone(), node }),
        }
    }

    /// All versions of the key of this name, in ascending order.
    #[must_use]
    pub fn versions(&self, name: &str) -> Vec<Arc<KeyEntry>> {
        let content = self.content();
        name.parse().ok().and_then(|name: KeyName| content.keys.get(&name).cloned()).unwrap_or_default()
    }

    /// All versions of all keys, by name and version.
    pub fn iter(&self) -> impl Iterator<Item = Arc<KeyEntry>> + use<> {
        self.content().entries().cloned().collect::<Vec<_>>().into_iter()
    }

    /// The entry that each bare name means, by name.
    pub fn primaries(&self) -> impl Iterator<Item = Arc<KeyEntry>> + use<> {
        self.iter().filter(|entry| entry.primary)
    }

    /// How many keys there are, each counted once for all its versions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.content().keys.len()
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.content().keys.is_empty()
    }

    /// The node whose keys these are; `None` for a table in memory without keys.
    #[must_use]
    pub const fn local(&self) -> Option<NodeId> {
        self.local
    }

    /// The names for display: `alpha, beta`, or `none`.
    #[must_use]
    pub fn known(&self) -> String {
        known(&self.content())
    }

    /// Distinguishes this table from every other one of this process: nodes that share a process have tables of their
    /// own.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Rises with each change.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.content().generation
    }
}

impl Default for KeyTable {
    /// A table without keys.
    fn default() -> Self {
        Self { id: next_id(), local: None, content: RwLock::default() }
    }
}

fn fixed_entry(name: KeyName, public: AnyPublicKey, share: AnyKeyShare, delivery: Delivery) -> KeyEntry {
    KeyEntry {
        version: Version::FIRST,
        epoch: Epoch::FIRST,
        state: KeyState::Active,
        frozen: false,
        generation: 0,
        primary: true,
        share: Some(Arc::new(share)),
        key_id: *public.key_id(),
        suite: public.suite(),
        delivery,
        holders: Holders::first(public.threshold().n()),
        stock: Arc::default(),
        name,
        public,
    }
}

fn known(content: &Content) -> String {
    if content.keys.is_empty() { "none".to_owned() } else { list(content.keys.keys()) }
}

fn list<T: ToString>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}
