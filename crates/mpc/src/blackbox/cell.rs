//! One party's share of one value.

use theta_groups::Scalar;
use zeroize::Zeroize;

/// One party's share of one value: one scalar or several, in which sharing is linear.
pub trait Cell<S: Scalar>: Copy + Zeroize + Send + Sync + 'static {
    /// A share of zero.
    const ZERO: Self;
    /// A share of the sum.
    #[must_use]
    fn plus(&self, other: &Self) -> Self;
    /// A share of the difference.
    #[must_use]
    fn minus(&self, other: &Self) -> Self;
    /// A share of the product with a public factor.
    #[must_use]
    fn times(&self, factor: &S) -> Self;
}

impl<S: Scalar, const W: usize> Cell<S> for [S; W] {
    const ZERO: Self = [S::ZERO; W];

    fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        for (to, from) in sum.iter_mut().zip(other) {
            *to += *from;
        }
        sum
    }

    fn minus(&self, other: &Self) -> Self {
        let mut difference = *self;
        for (to, from) in difference.iter_mut().zip(other) {
            *to = *to - *from;
        }
        difference
    }

    fn times(&self, factor: &S) -> Self {
        self.map(|part| part * *factor)
    }
}
