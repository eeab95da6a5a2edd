//! Why keys cannot be used, each in one line: what is wrong, where, and what would be right.

use std::{io, path::PathBuf};

use theta_schemes::keys::{KeyFileError, KeyName, KeyNameError};
use theta_sharing::ShareIndex;

/// Why a key store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum KeyStoreError {
    /// A file or folder cannot be read.
    #[error("{path}: cannot be read: {error}", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Others than its owner may read a share.
    #[error("{path}: mode {mode:03o} lets others read this secret share: run `chmod 600 {path}`", path = path.display())]
    Readable {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Larger than any key file.
    #[error("{path}: is not a key file: it is larger than {limit} bytes", path = path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file's name is not that of a key.
    #[error("{path}: {error}", path = path.display())]
    FileName {
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: KeyNameError,
    },
    /// The content is not that of a key file, or does not belong to the public key beside it.
    #[error("{path}: {error}", path = path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong in it.
        error: KeyFileError,
    },
    /// The file is named otherwise than the key in it.
    #[error("{path}: holds key {name}: rename it to {name}.{extension}", path = path.display())]
    OtherName {
        /// Which file.
        path: PathBuf,
        /// The name inside.
        name: KeyName,
        /// `pub` or `share`.
        extension: &'static str,
    },
    /// One half of a pair.
    #[error(
        "{missing}: is missing beside {present}: a node needs both; take them as the dealer wrote them",
        missing = missing.display(), present = present.display()
    )]
    Unpaired {
        /// The file that is there.
        present: PathBuf,
        /// The one that is not.
        missing: PathBuf,
    },
    /// Shares of different nodes in one store.
    #[error(
        "key {second} has the share of node {second_index}, key {first} that of node {first_index}: a node holds its own shares only"
    )]
    MixedNodes {
        /// One key.
        first: KeyName,
        /// Whose share of it.
        first_index: ShareIndex,
        /// The other key.
        second: KeyName,
        /// Whose share of it.
        second_index: ShareIndex,
    },
    /// One key twice.
    #[error("keys {first} and {second} are the same key: remove one of them")]
    SameKey {
        /// One name.
        first: KeyName,
        /// The other.
        second: KeyName,
    },
    /// One secret for two purposes: an answer for one could be of use against the other.
    #[error(
        "keys {first} and {second} are one secret for two purposes: remove one of them, and make a new key for its purpose"
    )]
    SameSecret {
        /// One name.
        first: KeyName,
        /// The other.
        second: KeyName,
    },
    /// Two keys of one name.
    #[error("two keys are named {0}: rename one of them")]
    SameName(KeyName),
    /// A share and a public key that are not of one key.
    #[error("key {0}: the share does not belong to the public key: pair the files of one key")]
    OtherKey(KeyName),
}
