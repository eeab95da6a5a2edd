//! What people call a node.

use core::{fmt, str::FromStr};

/// What people call a node: 1 to 64 printable ASCII characters, no space at the ends and no two in a row.
///
/// ASCII, because names are read aloud and compared, and letters of two scripts may look alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeName(String);

/// Not a node's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name {0:?} is not allowed: use 1 to 64 printable ASCII characters, without spaces at the ends or two in a row"
)]
pub struct NodeNameError(pub String);

impl NodeName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What tells names apart and orders them: the same in small letters.
    #[must_use]
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl FromStr for NodeName {
    type Err = NodeNameError;

    fn from_str(name: &str) -> Result<Self, NodeNameError> {
        let printable = name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let spaced = name.starts_with(' ') || name.ends_with(' ') || name.contains("  ");
        if printable && !spaced && (1..=64).contains(&name.len()) {
            Ok(Self(name.to_owned()))
        } else {
            Err(NodeNameError(name.chars().take(80).collect()))
        }
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_can_be_read_aloud() {
        for good in ["a", "Harbour Bank, Oslo", "M. & N. (2)", &"x".repeat(64)] {
            assert_eq!(good.parse::<NodeName>().unwrap().to_string(), good);
        }
        for bad in ["", " a", "a ", "a  b", "a\nb", "a\u{1b}[2J", "B\u{e4}nk", "\u{202e}a", &"x".repeat(65)] {
            assert!(bad.parse::<NodeName>().is_err(), "{bad:?}");
        }
    }
}
