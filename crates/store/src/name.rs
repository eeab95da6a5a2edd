//! Names of keys, rules and policies.

use core::{fmt, str::FromStr};

/// The name of a key, a rule or a policy: 1 to 64 of `a-z`, `0-9`, `.`, `_`, `-`, the first a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// Not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a name: use 1 to 64 of a-z, 0-9, '.', '_', '-', the first a letter or digit")]
pub struct NameError(pub String);

impl Name {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name and a byte that no name contains, so that no name is the beginning of another in a table's keys.
    pub(crate) fn terminated(&self) -> Vec<u8> {
        let mut bytes = self.0.as_bytes().to_vec();
        bytes.push(0);
        bytes
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let good = name.len() <= 64
            && name.bytes().next().is_some_and(plain)
            && name.bytes().all(|byte| plain(byte) || b"._-".contains(&byte));
        if good { Ok(Self(name.to_owned())) } else { Err(NameError(name.chars().take(80).collect())) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn only_plain_names_are_names() {
        for good in ["a", "0", "root-2026.v1_x", &"k".repeat(64)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for bad in ["", "A", "-a", ".a", "a/b", "a b", "a\0", "é", &"k".repeat(65)] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
    }
}
