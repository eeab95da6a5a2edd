//! What can be wrong with a key's name, parts or file, in one line each.

use theta_groups::DecodeError;
use theta_names::KeyNameError;
use theta_sharing::ShareIndex;

use crate::{Suite, UnknownSuite};

/// Why parts are not a key's public material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// Not one verification key for each party.
    #[error("there are {got} verification keys: it takes {expected}, one for each party")]
    Count {
        /// n.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A key that everybody knows the secret of.
    #[error("the public key or a verification key is the identity element: take the file as the dealer wrote it")]
    Identity,
    /// The proof of possession is missing, false, or given for a scheme that has none.
    #[error("proof_of_possession does not fit the public key: take the file as the dealer wrote it")]
    Possession,
    /// The verification keys are not of a sharing of this public key with this k.
    #[error("the verification keys do not belong to the public key with this k: take the file as the dealer wrote it")]
    Inconsistent,
    /// An RSA key that no dealer makes.
    #[error("{0}: take the file as the dealer wrote it")]
    Rsa(&'static str),
}

/// Why bytes are not a key on a curve, or a share of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodedKeyError {
    /// Bytes that are no element or scalar of the group.
    #[error(transparent)]
    Encoding(#[from] DecodeError),
    /// The parts do not belong together.
    #[error(transparent)]
    Parts(#[from] PublicKeyError),
    /// The share is not the one behind the verification key.
    #[error("the share does not fit the verification key of party {0}")]
    Share(ShareIndex),
    /// No key on a curve.
    #[error("keys of suite {0} are RSA keys")]
    Rsa(Suite),
}

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
