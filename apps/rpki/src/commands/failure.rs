//! Why a command fails: in one line, what was wrong, where, and what would be right.

use std::{io, path::PathBuf};

use theta_rpki::{
    overrides::OverrideError, registry::RegistryError, signatures::KeySetError, statements::StatementError,
};
use theta_statements::SigningKeyError;

/// The most bytes of a file that is read.
pub(crate) const MOST_FILE: u64 = 64 << 20;

/// Why a command fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file or a folder cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// A file is too long to be one of these.
    #[error("{} has more than {MOST_FILE} bytes", .0.display())]
    Long(PathBuf),
    /// There is a file already where a new one was to be.
    #[error("{} exists already, and is left as it is: name another file with --out", .0.display())]
    Exists(PathBuf),
    /// The registry's data are wrong.
    #[error("{}: {reason}", path.display())]
    Registry {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: RegistryError,
    },
    /// A statement is wrong.
    #[error("{}: {reason}", path.display())]
    Statement {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: StatementError,
    },
    /// A member states something about what it does not hold.
    #[error("{reason}; it holds {held}")]
    Overclaim {
        /// What it states.
        reason: StatementError,
        /// Its resources.
        held: String,
    },
    /// An override is wrong.
    #[error("{}: {reason}", path.display())]
    Override {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: OverrideError,
    },
    /// A file is no private key.
    #[error("{}: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What would be one.
        reason: SigningKeyError,
    },
    /// Others can read a private key.
    #[error("{} is a secret, and others can read or change it: chmod 600 it, and make a new one if somebody may have read it", .0.display())]
    Exposed(PathBuf),
    /// No key could be made.
    #[error("the key cannot be made: {0}")]
    Make(String),
    /// The key is not one of those that sign.
    #[error("nothing was signed: {key} is no key of {of} in the registry's data")]
    Foreign {
        /// The public key.
        key: String,
        /// Whose keys sign.
        of: String,
    },
    /// The key has signed before.
    #[error("{} has a signature of {key} already", path.display())]
    Repeated {
        /// The file.
        path: PathBuf,
        /// The public key.
        key: String,
    },
    /// A signature at the end of the file would not be read.
    #[error("{}: no signature can be added at its end: write each as [[signature]] with key and signature", .0.display())]
    Append(PathBuf),
    /// There is no higher number.
    #[error("no number is above the highest of {0}'s statements: --number chooses one")]
    Number(String),
    /// There is no terminal on which to ask.
    #[error("nobody is there to be asked: add --yes if this is meant")]
    Unasked,
    /// The answer was not yes.
    #[error("nothing was signed")]
    Declined,
    /// Keys make no set.
    #[error(transparent)]
    Keys(#[from] KeySetError),
    /// A file cannot be written as TOML.
    #[error(transparent)]
    Toml(#[from] toml::ser::Error),
    /// The answer cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// Files count for nothing.
    #[error("files that count for nothing, as said above: {0}")]
    Wrong(usize),
}
