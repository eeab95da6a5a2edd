//! Nodes' public keys for ceremonies.

use core::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

/// The length of a key in bytes.
const LEN: usize = 32;

/// A node's public key for ceremonies, as in the group file: its statements verify under it. Nothing is encrypted to
/// it. The crates above interpret the bytes. Text form: 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CeremonyKey([u8; LEN]);

impl CeremonyKey {
    /// The key.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; LEN] {
        &self.0
    }
}

impl From<[u8; LEN]> for CeremonyKey {
    fn from(key: [u8; LEN]) -> Self {
        Self(key)
    }
}

/// The text is not a ceremony key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a ceremony key; it is written as 64 hexadecimal digits")]
pub struct CeremonyKeyError;

impl FromStr for CeremonyKey {
    type Err = CeremonyKeyError;

    fn from_str(text: &str) -> Result<Self, CeremonyKeyError> {
        let mut key = [0; LEN];
        hex::decode_to_slice(text, &mut key).map_err(|_| CeremonyKeyError)?;
        Ok(Self(key))
    }
}

impl fmt::Display for CeremonyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for CeremonyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for CeremonyKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
