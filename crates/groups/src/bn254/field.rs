//! The fields of points' coordinates, with the constant-time operations that points need.

use crate::comb::{ENTRIES, select_words};
use core::ops::{Add, Mul, Neg, Sub};
use halo2curves::bn256::{Fq, Fq2};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The field of coordinates: F_p, or F_p^2 = F_p\[i\] with i^2 = -1.
pub trait Field:
    Copy + Send + Sync + 'static + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// The neutral element of addition.
    const ZERO: Self;
    /// The neutral element of multiplication.
    const ONE: Self;
    /// Bytes of an encoded element.
    const ENCODED_LEN: usize;

    /// An element of the prime field.
    fn from_base(value: Fq) -> Self;
    /// Multiplies by an element of the prime field.
    fn scale(self, factor: Fq) -> Self;
    fn square(self) -> Self;
    /// The inverse; zero maps to zero.
    fn invert(self) -> Self;
    fn is_square(self) -> Choice;
    /// A square root, if the first is true.
    fn sqrt(self) -> (Choice, Self);
    /// RFC 9380, section 4.1.
    fn sgn0(self) -> Choice;
    /// Whether this is larger than its negative, comparing the highest coefficient that is not zero.
    fn is_larger_of_two(self) -> Choice;
    fn equal(self, other: Self) -> Choice;
    /// `other` if `choice`, otherwise `self`.
    fn select(self, other: Self, choice: Choice) -> Self;
    /// The part of the entry whose mask is all ones.
    fn select_from<E>(row: &[E; ENTRIES], masks: &[u64; ENTRIES], part: impl Fn(&E) -> &Self) -> Self;
    /// Big-endian, the highest coefficient first. `out` takes [`Field::ENCODED_LEN`] bytes.
    fn write(self, out: &mut [u8]);
    /// `None` unless every coefficient is reduced.
    fn read(bytes: &[u8]) -> Option<Self>;
    /// RFC 9380, section 5.2, from 48 uniform bytes a coefficient, the lowest first.
    fn from_uniform(bytes: &[u8]) -> Self;

    fn double(self) -> Self {
        self + self
    }
    fn is_zero(self) -> Choice {
        self.equal(Self::ZERO)
    }
}

/// (p - 3) / 4.
const P_MINUS_3_OVER_4: [u64; 4] =
    [0x4f08_2305_b61f_3f51, 0x65e0_5aa4_5a1c_72a3, 0x6e14_116d_a060_5617, 0x0c19_139c_b84c_680a];
/// p - 2.
const P_MINUS_2: [u64; 4] =
    [0x3c20_8c16_d87c_fd45, 0x9781_6a91_6871_ca8d, 0xb850_45b6_8181_585d, 0x3064_4e72_e131_a029];
/// 1 / 2.
const HALF: Fq =
    Fq::from_raw([0x9e10_460b_6c3e_7ea4, 0xcbc0_b548_b438_e546, 0xdc28_22db_40c0_ac2e, 0x1832_2739_7098_d014]);

/// `base` to a public exponent, little-endian, by windows of four bits.
pub(super) fn power<F: Copy + Mul<Output = F>>(base: F, exponent: &[u64; 4], one: F) -> F {
    let mut table = [one; 16];
    let mut multiple = one;
    for entry in table.iter_mut().skip(1) {
        multiple = multiple * base;
        *entry = multiple;
    }
    let mut result = one;
    for limb in exponent.iter().rev() {
        for shift in (0..16).rev() {
            result = result * result;
            result = result * result;
            result = result * result;
            result = result * result;
            let digit = usize::try_from(limb >> (4 * shift) & 15).unwrap_or(0);
            if digit != 0 {
                result = result * table.get(digit).copied().unwrap_or(one);
            }
        }
    }
    result
}

/// The little-endian limbs of at most 32 big-endian bytes.
pub(super) fn limbs_be(bytes: &[u8]) -> [u64; 4] {
    let mut limbs = [0; 4];
    for (limb, chunk) in limbs.iter_mut().zip(bytes.rchunks(8)) {
        *limb = chunk.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    }
    limbs
}

/// t^((p-3)/4). If t is a square, its product with t is a square root of t, and it is the inverse of a root itself.
fn root_power(t: Fq) -> Fq {
    power(t, &P_MINUS_3_OVER_4, Fq::one())
}

impl Field for Fq {
    const ZERO: Self = Self::zero();
    const ONE: Self = Self::one();
    const ENCODED_LEN: usize = 32;

    fn from_base(value: Fq) -> Self {
        value
    }

    fn scale(self, factor: Fq) -> Self {
        self * factor
    }

    fn square(self) -> Self {
        Self::square(&self)
    }

    fn invert(self) -> Self {
        power(self, &P_MINUS_2, Self::one())
    }

    fn is_square(self) -> Choice {
        self.sqrt().0
    }

    fn sqrt(self) -> (Choice, Self) {
        let root = root_power(self) * self;
        (root.square().equal(self), root)
    }

    fn sgn0(self) -> Choice {
        Choice::from(self.to_bytes().first().map_or(0, |byte| byte & 1))
    }

    fn is_larger_of_two(self) -> Choice {
        self.lexicographically_largest()
    }

    fn equal(self, other: Self) -> Choice {
        // The crate's own comparison stops at the first difference.
        self.0.ct_eq(&other.0)
    }

    fn select(self, other: Self, choice: Choice) -> Self {
        // The crate's own selection allocates memory.
        let [a, b, c, d] = self.0;
        let [e, f, g, h] = other.0;
        let select = |a, b| u64::conditional_select(&a, &b, choice);
        Self([select(a, e), select(b, f), select(c, g), select(d, h)])
    }

