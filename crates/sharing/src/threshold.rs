//! Thresholds: how many of how many parties must act together.

use core::fmt;
use core::num::NonZeroU16;

use theta_names::ShareIndex;

/// Any k of n parties can use the key, any k - 1 learn nothing: 1 <= k <= n <= 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Threshold {
    k: NonZeroU16,
    n: NonZeroU16,
}

/// Why numbers do not describe a sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// k = 0 or n = 0.
    #[error("{k} of {n} makes no sense: at least one party must exist and at least one must agree")]
    Zero {
        /// How many must agree.
        k: u16,
        /// How many there are.
        n: u16,
    },
    /// k > n.
    #[error("{k} of {n} cannot be reached: the threshold may be at most the number of parties")]
    Unreachable {
        /// How many must agree.
        k: u16,
        /// How many there are.
        n: u16,
    },
}

impl Threshold {
    /// Any `k` of `n`.
    ///
    /// # Errors
    /// [`ThresholdError::Zero`] or [`ThresholdError::Unreachable`] unless 1 <= k <= n.
    pub fn new(k: u16, n: u16) -> Result<Self, ThresholdError> {
        let (Some(nonzero_k), Some(nonzero_n)) = (NonZeroU16::new(k), NonZeroU16::new(n)) else {
            return Err(ThresholdError::Zero { k, n });
        };
        if k > n { Err(ThresholdError::Unreachable { k, n }) } else { Ok(Self { k: nonzero_k, n: nonzero_n }) }
    }

    /// How many must agree.
    #[must_use]
    pub const fn k(self) -> u16 {
        self.k.get()
    }

    /// How many there are.
    #[must_use]
    pub const fn n(self) -> u16 {
        self.n.get()
    }

    /// How many may be corrupt: k - 1, the degree of the sharing polynomial.
    #[must_use]
    pub const fn t(self) -> u16 {
        self.k.get() - 1
    }

    /// All parties, 1 to n.
    pub fn indices(self) -> impl Iterator<Item = ShareIndex> {
        (1..=self.n.get()).filter_map(NonZeroU16::new).map(ShareIndex::from)
    }

    /// Whether the index is one of 1 to n.
    #[must_use]
    pub fn contains(self, index: ShareIndex) -> bool {
        index.get() <= self.n.get()
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.k, self.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_kept() {
        assert_eq!(Threshold::new(0, 3), Err(ThresholdError::Zero { k: 0, n: 3 }));
        assert_eq!(Threshold::new(0, 0), Err(ThresholdError::Zero { k: 0, n: 0 }));
        assert_eq!(Threshold::new(4, 3), Err(ThresholdError::Unreachable { k: 4, n: 3 }));
        let threshold = Threshold::new(3, 7).unwrap();
        assert_eq!((threshold.k(), threshold.n(), threshold.t()), (3, 7, 2));
        assert_eq!(threshold.to_string(), "3 of 7");
        assert!(Threshold::new(u16::MAX, u16::MAX).is_ok());
    }

    #[test]
    fn indices_run_from_one_to_n() {
        let threshold = Threshold::new(1, 3).unwrap();
        assert_eq!(threshold.indices().map(ShareIndex::get).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(threshold.indices().map(ShareIndex::position).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(threshold.indices().all(|index| threshold.contains(index)));
        assert!(!threshold.contains(ShareIndex::try_from(4).unwrap()));
        assert_eq!(Threshold::new(1, u16::MAX).unwrap().indices().count(), 65_535);
    }
}
