//! Signatures of one event: those that will be asked for, are under way, are made, or were given.

use std::{
    collections::{HashMap, hash_map},
    mem,
};

use bytes::Bytes;
use theta_look_ahead::Digest;

/// So many digests are remembered before those that were given are forgotten.
pub(super) const MOST_ENTRIES: usize = 65_536;

/// What has become of a digest.
#[derive(Debug)]
enum Entry {
    /// It will be asked for, and is not signed yet.
    Listed,
    /// The nodes are asked.
    UnderWay,
    /// The signature, for whoever asks first.
    Made(Bytes),
    /// The host has it.
    Given,
}

/// What a host gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The signature.
    Made(Bytes),
    /// It comes.
    UnderWay,
    /// It is of this event, and is to be signed now.
    Known,
    /// Nothing is known of it.
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Shelf {
    entries: HashMap<Digest, Entry>,
    /// How many signatures wait for the host.
    made: usize,
    under_way: usize,
}

impl Shelf {
    /// The signature for the host, which has it from then on or makes it itself.
    pub(super) fn take(&mut self, digest: &Digest) -> Taken {
        let Some(entry) = self.entries.get_mut(digest) else { return Taken::Unknown };
        if matches!(entry, Entry::UnderWay) {
            return Taken::UnderWay;
        }
        match mem::replace(entry, Entry::Given) {
            Entry::Made(signature) => {
                self.made = self.made.saturating_sub(1);
                Taken::Made(signature)
            }
            // It has come to be asked for before its turn, or once more.
            Entry::Listed | Entry::UnderWay | Entry::Given => Taken::Known,
        }
    }

    /// Takes a digest into the list; whether it is to be signed.
    pub(super) fn list(&mut self, digest: Digest) -> bool {
        match self.entries.entry(digest) {
            hash_map::Entry::Vacant(place) => {
                place.insert(Entry::Listed);
                true
            }
            hash_map::Entry::Occupied(place) => matches!(place.get(), Entry::Listed),
        }
    }

    /// The host has made it.
    pub(super) fn give(&mut self, digest: Digest) {
        // Whatever else it was, it is asked for no more.
        if self.entries.get(&digest).is_none_or(|entry| matches!(entry, Entry::Listed)) {
            self.entries.insert(digest, Entry::Given);
        }
    }

    /// The nodes are to be asked for it, unless it is not to be signed any more.
    pub(super) fn start(&mut self, digest: &Digest) -> bool {
        let Some(entry @ Entry::Listed) = self.entries.get_mut(digest) else { return false };
        *entry = Entry::UnderWay;
        self.under_way = self.under_way.saturating_add(1);
        true
    }

    /// What came of that: a signature, or none.
    pub(super) fn made(&mut self, digest: &Digest, signature: Option<Bytes>) {
        let Some(entry @ Entry::UnderWay) = self.entries.get_mut(digest) else { return };
        self.under_way = self.under_way.saturating_sub(1);
        match signature {
            Some(signature) => {
                *entry = Entry::Made(signature);
                self.made = self.made.saturating_add(1);
            }
            None => drop(self.entries.remove(digest)),
        }
    }

    pub(super) fn knows(&self, digest: &Digest) -> bool {
        self.entries.contains_key(digest)
    }

    /// How many digests are remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many signatures wait for the host.
    pub(super) const fn waiting(&self) -> usize {
        self.made
    }

    /// How many are under way.
    pub(super) const fn under_way(&self) -> usize {
        self.under_way
    }

    /// Makes room in a large zone: what was given is hardly asked for again.
    pub(super) fn shrink(&mut self) {
        if self.entries.len() > MOST_ENTRIES {
            self.entries.retain(|_, entry| !matches!(entry, Entry::Given));
        }
    }

    /// Forgets what is not begun.
    pub(super) fn unlist(&mut self) {
        self.entries.retain(|_, entry| !matches!(entry, Entry::Listed));
    }

    /// Forgets everything. What is under way is worth nothing when it comes.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
