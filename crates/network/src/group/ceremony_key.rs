//! What a node proves itself with in ceremonies.

use core::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

/// The length of a key in bytes.
const LEN: usize = 64;

/// A node's public keys for ceremonies, as they stand in the group file: the key that its statements verify under, then
/// the key that shares are encrypted to, 32 bytes each. What they mean is for the floors above. Text form: 128 lower-case
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CeremonyKey([u8; LEN]);

impl CeremonyKey {
    /// The two keys.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; LEN] {
        &self.0
    }
}

impl From<[u8; LEN]> for CeremonyKey {
    fn from(keys: [u8; LEN]) -> Self {
        Self(keys)
    }
}

/// Not a ceremony key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a ceremony key; it is written as 128 hexadecimal digits")]
pub struct CeremonyKeyError;

impl FromStr for CeremonyKey {
    type Err = CeremonyKeyError;

    fn from_str(text: &str) -> Result<Self, CeremonyKeyError> {
        let mut keys = [0; LEN];
        hex::decode_to_slice(text, &mut keys).map_err(|_| CeremonyKeyError)?;
        Ok(Self(keys))
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
