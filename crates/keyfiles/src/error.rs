//! What can be wrong with a key's file, in one line each.

use theta_groups::DecodeError;
use theta_schemes::keys::{KeyNameError, PublicKeyError};
use theta_schemes::{Suite, UnknownSuite};
use theta_sharing::ShareIndex;

/// Why a text is not a key file: what is wrong, where, and what would be right. Never shows a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// Not TOML, or not the fields that a key file has.
    #[error("line {line}: {problem}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A format of another release.
    #[error("format: {0} is not known to this build, which reads format 1: use a newer release")]
    Format(u64),
    /// The name is not one.
    #[error("name: {0}")]
    Name(#[from] KeyNameError),
    /// The suite is not known.
    #[error("suite: {0}")]
    Suite(#[from] UnknownSuite),
    /// k and n do not fit.
    #[error("k, n: {0}")]
    Threshold(String),
    /// A field that should be hexadecimal.
    #[error("{field}: not hexadecimal digits in pairs")]
    Hex {
        /// The field's name, with its position in a list.
        field: String,
    },
    /// Bytes that are not what the field holds.
    #[error("{field}: {error}")]
    Encoding {
        /// The field's name, with its position in a list.
        field: String,
        /// Why not.
        error: DecodeError,
    },
    /// The parts do not belong together.
    #[error(transparent)]
    Parts(#[from] PublicKeyError),
    /// The fields are those of another kind of key.
    #[error("suite: the fields are not those of a key of {0}: take the file as the dealer wrote it")]
    Kind(Suite),
    /// The id is not that of the public key.
    #[error("key_id: is {found}, but the public key's is {expected}: take the file as the dealer wrote it")]
    KeyId {
        /// In the file.
        found: String,
        /// By computation.
        expected: String,
    },
    /// The share is of another key.
    #[error(
        "the share is of key {share} ({share_suite}), the public key is {public} ({public_suite}): pair the files of one key"
    )]
    OtherKey {
        /// The share's key id, abbreviated.
        share: String,
        /// The share's suite.
        share_suite: String,
        /// The public key's id, abbreviated.
        public: String,
        /// The public key's suite.
        public_suite: String,
    },
    /// There is no such party.
    #[error("index: {found} is not a party of this key: it has parties 1 to {n}")]
    Index {
        /// In the file.
        found: u64,
        /// How many parties there are.
        n: u16,
    },
    /// The secret is not the one of the verification key.
    #[error("secret: does not fit the verification key of party {0}: take the file as the dealer wrote it")]
    ShareMismatch(ShareIndex),
}
