//! Non-negative integers of any size.

use core::cmp::Ordering;
use core::fmt;

use zeroize::Zeroize;

use super::MAX_MODULUS_BITS;
use super::ffi::Bn;

/// A non-negative integer, wiped when dropped. Secret ones live in a [`crate::Secret`].
///
/// Additions and multiplications take time that depends on the sizes; divisions, remainders and comparisons may depend
/// on the values. The caller has to bound sizes: without memory the process stops, as with any collection.
#[derive(Clone)]
pub struct Integer(pub(super) Bn);

impl Integer {
    /// A small integer.
    #[must_use]
    pub fn from_u64(value: u64) -> Self {
        Self(Bn::from_u64(value))
    }

    /// A 128-bit integer.
    #[must_use]
    pub fn from_u128(value: u128) -> Self {
        Self::from_be_bytes(&value.to_be_bytes())
    }

    /// Reads big-endian bytes; an empty slice is zero.
    #[must_use]
    pub fn from_be_bytes(bytes: &[u8]) -> Self {
        Self(Bn::from_be_bytes(bytes))
    }

    /// Big-endian, padded with zeros to `len` bytes; `None` if it takes more.
    #[must_use]
    pub fn to_be_bytes(&self, len: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; len];
        self.write_be_bytes(&mut out).then_some(out)
    }

    /// Fills `out`, padding with zeros; false if the integer takes more bytes. Constant-time.
    #[must_use]
    pub fn write_be_bytes(&self, out: &mut [u8]) -> bool {
        self.0.to_be_bytes(out)
    }

    /// The position of the highest bit, counted from 1; 0 for zero.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// The bit of value 2^position.
    #[must_use]
    pub fn bit(&self, position: u32) -> bool {
        self.0.bit(position)
    }

    /// Whether it is odd.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.bit(0)
    }

    /// Whether it is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.bits() == 0
    }

    /// The sum.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        Self(self.0.add(&other.0))
    }

    /// Adds in place.
    pub fn add_assign(&mut self, other: &Self) {
        self.0.add_assign(&other.0);
    }

    /// Adds a small integer in place.
    pub fn add_u64(&mut self, other: u64) {
        self.0.add_word(other);
    }

    /// The difference; `None` if it is negative.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Option<Self> {
        self.0.sub(&other.0).map(Self)
    }

    /// The product.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        Self(self.0.mul(&other.0))
    }

    /// Multiplies by a small integer in place.
    pub fn mul_u64(&mut self, factor: u64) {
        self.0.mul_word(factor);
    }

    /// Divides by a small integer in place and returns the remainder; dividing by zero leaves zero.
    pub fn div_u64(&mut self, divisor: u64) -> u64 {
        self.0.div_word(divisor)
    }

    /// The remainder of the division by a small integer; zero if that is zero.
    #[must_use]
    pub fn rem_u64(&self, divisor: u64) -> u64 {
        self.0.mod_word(divisor)
    }

    /// The remainder of the division; zero if the divisor is zero.
    #[must_use]
    pub fn rem(&self, divisor: &Self) -> Self {
        Self(self.0.rem(&divisor.0))
    }

    /// Whether it is a prime, after 64 rounds of Miller-Rabin with random bases: any composite, even an adversarial one, passes
    /// with probability 2^-128 at most. The time depends on the answer, not on the prime. False for more than
    /// [`MAX_MODULUS_BITS`] bits.
    #[must_use]
    pub fn is_prime(&self) -> bool {
        self.bits() <= MAX_MODULUS_BITS && self.0.is_prime(64)
    }
}

impl PartialEq for Integer {
    fn eq(&self, other: &Self) -> bool {
        self.0.compare(&other.0) == Ordering::Equal
    }
}

impl Eq for Integer {}

impl PartialOrd for Integer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Integer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.compare(&other.0)
    }
}

impl Zeroize for Integer {
    fn zeroize(&mut self) {
        self.0.wipe();
    }
}

impl fmt::Debug for Integer {
    /// Shows the size alone: the value may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Integer({} bits)", self.bits())
    }
}
