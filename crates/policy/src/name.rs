//! Names of clients, approvers, keys and rules, and patterns of key names.

use core::{fmt, str::FromStr};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The longest name, in bytes.
pub const MOST_NAME: usize = 64;

/// A name: 1 to 64 of `a-z A-Z 0-9 . _ -`, the first a letter or digit. Clones share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// Not a name.
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

/// Which keys a rule is about: `root` is that key, `mail-*` every key whose name begins with `mail-`, `*` every key, and
/// also what is asked without a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    text: Box<str>,
    prefix: bool,
}

/// Not a pattern of key names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no key and no beginning of keys; write a key's name in lower case, or its beginning and one * at the end"
)]
pub struct KeyPatternError(pub String);

impl KeyPattern {
    /// Whether the pattern is about this key; `None` is a request that names no key.
    #[must_use]
    pub fn matches(&self, key: Option<&str>) -> bool {
        match (key, self.prefix) {
            (Some(key), true) => key.starts_with(&*self.text),
            (Some(key), false) => key == &*self.text,
            (None, prefix) => prefix && self.text.is_empty(),
        }
    }
}

impl FromStr for KeyPattern {
    type Err = KeyPatternError;

    fn from_str(pattern: &str) -> Result<Self, KeyPatternError> {
        let (text, prefix) = pattern.strip_suffix('*').map_or((pattern, false), |text| (text, true));
        // No key has upper-case letters: such a pattern would match none.
        let possible = text.parse::<Name>().is_ok() && !text.bytes().any(|byte| byte.is_ascii_uppercase());
        if possible || (prefix && text.is_empty()) {
            Ok(Self { text: text.into(), prefix })
        } else {
            Err(KeyPatternError(pattern.chars().take(80).collect()))
        }
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.prefix { "*" } else { "" })
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

    #[test]
    fn patterns_match_what_they_say() {
        let matches = |pattern: &str, key| pattern.parse::<KeyPattern>().unwrap().matches(key);
        assert!(matches("root", Some("root")) && !matches("root", Some("root2")) && !matches("root", None));
        assert!(matches("mail-*", Some("mail-1")) && matches("mail-*", Some("mail-")));
        assert!(!matches("mail-*", Some("mail")) && !matches("mail-*", None));
        assert!(matches("*", Some("anything")) && matches("*", None));
        for bad in ["", "**", "a*b", "*a", "-*", "a b*", " *", "Root"] {
            assert!(bad.parse::<KeyPattern>().is_err(), "{bad:?}");
        }
    }
}
