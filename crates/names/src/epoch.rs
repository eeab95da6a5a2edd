//! Epochs: the numbers of a secret's sharings.

use core::fmt;

use serde::{Serialize, Serializer};

/// The number of one sharing of the secret of a key's version. 0 is the first, by a dealer or by the ceremony that made the version;
/// every refresh or reshare makes the next. The public key is the same in all epochs; shares of different epochs cannot be combined.
///
/// 2^32 epochs outlast every key: ten ceremonies a second would take 13 years to use them up. The store, hashes and messages encode
/// an epoch in eight bytes, ceremonies in four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(u32);

impl Epoch {
    /// The sharing that a version begins with.
    pub const FIRST: Self = Self(0);

    /// The epoch of this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The epoch of a number as it is stored and sent; `None` above the last epoch, 2^32 - 1.
    #[must_use]
    pub fn from_wide(number: u64) -> Option<Self> {
        u32::try_from(number).ok().map(Self)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number as it is stored and sent. The inverse of [`Epoch::from_wide`].
    #[must_use]
    pub fn wide(self) -> u64 {
        u64::from(self.0)
    }

    /// The epoch before, from whose shares this one was made; `None` for the first.
    #[must_use]
    pub const fn previous(self) -> Option<Self> {
        match self.0.checked_sub(1) {
            Some(previous) => Some(Self(previous)),
            None => None,
        }
    }

    /// The next epoch; `None` after the last.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }

    /// The bytes that are hashed or stored: the number in eight bytes, big-endian.
    #[must_use]
    pub fn to_be_bytes(self) -> [u8; 8] {
        self.wide().to_be_bytes()
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Epoch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_follow_each_other() {
        assert_eq!((Epoch::FIRST.previous(), Epoch::FIRST.next()), (None, Some(Epoch::new(1))));
        assert_eq!(Epoch::new(1).previous(), Some(Epoch::FIRST));
        assert_eq!((Epoch::new(u32::MAX).next(), Epoch::new(7).next()), (None, Some(Epoch::new(8))));
    }

    #[test]
    fn no_wide_number_is_cut() {
        for number in [0, 1, u64::from(u32::MAX)] {
            let epoch = Epoch::from_wide(number).unwrap();
            assert_eq!((epoch.wide(), epoch.to_be_bytes()), (number, number.to_be_bytes()));
            assert_eq!((Epoch::new(epoch.get()), epoch.to_string()), (epoch, number.to_string()));
        }
        for number in [1 << 32, (1 << 32) + 1, u64::MAX] {
            assert_eq!(Epoch::from_wide(number), None);
        }
    }
}
