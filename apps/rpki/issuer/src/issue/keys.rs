//! Which key of the pool is for what.

use std::collections::{BTreeMap, BTreeSet};

use rpki::crypto::PublicKey;
use theta_rpki::{
    consent::{blames_key, blames_quota, usable_keys},
    registry::Pool,
};

use super::Run;
use crate::{hands::Key, state::State};

/// What keys for an authority's manifests are for, in words.
pub(crate) fn manifests_of(authority: &str) -> String {
    format!("manifests of {authority}")
}

/// When a key was doubted last, in seconds since 1970, 0 if never; its name.
type Ranked<'a> = (i64, &'a str);

/// The keys of the pool, by what they are for.
pub(super) struct Keyring<'a> {
    pool: &'a Pool,
    own: BTreeMap<String, BTreeSet<Ranked<'a>>>,
    free: BTreeSet<Ranked<'a>>,
}

impl<'a> Keyring<'a> {
    pub(super) fn new(pool: &'a Pool, state: &State) -> Self {
        let mut ring = Self { pool, own: BTreeMap::new(), free: BTreeSet::new() };
        for (name, _) in pool.keys() {
            let ranked = (state.doubted.get(name).copied().unwrap_or_default(), name);
            match state.keys.get(name) {
                Some(purpose) => ring.own.entry(purpose.clone()).or_default().insert(ranked),
                None => ring.free.insert(ranked),
            };
        }
        ring
    }

    /// A key for this: one that is for it already, unless agents have refused it; else one that is for nothing yet. Those that were refused come after the
    /// others, the longest ago first: an agent may have been wrong, or lied.
    fn take(&mut self, purpose: &str) -> Option<&'a str> {
        let own = self.own.get(purpose).and_then(BTreeSet::first).copied();
        let free = self.free.first().copied();
        // Of two that were doubted at the same time, or never, the own one.
        let taken = own.into_iter().chain(free).min_by_key(|(doubted, _)| *doubted)?;
        if self.free.remove(&taken) {
            self.own.entry(purpose.to_owned()).or_default().insert(taken);
        }
        Some(taken.1)
    }
}

impl<'a> Run<'a> {
    /// A key of the pool for this, which is noted.
    pub(super) fn key(&mut self, purpose: &str) -> Option<Key<'a>> {
        let name = self.keyring.take(purpose)?;
        let public: &'a PublicKey = self.keyring.pool.key(name)?;
        self.known().keys.insert(name.to_owned(), purpose.to_owned());
        Some(Key { name, public })
    }

    /// Has others taken before this key.
    pub(super) fn set_aside(&mut self, key: &str) {
        let now = self.issuer.now;
        self.known().doubted.insert(key.to_owned(), now);
    }

    /// Notes that agents have refused a key for what it was to be for, if that is what they say, or all keys. It is taken for free again if nothing was signed
    /// with it: it may be for something else that is to be made. Which other key may be used instead they may say; it is believed once.
    pub(super) fn doubt(&mut self, key: &str, objection: &str) {
        let is_full = blames_quota(objection);
        if !blames_key(objection) && !is_full {
            return;
        }
        let pool = self.issuer.pool;
        let purpose = self.known().keys.get(key).cloned();
        if !is_full {
            self.set_aside(key);
        }
        let state = self.known();
        let mut certificates = state.authorities.values().flat_map(|issued| &issued.certificates);
        if !certificates.any(|certified| certified.key == key && certified.is_signed) {
            state.keys.remove(key);
        }
        let named = usable_keys(objection).find(|named| {
            pool.key(named).is_some() && !state.doubted.contains_key(*named) && !state.keys.contains_key(*named)
        });
        if let (Some(named), Some(purpose)) = (named, purpose) {
            state.keys.insert(named.to_owned(), purpose);
        }
    }
}
