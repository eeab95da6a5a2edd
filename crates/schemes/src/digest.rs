//! What schemes hash messages with before anything else, where that is all that they see of a message: then the digest can be
//! signed for the message, however long that is.
//!
//! SH00 is such a scheme, as its encodings begin with the digest (RFC 8017, section 9), and so is ECDSA (FIPS 186-5, section 6.4.1).
//! FROST and BLS are not: Ed25519
//! and Ed448 hash the message twice, behind other things, and BLS maps the whole message to the curve. To sign a digest as if it
//! were the message is another scheme there, whose signatures standard verifiers take for other messages.

use core::fmt;

use sha2::{Digest as _, Sha256, Sha512};

use crate::RequestError;

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageDigest {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// A message as far as it has been hashed.
#[derive(Clone, Debug)]
pub enum MessageHasher {
    /// By SHA-256.
    Sha256(Sha256),
    /// By SHA-512.
    Sha512(Sha512),
}

impl MessageDigest {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// As people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// How long digests are, in bytes.
    #[must_use]
    pub const fn output_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// Refuses what is not as long as a digest.
    pub(crate) const fn check_len(self, digest: &[u8]) -> Result<(), RequestError> {
        let (expected, got) = (self.output_len(), digest.len());
        if got == expected { Ok(()) } else { Err(RequestError::DigestLength { name: self.name(), expected, got }) }
    }

    /// The digest of a message.
    #[must_use]
    pub fn of(self, message: &[u8]) -> Vec<u8> {
        let mut hasher = self.hasher();
        hasher.update(message);
        hasher.finish()
    }

    /// Begins a message that comes in pieces.
    #[must_use]
    pub fn hasher(self) -> MessageHasher {
        match self {
            Self::Sha256 => MessageHasher::Sha256(Sha256::new()),
            Self::Sha512 => MessageHasher::Sha512(Sha512::new()),
        }
    }
}

impl fmt::Display for MessageDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl MessageHasher {
    /// The next bytes of the message.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// The digest.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        match self {
            Self::Sha256(hasher) => hasher.finalize().to_vec(),
            Self::Sha512(hasher) => hasher.finalize().to_vec(),
        }
    }
}
