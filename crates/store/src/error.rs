//! Why a store does not open, read or write, each in one line: what is wrong, where, and what would be right.

use std::{io, sync::Arc};

/// What went wrong below the meaning of a record: the disk, the file, the sealing key, or a record that is not one.
/// Never shows a secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The file or folder cannot be used.
    #[error("{place}: {error}")]
    Io {
        /// Which file or folder.
        place: String,
        /// Why not.
        error: Arc<io::Error>,
    },
    /// There is no store.
    #[error("{0}: there is no store here: create one first, or correct the path")]
    Missing(String),
    /// A store is there already.
    #[error("{0}: exists already and is not overwritten: choose another path")]
    Exists(String),
    /// A process died while it created the store: nothing was ever kept in it.
    #[error(
        "{0}: the creation of this store was never finished, and nothing was kept in it: remove it and create it again"
    )]
    Unfinished(String),
    /// Not a file of ours.
    #[error("{0}: is not a store")]
    NotAStore(String),
    /// The database below cannot make sense of the file.
    #[error("{0}: is damaged: restore a backup")]
    Damaged(String),
    /// Another process has it open.
    #[error("{0}: is in use by another process: a store belongs to one process at a time")]
    Locked(String),
    /// Others than its owner may read the file.
    #[error("{place}: mode {mode:03o} lets others use this file: run `chmod 600 {place}`")]
    FileMode {
        /// Which file.
        place: String,
        /// Its permission bits.
        mode: u32,
    },
    /// Others than its owner may exchange the file for another.
    #[error("{place}: mode {mode:03o} lets others replace files in this folder: run `chmod go-w {place}`")]
    FolderMode {
        /// Which folder.
        place: String,
        /// Its permission bits.
        mode: u32,
    },
    /// A format of another release.
    #[error(
        "{place}: format {found} is not known to this build, which reads format {known}: use the release that wrote it"
    )]
    Format {
        /// Which file.
        place: String,
        /// The format found.
        found: u8,
        /// The format known.
        known: u8,
    },
    /// The sealing key does not open it, or its head was changed: the two cannot be told apart.
    #[error("{0}: the passphrase or key does not open it")]
    WrongKey(String),
    /// The sealing key is of the other kind.
    #[error("{place}: is sealed by {kind}: give that one")]
    OtherKind {
        /// Which file.
        place: String,
        /// `a passphrase` or `a key`.
        kind: &'static str,
    },
    /// Argon2id refuses to work.
    #[error("the passphrase cannot be stretched: {0}")]
    Argon2(String),
    /// The AEAD refuses to work.
    #[error("the AEAD refuses its key")]
    Sealing,
    /// A record was changed, moved, or is not of this store.
    #[error("table {table}: a record is not authentic: the file was changed; restore a backup")]
    NotAuthentic {
        /// In which table.
        table: &'static str,
    },
    /// A record of another release.
    #[error("table {table}: record version {found} is not known to this build: use the release that wrote it")]
    RecordVersion {
        /// In which table.
        table: &'static str,
        /// Its first byte.
        found: u8,
    },
    /// A record that this build did not write.
    #[error("table {table}: {problem}: the file was changed; restore a backup")]
    Record {
        /// In which table.
        table: &'static str,
        /// What is wrong in it.
        problem: &'static str,
    },
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    Randomness,
    /// The database failed; after an I/O error it must be opened again.
    #[error("the database: {0}")]
    Database(Arc<redb::Error>),
    /// The disk failed, and the database could not be opened again yet.
    #[error("the disk failed, and the store waits for it to work again: make room on it, or repair it")]
    Failed,
    /// What is found is not what this process wrote: after a failure of the disk, or because the process was resumed from a picture of its
    /// memory while the disk had gone on.
    #[error(
        "{0}: it is not as this process left it (the disk failed, or memory was set back and the disk was not): restart this node"
    )]
    NotContinued(String),
    /// Work that waited for another thread's commit was lost when that thread died.
    #[error("the thread that was to commit this died; nothing is known of it: open the store again")]
    Lost,
    /// The backup ends early, or something follows it.
    #[error("the backup is {0}: take a complete copy")]
    Backup(&'static str),
}

impl StoreError {
    pub(crate) fn io(place: impl Into<String>, error: io::Error) -> Self {
        Self::Io { place: place.into(), error: Arc::new(error) }
    }

    pub(crate) fn database(error: impl Into<redb::Error>) -> Self {
        Self::Database(Arc::new(error.into()))
    }
}
