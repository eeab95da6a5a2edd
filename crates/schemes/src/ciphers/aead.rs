//! The AEADs that headers name. Sealing itself is in `theta-payload`.

use core::{fmt, str::FromStr};

/// An AEAD that seals payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Aead {
    /// RFC 8439; needs no special instructions of the processor.
    #[default]
    ChaCha20Poly1305,
    /// NIST SP 800-38D; several times faster where the processor has instructions for it.
    Aes256Gcm,
}

/// The text is not the name of an AEAD.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown AEAD {0:?}; the known ones are chacha20-poly1305 and aes-256-gcm")]
pub struct UnknownAead(pub String);

impl Aead {
    /// The name on the command line and in hashes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
            Self::Aes256Gcm => "aes-256-gcm",
        }
    }

    pub(super) const fn code(self) -> u8 {
        match self {
            Self::ChaCha20Poly1305 => 1,
            Self::Aes256Gcm => 2,
        }
    }

    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::ChaCha20Poly1305),
            2 => Some(Self::Aes256Gcm),
            _ => None,
        }
    }
}

impl fmt::Display for Aead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Aead {
    type Err = UnknownAead;

    fn from_str(name: &str) -> Result<Self, UnknownAead> {
        [Self::ChaCha20Poly1305, Self::Aes256Gcm]
            .into_iter()
            .find(|aead| aead.name() == name)
            .ok_or_else(|| UnknownAead(name.to_owned()))
    }
}
