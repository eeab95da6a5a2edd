//! Patterns of key names.

use core::{fmt, str::FromStr};

use theta_statements::Name;

/// A pattern of key names: `root` matches that key, `mail-*` every key whose name begins with `mail-`, and `*` every key and
/// also requests without a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    text: Box<str>,
    prefix: bool,
}

/// The text is not a pattern of key names; at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no key and no beginning of keys; write a key's name in lower case, or its beginning and one * at the end"
)]
pub struct KeyPatternError(pub String);

impl KeyPattern {
    /// Whether the pattern matches this key; `None` is a request that names no key.
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
        // A pattern with upper-case letters would match no key, because no key's name has them.
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
