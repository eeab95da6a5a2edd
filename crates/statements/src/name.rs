//! Names of clients, approvers, groups and rules.

use core::{fmt, str::FromStr};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The longest name, in bytes.
pub const MOST_NAME: usize = 64;

/// A name: 1 to 64 of `a-z A-Z 0-9 . _ -`, the first a letter or digit. Clones share one buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// The text is not a name; at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a name; use 1 to 64 characters of a-z A-Z 0-9 . _ - and begin with a letter or digit")]
pub struct NameError(pub String);

impl Name {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins && text.len() <= MOST_NAME && text.bytes().all(is_name_byte) {
            Ok(Self(text.into()))
        } else {
            Err(NameError(text.chars().take(80).collect()))
        }
    }
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_names() {
        for good in ["a", "0", "Root-2026.v1_x", &"k".repeat(64)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for bad in ["", "-a", ".a", "a/b", "a b", "a*", "a\0", "é", &"k".repeat(65)] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
    }
}
