//! A form of scalars that is fast to add, for crates whose own additions are slow.

use core::marker::PhantomData;
use core::ops::{AddAssign, Sub};

use zeroize::Zeroize;

/// A scalar with a form as a number below the order, in four words, the lowest first. Sums of scalars are sums of these numbers
/// modulo the order.
pub trait Words: Copy {
    /// The order, below 2^255.
    const ORDER: [u64; 4];

    /// The number.
    fn to_words(self) -> [u64; 4];
    /// The scalar of a number below the order.
    fn from_words(words: [u64; 4]) -> Self;
}

/// A scalar as four words. Adding it takes as little as a tenth of the time that its crate takes, which converts at each addition
/// or calls foreign code. All operations are constant-time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Addend<S> {
    words: [u64; 4],
    scalar: PhantomData<S>,
}

/// a + b + carry, and the carry.
fn add(a: [u64; 4], b: [u64; 4]) -> ([u64; 4], bool) {
    let mut carry = false;
    let mut sum = [0; 4];
    for ((to, a), b) in sum.iter_mut().zip(a).zip(b) {
        (*to, carry) = a.carrying_add(b, carry);
    }
    (sum, carry)
}

/// a - b, and the borrow.
fn sub(a: [u64; 4], b: [u64; 4]) -> ([u64; 4], bool) {
    let mut borrow = false;
    let mut difference = [0; 4];
    for ((to, a), b) in difference.iter_mut().zip(a).zip(b) {
        (*to, borrow) = a.borrowing_sub(b, borrow);
    }
    (difference, borrow)
}

/// The order if `choice`, else zero, without a branch.
fn order_if<S: Words>(choice: bool) -> [u64; 4] {
    let mask = core::hint::black_box(u64::from(choice)).wrapping_neg();
    S::ORDER.map(|word| word & mask)
}

impl<S> Addend<S> {
    const fn new(words: [u64; 4]) -> Self {
        Self { words, scalar: PhantomData }
    }
}

impl<S: Words> Addend<S> {
    /// The scalar again.
    pub(crate) fn to_scalar(self) -> S {
        S::from_words(self.words)
    }
}

impl<S> Zeroize for Addend<S> {
    fn zeroize(&mut self) {
        self.words.zeroize();
    }
}

impl<S: Words> AddAssign for Addend<S> {
    fn add_assign(&mut self, other: Self) {
        // The sum is below twice the order, that is below 2^256, so there is no carry.
        let (sum, _) = add(self.words, other.words);
        let (reduced, below) = sub(sum, S::ORDER);
        self.words = add(reduced, order_if::<S>(below)).0;
    }
}

impl<S: Words> Sub for Addend<S> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        let (difference, below) = sub(self.words, other.words);
        Self::new(add(difference, order_if::<S>(below)).0)
    }
}

impl<S: Words> From<S> for Addend<S> {
    fn from(scalar: S) -> Self {
        Self::new(scalar.to_words())
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    use super::*;
    use crate::bls12_381::BlsScalar;
    use crate::{RistrettoScalar, Scalar};

    fn sums_and_differences_are_the_library_s<S: Scalar<Addend = Addend<S>> + Words>() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let [one, two] = [1, 2].map(S::from_u64);
        let mut scalars = vec![S::ZERO, one, two, -one, -two, two.invert(), -two.invert()];
        let mut power = one;
        for _ in 0..256 {
            power += power;
            scalars.extend([power, -power, power - one]);
        }
        scalars.extend((0..50).map(|_| S::random(&mut rng)));
        for a in &scalars {
            assert_eq!(Addend::from(*a).to_scalar(), *a);
            for b in &scalars {
                let (x, y) = (Addend::from(*a), Addend::from(*b));
                let mut sum = x;
                sum += y;
                assert!(sum.words == Addend::from(*a + *b).words, "{a:?} + {b:?}");
                assert_eq!((x - y).to_scalar(), *a - *b, "{a:?} - {b:?}");
            }
        }
    }

    #[test]
    fn ristretto255() {
        sums_and_differences_are_the_library_s::<RistrettoScalar>();
    }

    #[test]
    fn bls12_381() {
        sums_and_differences_are_the_library_s::<BlsScalar>();
    }
}
