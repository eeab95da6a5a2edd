//! Names of suites.

use core::{fmt, str::FromStr};
use std::borrow::Cow;

/// The name of a suite, which is a scheme in one form on one group: 1 to 64 of `a-z`, `0-9`, `-`. `theta-schemes` knows which
/// suites exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SuiteName(Cow<'static, str>);

/// The text is not a suite's name; at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a suite: use 1 to 64 of a-z, 0-9, '-'")]
pub struct SuiteNameError(pub String);

impl SuiteName {
    /// A name from the table of suites; it is not checked.
    #[must_use]
    pub const fn known(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SuiteName {
    type Err = SuiteNameError;

    fn from_str(name: &str) -> Result<Self, SuiteNameError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let good = (1..=64).contains(&name.len()) && name.bytes().all(plain);
        if good { Ok(Self(Cow::Owned(name.to_owned()))) } else { Err(SuiteNameError(name.chars().take(80).collect())) }
    }
}

impl fmt::Display for SuiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_names() {
        assert_eq!("frost-secp256k1-tr".parse::<SuiteName>().unwrap().to_string(), "frost-secp256k1-tr");
        for bad in ["", "SG02", "a b", "a.b", &"k".repeat(65)] {
            assert!(bad.parse::<SuiteName>().is_err(), "{bad:?}");
        }
    }
}
