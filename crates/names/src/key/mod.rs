//! Names of keys, their suites and states.

mod delivery;
mod state;
mod suite_name;

use core::{fmt, str::FromStr};

pub use self::{
    delivery::{Delivery, DeliveryError},
    state::{KeyState, Purpose},
    suite_name::{SuiteName, SuiteNameError},
};
use crate::{Version, VersionError};

/// The name of a key: 1 to 64 of `a-z`, `0-9`, `.`, `_`, `-`, the first a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyName(String);

/// The text is not a key's name; at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a key name: use 1 to 64 of a-z, 0-9, '.', '_', '-', the first a letter or digit")]
pub struct KeyNameError(pub String);

impl KeyName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyName {
    type Err = KeyNameError;

    fn from_str(name: &str) -> Result<Self, KeyNameError> {
        if is_plain(name) { Ok(Self(name.to_owned())) } else { Err(KeyNameError(name.chars().take(80).collect())) }
    }
}

/// Whether a name may stand in file names, in texts and in tables of the store.
pub(crate) fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 64
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|byte| plain(byte) || b"._-".contains(&byte))
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for KeyName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The sign between a key's name and its version.
const MARK: char = '@';
/// Stands before the version among the parameters of a request.
const DOMAIN: &[u8] = b"theta/version/v1\0";

/// A key, or one version of it: `files` or `files@2`. There is one text for each version: no signs, no leading zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRef {
    /// The key.
    pub name: KeyName,
    /// The version, if one is named.
    pub version: Option<Version>,
}

/// Not the name of a key or version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefError {
    /// The part before the @ is not a key's name.
    #[error(transparent)]
    Name(#[from] KeyNameError),
    /// The part after the @ is not a version; at most 20 characters of it.
    #[error("{0:?} is not a version: the version behind the @ of a key is a number from 1, as in files@2")]
    Version(String),
}

impl KeyRef {
    /// The parameters of a request, which change its result besides its statement: the version that is named, and the seed of a
    /// re-randomised key, if there is one. Signed requests cover them; approvals do not.
    #[must_use]
    pub fn parameters(&self, seed: &[u8]) -> Vec<u8> {
        self.version.map_or_else(|| seed.to_vec(), |version| [DOMAIN, &version.to_be_bytes(), seed].concat())
    }
}

impl FromStr for KeyRef {
    type Err = KeyRefError;

    fn from_str(text: &str) -> Result<Self, KeyRefError> {
        let Some((name, digits)) = text.split_once(MARK) else {
            return Ok(Self { name: text.parse()?, version: None });
        };
        let version = digits.parse().map_err(|VersionError(digits)| KeyRefError::Version(digits))?;
        Ok(Self { name: name.parse()?, version: Some(version) })
    }
}

impl fmt::Display for KeyRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            None => fmt::Display::fmt(&self.name, f),
            Some(version) => write!(f, "{}{MARK}{version}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_names() {
        for good in ["a", "0", "root-2026.v1_x", &"k".repeat(64)] {
            assert_eq!(good.parse::<KeyName>().unwrap().as_str(), good);
        }
        for bad in ["", "A", "-a", ".a", "a/b", "a b", "a\0", "é", &"k".repeat(65)] {
            assert!(bad.parse::<KeyName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn keys_may_name_their_version_in_one_way() {
        let key: KeyRef = "files@12".parse().unwrap();
        assert_eq!((key.name.as_ref(), key.version, key.to_string().as_str()), ("files", Version::new(12), "files@12"));
        assert_eq!("files".parse::<KeyRef>().unwrap().to_string(), "files");
        for bad in [
            "",
            "@1",
            "files@",
            "files@0",
            "files@01",
            "files@+1",
            "files@x",
            "files@1@2",
            "Files",
            "files@4294967296",
            "../x",
        ] {
            assert!(bad.parse::<KeyRef>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_version_is_part_of_what_a_client_signs() {
        let parameters = |key: &str, seed: &[u8]| key.parse::<KeyRef>().unwrap().parameters(seed);
        assert_eq!(parameters("files", b""), b"");
        assert_eq!(parameters("files", b"seed"), b"seed");
        assert_eq!(parameters("files@2", b"seed"), b"theta/version/v1\0\0\0\0\x02seed");
    }
}
