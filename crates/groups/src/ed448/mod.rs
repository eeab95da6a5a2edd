//! The prime-order group of Ed448 (RFC 8032): the points of edwards448 that its generator generates.
//!
//! The curve has four times as many points as the group. Those outside the group are refused when they are decoded, so
//! that no scheme above has to think of them.

mod hash;
mod scalar;

pub use scalar::Ed448Scalar;

use crate::comb::{self, Comb, CombPoint, ENTRIES};
use crate::msm::{self, Costs, VartimePoint};
use crate::{DecodeError, Group, Scalar, Table, hex_debug};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, Mul, Neg, Sub};
use crrl::ed448::Point;
use subtle::{Choice, ConstantTimeEq};
use zeroize::DefaultIsZeroes;

/// The group of Ed448, of order 2^446 - 13818066809895115352007386748515426880336692474882178609894547503885.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ed448;

/// An element of Ed448's group.
#[derive(Clone, Copy)]
pub struct Ed448Element(Point);

impl fmt::Debug for Ed448Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex_debug(f, "Ed448Element", &self.0.encode())
    }
}

impl ConstantTimeEq for Ed448Element {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.equals(other.0).ct_eq(&u32::MAX)
    }
}

impl PartialEq for Ed448Element {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for Ed448Element {}

/// The neutral element.
impl Default for Ed448Element {
    fn default() -> Self {
        Self(Point::NEUTRAL)
    }
}

impl DefaultIsZeroes for Ed448Element {}

impl Add for Ed448Element {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Ed448Element {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for Ed448Element {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Mul<Ed448Scalar> for Ed448Element {
    type Output = Self;
    fn mul(self, scalar: Ed448Scalar) -> Self {
        Self(self.0 * scalar.0)
    }
}

impl Sum for Ed448Element {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(Point::NEUTRAL), Add::add)
    }
}

/// The library has projective coordinates only, so that nothing is gained by a conversion.
impl VartimePoint for Ed448Element {
    type Affine = Self;
    // Measured.
    const COSTS: Costs = Costs { in_batch: 10, double: 5, add: 10, entry: 10 };

    fn identity() -> Self {
        Self(Point::NEUTRAL)
    }

    fn double(&self) -> Self {
        Self(self.0.double())
    }

    fn add(&self, other: &Self) -> Self {
        *self + *other
    }

    fn add_affine(&self, other: &Self) -> Self {
        *self + *other
    }

    fn negate_affine(point: &Self) -> Self {
        -*point
    }

    fn batch_to_affine(points: &[Self]) -> Vec<Self> {
        points.to_vec()
    }

    fn batch_add(left: &[Self], right: &[Self]) -> Vec<Self> {
        left.iter().zip(right).map(|(left, right)| *left + *right).collect()
    }
}

impl CombPoint for Ed448Element {
    type Scalar = Ed448Scalar;
    type Entry = Self;
    const ORDER_BITS: usize = 446;

    fn identity() -> Self {
        Self(Point::NEUTRAL)
    }

    fn double(&self) -> Self {
        Self(self.0.double())
    }

    fn plus(&self, other: &Self) -> Self {
        *self + *other
    }

    fn negated(&self) -> Self {
        -*self
    }

    fn to_entries(points: &[Self]) -> Vec<Self> {
        points.to_vec()
    }

    fn select(row: &[Self; ENTRIES], index: u8, negative: Choice) -> Self {
        let mut selected = Point::NEUTRAL;
        for (entry, choice) in row.iter().zip(comb::choices(index)) {
            selected.set_cond(&entry.0, u32::from(choice.unwrap_u8()).wrapping_neg());
        }
        selected.set_condneg(u32::from(negative.unwrap_u8()).wrapping_neg());
        Self(selected)
    }

    fn plus_entry(&self, entry: &Self) -> Self {
        *self + *entry
    }

    fn little_endian(scalar: &Ed448Scalar) -> [u8; 57] {
        scalar.encode()
    }
}

/// Parses any point of the curve as RFC 8032, section 5.2.3, does: y below p, no stray bits, no negative zero.
fn decompress(bytes: &[u8]) -> Result<Ed448Element, DecodeError> {
    if bytes.len() != Ed448::ENCODED_LEN {
        return Err(DecodeError::Length { expected: Ed448::ENCODED_LEN, got: bytes.len() });
    }
    Point::decode(bytes).map(Ed448Element).ok_or(DecodeError::NotCanonical)
}

impl Group for Ed448 {
    type Scalar = Ed448Scalar;
    type Element = Ed448Element;
    type Encoding = [u8; 57];

    const HAS_COFACTOR: bool = true;
    const TABLE_COST: u32 = 3;
    const NAME: &'static str = "ed448";
    const ENCODED_LEN: usize = 57;

    fn identity() -> Ed448Element {
        Ed448Element(Point::NEUTRAL)
    }

    fn generator() -> Ed448Element {
        Ed448Element(Point::BASE)
    }

    fn mul_base(scalar: &Ed448Scalar) -> Ed448Element {
        Ed448Element(Point::mulgen(&scalar.0))
    }

    fn table(element: &Ed448Element) -> Table<Self> {
        let comb = Comb::new(element, comb::Size::Small);
        Box::new(move |scalar| comb.multiply(scalar))
    }

    fn vartime_msm(scalars: &[Ed448Scalar], points: &[Ed448Element]) -> Ed448Element {
        let scalars: Vec<[u8; 57]> = scalars.iter().map(Scalar::encode).collect();
        msm::vartime_msm(&scalars, points)
    }

    fn vartime_msm_short(scalars: &[u128], points: &[Ed448Element]) -> Ed448Element {
        msm::vartime_msm_short(scalars, points)
    }

    fn vartime_double_mul(base_scalar: &Ed448Scalar, element: &Ed448Element, scalar: &Ed448Scalar) -> Ed448Element {
        Ed448Element(element.0.mul_add_mulgen_vartime(&scalar.0, &base_scalar.0))
    }

    /// The suite edwards448_XOF:SHAKE256_ELL2_RO_ of RFC 9380.
    fn hash_to_group(dst: &[u8], message: &[&[u8]]) -> Ed448Element {
        Ed448Element(hash::hash_to_curve(dst, message))
    }

    fn encode(element: &Ed448Element) -> [u8; 57] {
        element.0.encode()
    }

    /// One by one: the library shows no coordinates, so that no inversion can be shared.
    fn encode_batch(elements: &[Ed448Element]) -> Vec<[u8; 57]> {
        elements.iter().map(Self::encode).collect()
    }

    fn decode_allowing_identity(bytes: &[u8]) -> Result<Ed448Element, DecodeError> {
        let element = decompress(bytes)?;
        if Self::is_in_subgroup(&element) { Ok(element) } else { Err(DecodeError::Subgroup) }
    }

    fn decode_unchecked_subgroup(bytes: &[u8]) -> Result<Ed448Element, DecodeError> {
        let element = decompress(bytes)?;
        if Self::is_identity(&element) { Err(DecodeError::Identity) } else { Ok(element) }
    }

    fn is_in_subgroup(element: &Ed448Element) -> bool {
        element.0.is_in_subgroup() == u32::MAX
    }
}
