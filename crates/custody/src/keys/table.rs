//! The live table of keys.

use std::collections::BTreeMap;
use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use theta_names::{Epoch, Holders, KeyRef, KeyState, NodeId, Version};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyId, KeyName};

use super::{KeyEntry, KeyTableError, ResolveError};

/// The keys of one node. Reading takes a lock for as long as it takes to clone an [`Arc`]; what was read stays as it was when
/// the table changes.
#[derive(Debug)]
pub struct KeyTable {
    /// Tells it from all other tables of this process.
    id: u64,
    local: Option<NodeId>,
    content: RwLock<Arc<Content>>,
}

/// The versions of each key, ascending.
#[derive(Clone, Debug, Default)]
struct Content {
    keys: BTreeMap<KeyName, Vec<Arc<KeyEntry>>>,
    generation: u64,
}

/// The tables of this process so far.
static TABLES: AtomicU64 = AtomicU64::new(0);

fn next_id() -> u64 {
    TABLES.fetch_add(1, Relaxed)
}

impl Content {
    /// What a name stands for.
    fn named(&self, key: &KeyRef) -> Option<&Arc<KeyEntry>> {
        let versions = self.keys.get(&key.name)?;
        match key.version {
            None => versions.iter().find(|entry| entry.primary).or_else(|| versions.last()),
            Some(version) => versions.iter().find(|entry| entry.version == version),
        }
    }

    /// What a name stands for; of a bare name, a ciphertext knows better.
    fn meant(&self, key: &KeyRef, id: Option<&KeyId>) -> Option<&Arc<KeyEntry>> {
        let named = self.named(key)?;
        let by_id = || self.keys.get(&key.name)?.iter().find(|entry| Some(&entry.key_id) == id);
        Some(if key.version.is_some() || id.is_none() { None } else { by_id() }.unwrap_or(named))
    }

    /// That a name stands for nothing, in words.
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

    /// Refuses what must not be beside what is here.
    fn check(&self, new: &KeyEntry) -> Result<(), KeyTableError> {
        let KeyEntry { name, public, suite, holders, .. } = new;
        let second = || name.clone();
        if let Some(share) = &new.share
            && (share.key_id() != public.key_id() || share.suite() != *suite)
        {
            return Err(KeyTableError::OtherKey(second()));
        }
        let n = public.threshold().n();
        if holders.len() != usize::from(n) {
            return Err(KeyTableError::Holders { name: second(), holders: holders.len(), n });
        }
        // An entry may be the same as the one whose place it takes.
        let mut others =
            self.keys.values().flatten().filter(|other| other.name != *name || other.version != new.version);
        if let Some(first) = others.clone().find(|other| other.key_id == new.key_id) {
            return Err(KeyTableError::SameKey { first: first.name.clone(), second: second() });
        }
        let abused = |other: &&Arc<KeyEntry>| {
            other.suite.purpose() != suite.purpose() && other.public.public_key_bytes() == public.public_key_bytes()
        };
        match others.find(abused) {
            Some(first) => Err(KeyTableError::SameSecret { first: first.name.clone(), second: second() }),
            None => Ok(()),
        }
    }
}

