//! The parts of keys as bytes, for all file formats, and keys from their parts.

use core::fmt;

use theta_groups::DecodeError;
use theta_sharing::{EncodedKey, ShareIndex, Threshold};

use super::PublicKeyError;
use crate::Suite;

/// The kind of a key, which decides which parts it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Elements of a prime-order group.
    Curve,
    /// Numbers modulo N.
    Rsa,
}

/// The public material of a key in its canonical encodings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicParts {
    /// A key on a curve: group elements.
    Curve(EncodedKey),
    /// An RSA key, whose exponent is always [`PUBLIC_EXPONENT`](crate::signatures::sh00::PUBLIC_EXPONENT).
    Rsa {
        /// k and n.
        threshold: Threshold,
        /// N, big-endian, without leading zeros.
        modulus: Vec<u8>,
        /// v, in as many bytes as N has.
        verification_base: Vec<u8>,
        /// v_1 to v_n, in as many bytes as N has.
        verification_keys: Vec<Vec<u8>>,
    },
}

/// One of [`PublicParts`], for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// h.
    PublicKey,
    /// N.
    Modulus,
    /// v.
    VerificationBase,
    /// h_i or v_i of party i, counted from 1.
    VerificationKey(usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PublicKey => f.write_str("public_key"),
            Self::Modulus => f.write_str("modulus"),
            Self::VerificationBase => f.write_str("verification_base"),
            Self::VerificationKey(party) => write!(f, "verification_keys, entry {party}"),
        }
    }
}

/// Why parts are not a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// The bytes of a part do not encode what they should.
    #[error("{part}: {error}")]
    Encoding {
        /// The part.
        part: Part,
        /// What is wrong with its bytes.
        error: DecodeError,
    },
    /// The parts do not belong together.
    #[error(transparent)]
    Parts(#[from] PublicKeyError),
    /// The parts are of another kind of key than the suite's.
    #[error("these are the parts of another kind of key than those of {0}")]
    Kind(Suite),
}

/// Why bytes are not a party's share of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// The bytes are not a secret of this kind of key.
    #[error(transparent)]
    Encoding(DecodeError),
    /// The secret does not fit the party's verification key, or there is no such party.
    #[error("the secret does not fit the verification key of party {0}")]
    Mismatch(ShareIndex),
}

impl Suite {
    /// The kind of this suite's keys.
    #[must_use]
    pub fn key_kind(self) -> KeyKind {
        self.ops().key_kind()
    }

    /// Length in bytes of a secret key in its standard encoding; `None` for RSA, whose keys differ in size.
    #[must_use]
    pub fn secret_key_len(self) -> Option<usize> {
        self.ops().secret_key_len()
    }
}
