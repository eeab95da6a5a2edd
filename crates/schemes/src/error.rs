//! What can go wrong, by whose fault it is: a request, shares, a result.

use theta_groups::DecodeError;
use theta_sharing::ShareIndex;

/// Why a statement cannot be answered: the caller's fault, never a party's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The key is for something else.
    #[error("this key is for {key}, not for {asked}: name a key whose purpose is {asked}")]
    Purpose {
        /// The key's purpose.
        key: crate::Purpose,
        /// What was asked.
        asked: crate::Purpose,
    },
    /// The bytes are not a ciphertext's header, or the header is damaged.
    #[error("not a ciphertext header: {0}")]
    Header(&'static str),
    /// The header has a format that this build does not know.
    #[error("ciphertext format {0} is not known to this build, which reads format 2 alone")]
    Version(u8),
    /// The ciphertext is encrypted to another key.
    #[error("the ciphertext is for key {ciphertext}, this key is {key}: name the key that it was encrypted to")]
    OtherKey {
        /// Abbreviated id in the ciphertext.
        ciphertext: String,
        /// Abbreviated id of the key asked for.
        key: String,
    },
    /// The ciphertext fails its validity proof.
    #[error("the ciphertext is not valid: it was changed after encryption, or its label was")]
    InvalidCiphertext,
    /// The scheme signs messages alone.
    #[error(
        "this key signs messages and no digests: its scheme does not begin by hashing the message, so that a digest signed in \
         its place would be another message to every verifier; RSA and ECDSA keys (sh00-..., ecdsa-...) sign digests"
    )]
    NoDigests,
    /// Not as long as a digest.
    #[error("a digest by {name} has {expected} bytes, this one has {got}")]
    DigestLength {
        /// The hash function.
        name: &'static str,
        /// How long its digests are.
        expected: usize,
        /// How long this is.
        got: usize,
    },
    /// Larger than the scheme takes.
    #[error("{what} of {got} bytes is over the limit of {limit}")]
    TooLarge {
        /// Which part.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
        /// Its size in bytes.
        got: usize,
    },
}

/// Why shares did not give a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CombineError {
    /// There are fewer than k shares.
    #[error("{got} shares are not enough, it takes {needed}")]
    TooFew {
        /// k.
        needed: usize,
        /// How many there are.
        got: usize,
    },
    /// There are two shares of one party.
    #[error("two shares of party {0}")]
    Duplicate(ShareIndex),
    /// A share is of a party that the key does not have.
    #[error("party {0} has no share of this key")]
    UnknownParty(ShareIndex),
    /// The combined result is false: at least one share is, or (for ciphers) the encryptor lied.
    #[error(
        "the combined result is not valid: at least one share is false; shares with proofs would tell which, bare ones cannot"
    )]
    ResultInvalid,
}

/// Why a signature or coin is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The bytes are not an encoding of a result.
    #[error("malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// The result does not verify.
    #[error("does not verify under this key")]
    Invalid,
    /// The higher of the two s, where the lower counts alone.
    #[error(
        "s is over half of the group's order: signatures of this suite have the lower of the two, as Bitcoin and Ethereum demand \
         it; q - s verifies if the rest is right"
    )]
    HighS,
}
