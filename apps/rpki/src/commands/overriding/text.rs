//! An override's file as it is written. Whether it is one the library decides, which reads it with the registry's data.

use serde::{Deserialize, Serialize};
use theta_rpki::{
    overrides::{Override, OverrideError},
    signatures::Signed,
};

use super::super::failure::Failure;

/// An override without its signatures.
#[derive(Debug, Serialize)]
pub(in super::super) struct Text {
    pub(in super::super) digest: String,
    pub(in super::super) key: String,
    pub(in super::super) reason: String,
    pub(in super::super) until: i64,
}

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    digest: String,
    key: String,
    reason: String,
    until: i64,
    #[serde(default)]
    signature: Vec<Signed>,
}

/// A digest in hexadecimal digits.
pub(super) fn digest(digits: &str) -> Result<[u8; 32], String> {
    let mut digest = [0; 32];
    let read = hex::decode_to_slice(digits, &mut digest);
    read.map_err(|_| "a digest is SHA-256, in 64 hexadecimal digits".to_owned()).map(|()| digest)
}

impl Text {
    /// What the file of an override says.
    pub(in super::super) fn of(what: &Override) -> Self {
        let Override { digest, key, reason, until } = what.clone();
        Self { digest: hex::encode(digest), key, reason, until }
    }

    /// Reads a file: what it permits, and who has signed it.
    pub(super) fn parse(text: &str) -> Result<(Override, Vec<Signed>), OverrideError> {
        let FileText { digest: digits, key, reason, until, signature } =
            toml::from_str(text).map_err(|error| OverrideError::Text(error.message().to_owned()))?;
        let digest = digest(&digits).map_err(OverrideError::Text)?;
        Ok((Override { digest, key, reason, until }, signature))
    }

    /// The file, to which signatures are added.
    pub(super) fn to_toml(&self) -> Result<String, Failure> {
        Ok(toml::to_string(self)?)
    }
}
