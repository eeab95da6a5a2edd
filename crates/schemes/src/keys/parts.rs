//! The parts of keys as bytes, for all file formats; their binary form; keys from their parts.

use core::fmt;

use theta_groups::DecodeError;
use theta_names::codec::{self, Reader, Writer};
use theta_sharing::{EncodedKey, ShareIndex, Threshold};

use super::{KeyId, PublicKeyError};
use crate::{Suite, UnknownSuite};

/// The version of the binary form of public material. No text begins with this byte.
const FORMAT: u8 = 1;

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

impl PublicParts {
    /// k and n, as they are named: that there are so many shares of one key is for [`AnyPublicKey::from_bytes`](super::AnyPublicKey::from_bytes) to say.
    #[must_use]
    pub const fn threshold(&self) -> Threshold {
        match self {
            Self::Curve(key) => key.threshold,
            Self::Rsa { threshold, .. } => *threshold,
        }
    }

    /// h, or N of an RSA key: with the suite it tells keys apart without arithmetic.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        match self {
            Self::Curve(key) => &key.public_key,
            Self::Rsa { modulus, .. } => modulus,
        }
    }

    /// The binary form of the public material of a key of `suite` (`spec/keys.md`): format (1), name of the suite behind its length
    /// (1); then on curves what [`EncodedKey::encode`] writes, for RSA k (2), n (2), length of N (2), N, v, v_1 to v_n.
    #[must_use]
    pub fn encode(&self, suite: Suite) -> Vec<u8> {
        let writer = Writer::new(FORMAT).word(suite.name());
        match self {
            Self::Curve(key) => writer.raw(&key.encode()),
            Self::Rsa { threshold, modulus, verification_base, verification_keys } => {
                let len = u16::try_from(modulus.len()).unwrap_or(u16::MAX);
                let writer = writer.u16(threshold.k()).u16(threshold.n()).u16(len).raw(modulus).raw(verification_base);
                verification_keys.iter().fold(writer, |writer, key| writer.raw(key))
            }
        }
        .finish()
    }

    /// Reads what [`PublicParts::encode`] wrote. This does not check that the parts are of a key: see
    /// [`AnyPublicKey::from_bytes`](super::AnyPublicKey::from_bytes).
    ///
    /// # Errors
    /// [`PublicBytesError`]: another format, a suite that this build does not have, or fields that no writer writes.
    pub fn decode(bytes: &[u8]) -> Result<(Suite, Self), PublicBytesError> {
        let mut reader = Reader::new(bytes);
        let format = reader.u8()?;
        if format != FORMAT {
            return Err(PublicBytesError::Format(format));
        }
        let suite: Suite = reader.word()?.parse()?;
        let parts = match suite.key_kind() {
            KeyKind::Curve => Self::Curve(EncodedKey::decode(reader.rest())?),
            KeyKind::Rsa => read_rsa(reader)?,
        };
        Ok((suite, parts))
    }
}

/// Reads the fields of an RSA key to their end.
fn read_rsa(mut reader: Reader<'_>) -> Result<PublicParts, codec::DecodeError> {
    let (k, n, len) = (reader.u16()?, reader.u16()?, usize::from(reader.u16()?));
    let threshold = Threshold::new(k, n).map_err(|_| codec::DecodeError::Field("a threshold"))?;
    if len == 0 {
        // With numbers of no bytes, a short input would become n numbers.
        return Err(codec::DecodeError::Field("the length of a modulus"));
    }
    let (modulus, verification_base) = (reader.take(len)?.to_vec(), reader.take(len)?.to_vec());
    let verification_keys = (0..n).map(|_| reader.take(len).map(<[u8]>::to_vec)).collect::<Result<_, _>>()?;
    reader.end(PublicParts::Rsa { threshold, modulus, verification_base, verification_keys })
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

/// Why bytes are not the binary form of a key's public material.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicBytesError {
    /// They begin with another format.
    #[error("it is in format {0}, and this build reads format 1: use the release that wrote it")]
    Format(u8),
    /// This build does not know the suite.
    #[error(transparent)]
    Suite(#[from] UnknownSuite),
    /// The fields are not what a writer writes.
    #[error(transparent)]
    Fields(#[from] codec::DecodeError),
    /// The parts are not those of a key of the suite.
    #[error(transparent)]
    Parts(#[from] PartsError),
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

/// Why bytes are not the binary form of a party's share of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareBytesError {
    /// They begin with another format.
    #[error("it is in format {0}, and this build reads format 1: use the release that wrote it")]
    Format(u8),
    /// There are too few bytes, or too many.
    #[error("it has {got} bytes, and a share of this key has {expected}")]
    Length {
        /// How many a share of the key has.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// It is of another key.
    #[error("it is a share of the key {}, and not of {}", .found.abbreviated(), .expected.abbreviated())]
    OtherKey {
        /// Of which key it is.
        found: KeyId,
        /// Of which it would have to be.
        expected: KeyId,
    },
    /// The key has no such party.
    #[error("it is the share of party {0}, which the key does not have")]
    Index(u16),
    /// The secret is none, or not the party's.
    #[error(transparent)]
    Share(#[from] ShareError),
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
