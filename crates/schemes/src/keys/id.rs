//! The ids of keys.

use core::fmt;

use theta_groups::Transcript;

use crate::Suite;

/// The id of a key: a hash of its suite and public key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; 32]);

impl KeyId {
    /// The id of the key with this encoded public key.
    #[must_use]
    pub fn new(suite: Suite, public_key: &[u8]) -> Self {
        Self(
            Transcript::new("theta/key-id/v1")
                .with("suite", suite.name().as_bytes())
                .with("public key", public_key)
                .finish32(),
        )
    }

    /// An id that came from outside.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 8 hexadecimal digits, for messages to people.
    #[must_use]
    pub fn abbreviated(&self) -> String {
        hex::encode(self.0.split_at(4).0)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
