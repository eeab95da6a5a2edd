//! Why a store does not open, read or write. Each text is one line: what is wrong, where, and what to do.

use std::{io, sync::Arc};

/// An error below the meaning of a record: of the disk, the file, the sealing key, or a record that does not decode. It
/// never shows a secret.
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
    #[error(
        "{0}: there is no store here: correct the path, or bring one back (theta keys restore from a backup; theta node rejoin without one)"
    )]
    Missing(String),
    /// A store is there already.
    #[error("{0}: exists already and is not overwritten: choose another path")]
    Exists(String),
    /// A process died while it created the store, which never held anything.
    #[error(
        "{0}: the creation of this store was never finished, and nothing was kept in it: remove it and create it again"
    )]
    Unfinished(String),
    /// The file is not a store.
    #[error("{0}: is not a store")]
    NotAStore(String),
    /// The database cannot read the file.
    #[error("{0}: is damaged: restore a backup")]
    Damaged(String),
    /// Another process has the store open.
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
    /// Others than its owner may replace the file.
    #[error("{place}: mode {mode:03o} lets others replace files in this folder: run `chmod go-w {place}`")]
    FolderMode {
        /// Which folder.
        place: String,
        /// Its permission bits.
        mode: u32,
    },
    /// The file has a format of another release.
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
    /// The sealing key does not open the store, or its head was changed; the two cases cannot be told apart.
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
    /// Argon2id failed.
    #[error("the passphrase cannot be stretched: {0}")]
    Argon2(String),
    /// The AEAD refused its key.
    #[error("the AEAD refuses its key")]
    Sealing,
    /// A record was changed, moved, or belongs to another store.
    #[error("table {table}: a record is not authentic: the file was changed; restore a backup")]
    NotAuthentic {
        /// In which table.
        table: &'static str,
    },
    /// A record has the version of another release.
    #[error("table {table}: record version {found} is not known to this build: use the release that wrote it")]
    RecordVersion {
        /// In which table.
        table: &'static str,
        /// Its first byte.
        found: u8,
    },
    /// An authentic record does not decode: this build did not write it.
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
    /// There is no room to write what it takes, even to remove something.
    #[error(
        "{0}: its file system is full: make some MiB free there; what the audit log takes is removed with `theta audit export --dir` and `theta audit prune --dir`"
    )]
    Full(String),
    /// The disk failed, and the database could not be opened again yet.
    #[error("the disk failed, and the store waits for it to work again: make room on it, or repair it")]
    Failed,
    /// The file is not what this process wrote: after a failure of the disk, or because the process was resumed from an
    /// image of its memory while the file had changed.
    #[error(
        "{0}: it is not as this process left it (the disk failed, or memory was set back and the disk was not): restart this node"
    )]
    NotContinued(String),
    /// The thread that was to commit this change died.
    #[error("the thread that was to commit this died; nothing is known of it: open the store again")]
    Lost,
    /// The backup is cut short, or has bytes behind its end.
    #[error("the backup is {0}: take a complete copy")]
    Backup(&'static str),
}

impl StoreError {
    pub(crate) fn io(place: impl Into<String>, error: io::Error) -> Self {
        Self::Io { place: place.into(), error: Arc::new(error) }
    }

    /// The same, or [`StoreError::Full`] if there was no room.
    pub(crate) fn or_full(self, place: &str) -> Self {
        if self.is_full() { Self::Full(place.to_owned()) } else { self }
    }

    /// Whether there was no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let full = |error: &io::Error| matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge);
        match self {
            Self::Full(_) => true,
            Self::Io { error, .. } => full(error),
            Self::Database(error) => matches!(&**error, redb::Error::Io(error) if full(error)),
            _ => false,
        }
    }

    pub(crate) fn database(error: impl Into<redb::Error>) -> Self {
        Self::Database(Arc::new(error.into()))
    }
}
