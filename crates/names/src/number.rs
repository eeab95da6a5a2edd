//! The numbers that stand for parties.

use core::{fmt, num::NonZeroU16};

/// A node of a group, by its number in the group file: 1 to 65,535.
///
/// The share of a key that the node holds has a number of its own, a [`ShareIndex`]; the key's [`Holders`](crate::Holders) map one
/// to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(NonZeroU16);

/// The index i of a share f(i), where f is the sharing polynomial: 1 to 65,535. Zero cannot be expressed, because f(0) is the
/// secret.
///
/// The node that holds the share has a number of its own, a [`NodeId`]; the key's [`Holders`](crate::Holders) map one to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShareIndex(NonZeroU16);

/// The number is 0, and should be 1 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} start at 1, not 0")]
pub struct ZeroError(&'static str);

impl NodeId {
    /// The lowest number.
    pub const FIRST: Self = Self(NonZeroU16::MIN);

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }

    /// The number, which is known not to be 0.
    #[must_use]
    pub const fn number(self) -> NonZeroU16 {
        self.0
    }
}

impl ShareIndex {
    /// The index as a number, 1 to 65,535.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }

    /// The number, which is known not to be 0.
    #[must_use]
    pub const fn number(self) -> NonZeroU16 {
        self.0
    }

    /// The place of this share in a list of all: the index minus one.
    #[must_use]
    pub fn position(self) -> usize {
        usize::from(self.0.get()) - 1
    }

    /// The share at this place in a list of all; `None` beyond the last index that there can be.
    #[must_use]
    pub fn at(position: usize) -> Option<Self> {
        NonZeroU16::new(u16::try_from(position.checked_add(1)?).ok()?).map(Self)
    }
}

impl From<NonZeroU16> for NodeId {
    fn from(number: NonZeroU16) -> Self {
        Self(number)
    }
}

impl From<NonZeroU16> for ShareIndex {
    fn from(index: NonZeroU16) -> Self {
        Self(index)
    }
}

impl TryFrom<u16> for NodeId {
    type Error = ZeroError;

    fn try_from(number: u16) -> Result<Self, ZeroError> {
        NonZeroU16::new(number).map(Self).ok_or(ZeroError("node numbers"))
    }
}

impl TryFrom<u16> for ShareIndex {
    type Error = ZeroError;

    fn try_from(index: u16) -> Result<Self, ZeroError> {
        NonZeroU16::new(index).map(Self).ok_or(ZeroError("share indices"))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ShareIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_nobody() {
        assert_eq!(NodeId::try_from(0).unwrap_err().to_string(), "node numbers start at 1, not 0");
        assert_eq!(ShareIndex::try_from(0).unwrap_err().to_string(), "share indices start at 1, not 0");
        assert_eq!(NodeId::try_from(1), Ok(NodeId::FIRST));
    }

    #[test]
    fn places_are_counted_from_zero() {
        for number in [1, 2, 65_535] {
            let index = ShareIndex::try_from(number).unwrap();
            assert_eq!((index.position(), ShareIndex::at(index.position())), (usize::from(number) - 1, Some(index)));
        }
        assert_eq!((ShareIndex::at(65_535), ShareIndex::at(usize::MAX)), (None, None));
    }
}
