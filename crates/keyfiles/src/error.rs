//! Errors of key files, in one line each.

use theta_groups::DecodeError;
use theta_schemes::keys::{KeyNameError, PublicKeyError};
use theta_schemes::{Suite, UnknownSuite};
use theta_sharing::ShareIndex;

/// Why a text is not a key file: what is wrong, where, and what would be right. Never shows a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// The text is not TOML, or has other fields than a key file.
    #[error("line {line}: {problem}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// The format is of another release.
    #[error("format: {0} is not known to this build, which reads format 1: use a newer release")]
    Format(u64),
    /// The name is not a key's name.
    #[error("name: {0}")]
    Name(#[from] KeyNameError),
    /// This build does not know the suite.
    #[error("suite: {0}")]
    Suite(#[from] UnknownSuite),
    /// Not 1 <= k <= n.
    #[error("k, n: {0}")]
    Threshold(String),
    /// A field is not hexadecimal.
    #[error("{field}: not hexadecimal digits in pairs")]
    Hex {
        /// The field's name, with its position in a list.
        field: String,
    },
    /// The bytes of a field do not encode what the field should hold.
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
        /// The id in the file.
        found: String,
        /// The id of the public key.
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
    /// The index is not one of 1 to n.
    #[error("index: {found} is not a party of this key: it has parties 1 to {n}")]
    Index {
        /// The index in the file.
        found: u64,
        /// How many parties there are.
        n: u16,
    },
    /// The secret is not the one of the verification key.
    #[error("secret: does not fit the verification key of party {0}: take the file as the dealer wrote it")]
    ShareMismatch(ShareIndex),
}
