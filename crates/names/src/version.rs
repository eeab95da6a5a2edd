//! Versions of keys.

use core::{fmt, num::NonZeroU32, str::FromStr};

use serde::{Serialize, Serializer};

/// The number of a version of a key. Rotating a key makes the next version, with a public key of its own. Versions count from 1, and
/// no number is given twice.
///
/// In statements and messages the number 0 stands for no version, which means the primary one or the key as a whole. The code has
/// `None` of an `Option<Version>` for it; [`Version::new`] and [`Version::number_of`] convert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(NonZeroU32);

/// The text is not a version; at most 20 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version: it is a number from 1, without signs or leading zeros")]
pub struct VersionError(pub String);

impl Version {
    /// The version that a key begins with.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// The version of this number; `None` for 0, which names none.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number, from 1.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// The number of a version, or 0 for none. The inverse of [`Version::new`].
    #[must_use]
    pub const fn number_of(version: Option<Self>) -> u32 {
        match version {
            Some(version) => version.get(),
            None => 0,
        }
    }

    /// The next version; `None` after the last.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }

    /// The bytes that are signed, hashed or stored: the number in four bytes, big-endian.
    #[must_use]
    pub const fn to_be_bytes(self) -> [u8; 4] {
        self.get().to_be_bytes()
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(digits: &str) -> Result<Self, VersionError> {
        let version = digits.parse().ok().and_then(Self::new).filter(|version| version.to_string() == digits);
        version.ok_or_else(|| VersionError(digits.chars().take(20).collect()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_names_no_version() {
        assert_eq!((Version::new(0), Version::new(1)), (None, Some(Version::FIRST)));
        for number in [0, 1, 2, u32::MAX] {
            assert_eq!(Version::number_of(Version::new(number)), number);
        }
    }

    #[test]
    fn the_last_version_has_no_next() {
        assert_eq!(Version::FIRST.next().map(Version::get), Some(2));
        assert_eq!(Version::new(u32::MAX).unwrap().next(), None);
    }

    #[test]
    fn versions_are_written_in_one_way() {
        for number in [1, 2, 10, u32::MAX] {
            let version = Version::new(number).unwrap();
            assert_eq!((version.to_string().parse(), version.to_be_bytes()), (Ok(version), number.to_be_bytes()));
        }
        for bad in ["", "0", "01", "+1", "-1", " 1", "1 ", "x", "1@2", "4294967296", "٣"] {
            assert_eq!(bad.parse::<Version>(), Err(VersionError(bad.to_owned())));
        }
        let long = "9".repeat(1000).parse::<Version>().unwrap_err();
        assert_eq!(long.0.len(), 20, "an error is not as long as what was read");
    }
}
