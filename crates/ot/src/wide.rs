//! Sums of many random integers, reduced modulo q once.

use theta_groups::Scalar;
use zeroize::Zeroize;

use crate::words;

/// An integer of N words of 64 bits, the lowest first. Callers choose N so that nothing overflows.
#[derive(Clone, Copy)]
pub(crate) struct Wide<const N: usize>(pub(crate) [u64; N]);

impl<const N: usize> Zeroize for Wide<N> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl<const N: usize> Wide<N> {
    pub(crate) const ZERO: Self = Self([0; N]);

    /// Adds an integer of no more words.
    #[inline]
    pub(crate) fn add<const M: usize>(&mut self, other: &[u64; M]) {
        let mut carry = false;
        let (low, high) = self.0.split_at_mut(M.min(N));
        for (word, more) in low.iter_mut().zip(other) {
            (*word, carry) = word.carrying_add(*more, carry);
        }
        for word in high {
            (*word, carry) = word.carrying_add(0, carry);
        }
    }

    /// Adds an integer times 2^(64 offset). What it adds has to fit.
    #[inline]
    pub(crate) fn add_at<const M: usize>(&mut self, offset: usize, other: &[u64; M]) {
        let mut carry = false;
        let (_, words) = self.0.split_at_mut(offset.min(N));
        let (low, high) = words.split_at_mut(M.min(words.len()));
        for (word, more) in low.iter_mut().zip(other) {
            (*word, carry) = word.carrying_add(*more, carry);
        }
        for word in high {
            (*word, carry) = word.carrying_add(0, carry);
        }
    }

    /// Subtracts a smaller integer.
    #[inline]
    pub(crate) fn subtract<const M: usize>(&mut self, other: &[u64; M]) {
        let mut borrow = false;
        let (low, high) = self.0.split_at_mut(M.min(N));
        for (word, less) in low.iter_mut().zip(other) {
            (*word, borrow) = word.borrowing_sub(*less, borrow);
        }
        for word in high {
            (*word, borrow) = word.borrowing_sub(0, borrow);
        }
    }

    /// Adds a multiple of an integer.
    #[inline]
    pub(crate) fn add_multiple<const M: usize>(&mut self, other: &[u64; M], factor: u64) {
        let mut carry = 0;
        let (low, high) = self.0.split_at_mut(M.min(N));
        for (word, more) in low.iter_mut().zip(other) {
            (*word, carry) = more.carrying_mul_add(factor, carry, *word);
        }
        let mut carried = false;
        for word in high {
            (*word, carried) = word.carrying_add(carry, carried);
            carry = 0;
        }
    }

    /// Multiplies by 2^bits, with 1 to 63 bits.
    #[inline]
    pub(crate) fn double(&mut self, bits: u32) {
        let mut low = 0;
        for word in &mut self.0 {
            let next = *word >> (64 - bits);
            *word = *word << bits | low;
            low = next;
        }
    }

    /// The words.
    pub(crate) const fn words(&self) -> &[u64; N] {
        &self.0
    }

    /// The remainder modulo q.
    pub(crate) fn reduce<S: Scalar>(&self) -> S {
        const { assert!(N <= 16, "the groups reduce 128 bytes") };
        let mut bytes = [[0; 8]; N];
        if words::is_little_endian::<S>() {
            bytes.iter_mut().zip(self.0).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        } else {
            bytes.iter_mut().rev().zip(self.0).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
        }
        S::from_uniform_bytes(bytes.as_flattened())
    }
}