    fn select_from<E>(row: &[E; ENTRIES], masks: &[u64; ENTRIES], part: impl Fn(&E) -> &Self) -> Self {
        Self(select_words(row, masks, |entry| &part(entry).0))
    }

    fn write(self, out: &mut [u8]) {
        for (to, from) in out.iter_mut().zip(self.to_bytes().iter().rev()) {
            *to = *from;
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut bytes: [u8; 32] = bytes.try_into().ok()?;
        bytes.reverse();
        Self::from_bytes(&bytes).into()
    }

    fn from_uniform(bytes: &[u8]) -> Self {
        // 2^256 = (2^128)^2.
        const TWO_TO_128: Fq = Fq::from_raw([0, 0, 1, 0]);
        let (high, low) = bytes.split_at(bytes.len().saturating_sub(32));
        Self::from_raw(limbs_be(high)) * TWO_TO_128.square() + Self::from_raw(limbs_be(low))
    }
}

impl Field for Fq2 {
    const ZERO: Self = Self::zero();
    const ONE: Self = Self::one();
    const ENCODED_LEN: usize = 64;

    fn from_base(value: Fq) -> Self {
        Self::new(value, Fq::zero())
    }

    fn scale(self, factor: Fq) -> Self {
        Self::new(*self.c0() * factor, *self.c1() * factor)
    }

    fn square(self) -> Self {
        Self::square(&self)
    }

    fn invert(self) -> Self {
        let inverse = Field::invert(self.norm());
        Self::new(*self.c0() * inverse, -(*self.c1() * inverse))
    }

    fn is_square(self) -> Choice {
        self.norm().is_square()
    }

    /// The complex method. With s^2 the norm, t = (c0 + s) / 2 and t' = (c0 - s) / 2, t t' = -(c1 / 2)^2, so one of them is a
    /// square. A root of it is one coefficient of the result, and c1 / 2 divided by the root is the other.
    fn sqrt(self) -> (Choice, Self) {
        let (c0, c1) = (*self.c0(), *self.c1());
        let s = Field::sqrt(self.norm()).1;
        let t = (c0 + s) * HALF;
        let t = t.select(c0, t.is_zero());
        let w = root_power(t);
        let root = w * t;
        let other = w * c1 * HALF;
        let real = root.square().equal(t);
        let result = Self::new((-other).select(root, real), root.select(other, real));
        (Field::square(result).equal(self), result)
    }

    fn sgn0(self) -> Choice {
        self.c0().sgn0() | (self.c0().equal(Fq::zero()) & self.c1().sgn0())
    }

    fn is_larger_of_two(self) -> Choice {
        let imaginary = self.c1().is_larger_of_two();
        let real = self.c0().is_larger_of_two();
        (imaginary & !self.c1().equal(Fq::zero())) | (real & self.c1().equal(Fq::zero()))
    }

    fn equal(self, other: Self) -> Choice {
        self.c0().equal(*other.c0()) & self.c1().equal(*other.c1())
    }

    fn select(self, other: Self, choice: Choice) -> Self {
        Self::new(self.c0().select(*other.c0(), choice), self.c1().select(*other.c1(), choice))
    }

    fn select_from<E>(row: &[E; ENTRIES], masks: &[u64; ENTRIES], part: impl Fn(&E) -> &Self) -> Self {
        let c0 = Fq::select_from(row, masks, |entry| part(entry).c0());
        Self::new(c0, Fq::select_from(row, masks, |entry| part(entry).c1()))
    }

    fn write(self, out: &mut [u8]) {
        let (high, low) = out.split_at_mut(out.len() / 2);
        self.c1().write(high);
        self.c0().write(low);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (high, low) = bytes.split_at(bytes.len() / 2);
        Some(Self::new(Fq::read(low)?, Fq::read(high)?))
    }

    fn from_uniform(bytes: &[u8]) -> Self {
        let (low, high) = bytes.split_at(bytes.len() / 2);
        Self::new(Fq::from_uniform(low), Fq::from_uniform(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Fq> {
        let mut x = Fq::from_raw([3, 1, 4, 1]);
        let mut samples = vec![Fq::zero(), Fq::one(), -Fq::one(), Fq::from_raw([5, 0, 0, 0])];
        for _ in 0..20 {
            x = x.square() + Fq::one();
            samples.push(x);
        }
        samples
    }

    fn roots_and_inverses<F: Field>(samples: &[F]) {
        let mut squares = 0;
        for x in samples {
            let (exists, root) = x.sqrt();
            assert_eq!(bool::from(exists), bool::from(x.is_square()));
            assert_eq!(bool::from(exists), bool::from(root.square().equal(*x)));
            squares += i32::from(bool::from(exists));
            assert!(bool::from(x.square().is_square()));
            let root = x.square().sqrt().1;
            assert!(bool::from(root.equal(*x) | root.equal(-*x)));
            let expected = F::ONE.select(F::ZERO, x.is_zero());
            assert!(bool::from((*x * x.invert()).equal(expected)));
            let larger = bool::from(x.is_larger_of_two());
            assert_eq!(larger, !bool::from((-*x).is_larger_of_two()) && !bool::from(x.is_zero()));
        }
        assert!(squares > 5 && squares < samples.len().try_into().unwrap());
    }

    #[test]
    fn base_field() {
        roots_and_inverses(&samples());
    }

    #[test]
    fn quadratic_extension() {
        let samples: Vec<Fq2> = samples().iter().flat_map(|a| samples().into_iter().map(|b| Fq2::new(*a, b))).collect();
        roots_and_inverses(&samples);
    }
}
