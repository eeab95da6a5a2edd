//! Why keys cannot be used, each in one line: what is wrong, where, and what would be right.

use std::{io, path::PathBuf};

use theta_custody::KeyTableError;
use theta_schemes::keys::{KeyFileError, KeyName, KeyNameError};

/// Why a folder of keys cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KeyFilesError {
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
    /// The keys do not go together.
    #[error(transparent)]
    Table(#[from] KeyTableError),
}
