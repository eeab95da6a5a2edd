//! What a threshold of the registries' operators permits though an agent refuses it: one object, by its digest, with a reason.

use serde::Deserialize;

use crate::{registry::Registry, signatures::Signed};

/// What an operator's signature is of begins with this.
const DOMAIN: &[u8] = b"theta/rpki/override/v1";
/// The longest reason, in bytes.
const MOST_REASON: usize = 200;

/// Why a file is no override.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// It is not such a file.
    #[error("{0}")]
    Text(String),
    /// The registry knows no operators.
    #[error("the registry's data name no operators, so nothing is overridden")]
    NoOperators,
    /// Too few operators have signed.
    #[error("{count} of {need} operators have signed")]
    Signatures {
        /// How many have.
        count: usize,
        /// How many have to.
        need: usize,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OverrideText {
    digest: String,
    key: String,
    reason: String,
    until: i64,
    #[serde(default)]
    signature: Vec<Signed>,
}

/// An override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// SHA-256 of the bytes that are to be signed.
    pub digest: [u8; 32],
    /// The name of the key that is to sign them.
    pub key: String,
    /// Why, for everybody who reads the log.
    pub reason: String,
    /// When it ends, in seconds since 1970.
    pub until: i64,
}

impl Override {
    /// The bytes that an operator signs (`spec/rpki.md`).
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut bytes = [DOMAIN, &[0]].concat();
        for part in [&self.digest[..], self.key.as_bytes(), self.reason.as_bytes(), &self.until.to_be_bytes()] {
            bytes.extend(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }

    /// Reads a file and checks that enough operators have signed it.
    ///
    /// # Errors
    /// [`OverrideError`].
    pub fn read(text: &str, registry: &Registry) -> Result<Self, OverrideError> {
        let OverrideText { digest: digits, key, reason, until, signature } =
            toml::from_str(text).map_err(|error| OverrideError::Text(error.message().to_owned()))?;
        let mut digest = [0; 32];
        hex::decode_to_slice(&digits, &mut digest)
            .map_err(|_| OverrideError::Text("its digest is no SHA-256 in hexadecimal digits".to_owned()))?;
        if reason.is_empty() || reason.len() > MOST_REASON || reason.chars().any(char::is_control) {
            return Err(OverrideError::Text(format!("its reason is a line of 1 to {MOST_REASON} bytes")));
        }
        let read = Self { digest, key, reason, until };
        let operators = registry.operators.as_ref().ok_or(OverrideError::NoOperators)?;
        let (count, need) = (operators.count(&read.signed_bytes(), &signature), operators.need());
        if count < need { Err(OverrideError::Signatures { count, need }) } else { Ok(read) }
    }

    /// Whether it permits this, now.
    #[must_use]
    pub fn permits(&self, key: &str, digest: &[u8; 32], now: i64) -> bool {
        self.key == key && self.digest == *digest && now < self.until
    }
}