impl KeyTable {
    /// A table of keys that are in memory: each is version 1 at epoch 0, active, its shares held by nodes 1 to n. For tests,
    /// benchmarks and users of the library; a node's own comes from its store.
    ///
    /// # Errors
    /// [`KeyTableError`] if a share is not of its key, shares are of different nodes, or keys are the same.
    pub fn new(keys: impl IntoIterator<Item = (KeyName, AnyPublicKey, AnyKeyShare)>) -> Result<Self, KeyTableError> {
        let mut content = Content::default();
        let mut first: Option<(KeyName, theta_sharing::ShareIndex)> = None;
        for (name, public, share) in keys {
            let index = share.index();
            let entry = fixed_entry(name, public, share);
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

    /// An empty table of the node of this number.
    pub(crate) fn of_node(local: NodeId) -> Self {
        Self { id: next_id(), local: Some(local), content: RwLock::default() }
    }

    fn content(&self) -> Arc<Content> {
        Arc::clone(&self.content.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks whether entries of one key may stand in the table, in place of those that are there.
    pub(crate) fn check(&self, entries: &[Arc<KeyEntry>]) -> Result<(), KeyTableError> {
        let content = self.content();
        entries.iter().try_for_each(|entry| content.check(entry))
    }

    /// Puts all versions of a key in place of those that were there.
    pub(crate) fn put(&self, name: &KeyName, entries: Vec<Arc<KeyEntry>>) {
        let mut current = self.content.write().unwrap_or_else(PoisonError::into_inner);
        let mut content = Content::clone(&current);
        content.generation += 1;
        content.keys.insert(name.clone(), entries);
        *current = Arc::new(content);
    }

    /// The key of this name, as [`KeyTable::find`] has it; `None` also if it is no name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<KeyEntry>> {
        self.find(&name.parse().ok()?).ok()
    }

    /// The key of this name: `files` is its primary version, `files@2` that version. A key without a version that serves is
    /// still found, as the last that did.
    ///
    /// # Errors
    /// [`ResolveError::Unknown`] and [`ResolveError::NoVersion`].
    pub fn find(&self, key: &KeyRef) -> Result<Arc<KeyEntry>, ResolveError> {
        let content = self.content();
        content.named(key).cloned().ok_or_else(|| content.absent(key))
    }

    /// What serves a request that names this key. With a key id (that of a ciphertext), the version of this name that has it,
    /// retired or not; else the primary version, or the one that is named.
    ///
    /// # Errors
    /// [`ResolveError`] with the reason, and what would help. A version that is not served has no share here that may be used.
    pub fn resolve(&self, key: &KeyRef, id: Option<&KeyId>) -> Result<Arc<KeyEntry>, ResolveError> {
        let content = self.content();
        let entry = content.meant(key, id).cloned().ok_or_else(|| content.absent(key))?;
        self.serving(entry)
    }

    /// The entry that [`KeyTable::resolve`] is about, whether it serves or not. No words are made of what there is: for those
    /// who may not hear them yet.
    #[must_use]
    pub fn look_up(&self, key: &KeyRef, id: Option<&KeyId>) -> Option<Arc<KeyEntry>> {
        self.content().meant(key, id).cloned()
    }

    /// That there is no such key, and which there are.
    #[must_use]
    pub fn absent(&self, key: &KeyRef) -> ResolveError {
        self.content().absent(key)
    }

    /// An entry of this table if it serves here.
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
            _ => Err(ResolveError::ShareLost { name: qualified() }),
        }
    }

    /// All versions of the key of this name, ascending.
    #[must_use]
    pub fn versions(&self, name: &str) -> Vec<Arc<KeyEntry>> {
        let content = self.content();
        name.parse().ok().and_then(|name: KeyName| content.keys.get(&name).cloned()).unwrap_or_default()
    }

    /// All versions of all keys, by name and version.
    pub fn iter(&self) -> impl Iterator<Item = Arc<KeyEntry>> + use<> {
        self.content().entries().cloned().collect::<Vec<_>>().into_iter()
    }

    /// What each name stands for, by name.
    pub fn primaries(&self) -> impl Iterator<Item = Arc<KeyEntry>> + use<> {
        self.iter().filter(|entry| entry.primary)
    }

    /// How many keys there are, whatever the number of their versions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.content().keys.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.content().keys.is_empty()
    }

    /// The node whose keys these are; `None` for a table in memory without keys.
    #[must_use]
    pub const fn local(&self) -> Option<NodeId> {
        self.local
    }

    /// The names for people: `alpha, beta`, or `none`.
    #[must_use]
    pub fn known(&self) -> String {
        known(&self.content())
    }

    /// Tells this table from every other one of this process: nodes that share a process have tables of their own.
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
    /// Without keys.
    fn default() -> Self {
        Self { id: next_id(), local: None, content: RwLock::default() }
    }
}

fn fixed_entry(name: KeyName, public: AnyPublicKey, share: AnyKeyShare) -> KeyEntry {
    KeyEntry {
        version: Version::FIRST,
        epoch: Epoch::FIRST,
        state: KeyState::Active,
        generation: 0,
        primary: true,
        share: Some(Arc::new(share)),
        key_id: *public.key_id(),
        suite: public.suite(),
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
