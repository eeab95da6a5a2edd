//! Why a key cannot be changed as asked, each in one line. All but [`KeyError::Store`] and [`KeyError::Bug`] are the
//! caller's mistakes.

use theta_names::{Epoch, KeyName, KeyState, Version};

use crate::StoreError;

/// Why a key was not changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum KeyError {
    /// There is no such key.
    #[error("there is no key {0}")]
    Unknown(KeyName),
    /// The name was given before, perhaps to a key that has been destroyed since.
    #[error("a key {0} exists or existed: choose another name")]
    Exists(KeyName),
    /// The key or version is destroyed.
    #[error("key {0} is destroyed")]
    Destroyed(KeyName),
    /// There is no such version.
    #[error("key {name} has no version {version}")]
    NoVersion {
        /// Which key.
        name: KeyName,
        /// Which version.
        version: Version,
    },
    /// There is no such epoch.
    #[error("version {version} of key {name} has no epoch {epoch}")]
    NoEpoch {
        /// Which key.
        name: KeyName,
        /// Which version.
        version: Version,
        /// Which epoch.
        epoch: Epoch,
    },
    /// The epoch is not pending.
    #[error("epoch {epoch} of version {version} of key {name} does not wait for a certificate")]
    NotPending {
        /// Which key.
        name: KeyName,
        /// Which version.
        version: Version,
        /// Which epoch.
        epoch: Epoch,
    },
    /// A share of an older epoch never takes the place of a newer one.
    #[error("version {version} of key {name} has epoch {newer} already: epoch {epoch} is not newer")]
    OldEpoch {
        /// Which key.
        name: KeyName,
        /// Which version.
        version: Version,
        /// The epoch that was given.
        epoch: Epoch,
        /// The epoch that is there.
        newer: Epoch,
    },
    /// Numbers of versions are never given twice.
    #[error("key {name} has version {version} already")]
    KnownVersion {
        /// Which key.
        name: KeyName,
        /// The number that was given.
        version: Version,
    },
    /// The holders are not one different node for each share.
    #[error("it takes {n} different nodes to hold {n} shares")]
    Holders {
        /// How many shares there are.
        n: u16,
    },
    /// The share is not lost.
    #[error("this node has its share of epoch {epoch} of version {version} of key {name}")]
    HasShare {
        /// Which key.
        name: KeyName,
        /// Which version.
        version: Version,
        /// Which epoch.
        epoch: Epoch,
    },
    /// The state may not follow the present one.
    #[error(
        "key {name} cannot go from {from} to {next}{why}",
        why = if *superseded { ": a newer version took its place" } else { "" }
    )]
    Transition {
        /// Which key.
        name: KeyName,
        /// Its state, or its version's.
        from: KeyState,
        /// The one asked for.
        next: KeyState,
        /// Whether a newer version prevents it.
        superseded: bool,
    },
    /// A change of state that is not newer than the last.
    #[error(
        "the change names generation {named} and key {name} is at {current}: a later change was made; look again, and name \
         a higher one if it is still meant"
    )]
    Generation {
        /// Which key.
        name: KeyName,
        /// What the change names.
        named: u64,
        /// That of the last change.
        current: u64,
    },
    /// The generation of a change is too far ahead.
    #[error("the change names generation {named} and key {name} is at {current}, which is too far apart: look again")]
    GenerationAhead {
        /// Which key.
        name: KeyName,
        /// What the change names.
        named: u64,
        /// That of the last change.
        current: u64,
    },
    /// A part is empty or larger than any that belongs there.
    #[error("{what} is empty or longer than {most} bytes")]
    TooLong {
        /// What.
        what: &'static str,
        /// The limit in bytes.
        most: usize,
    },
    /// k and n are no threshold.
    #[error("k = {k}, n = {n}: it takes 1 <= k <= n")]
    Threshold {
        /// How many shares it takes.
        k: u16,
        /// How many there are.
        n: u16,
    },
    /// The key has as many versions as a key can have.
    #[error("key {0} has all the versions that a key can have: make a new key")]
    TooManyVersions(KeyName),
    /// An error of the disk, the file or the sealing key.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A mistake of this program.
    #[error("bug: a version vanished while it was changed")]
    Bug,
}
