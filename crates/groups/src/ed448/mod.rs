//! The prime-order group of Ed448 (RFC 8032): the points of edwards448 that its generator generates.
//!
//! The curve has four times as many points as the group. Decoding refuses points outside the group, except in
//! `decode_unchecked_subgroup`.

mod encoding;
mod hash;
mod mul;
#[cfg(test)]
mod oracle;
mod point;
mod scalar;
mod subgroup;
mod table;
mod twisted;
mod vartime;

pub use scalar::Ed448Scalar;

use self::encoding::ENCODED_LEN;
use self::point::Point;
use self::twisted::FixedPoint;
use crate::comb::Size;
use crate::msm;
use crate::{DecodeError, Group, Scalar, Table, hex_debug};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, Mul, Neg, Sub};
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
        hex_debug(f, "Ed448Element", &encoding::encode(&self.0))
    }
}

impl ConstantTimeEq for Ed448Element {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
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
    fn add(mut self, other: Self) -> Self {
        self.0.add_assign(&other.0);
        self
    }
}

impl Sub for Ed448Element {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Neg for Ed448Element {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.negate())
    }
}

impl Mul<Ed448Scalar> for Ed448Element {
    type Output = Self;
    fn mul(self, scalar: Ed448Scalar) -> Self {
        Self(mul::mul(&self.0, &scalar))
    }
}

impl Sum for Ed448Element {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        let mut sum = Point::NEUTRAL;
        iter.for_each(|element| sum.add_assign(&element.0));
        Self(sum)
    }
}

/// The coordinates of elements.
fn points(elements: &[Ed448Element]) -> Vec<Point> {
    elements.iter().map(|element| element.0).collect()
}

impl Group for Ed448 {
    type Scalar = Ed448Scalar;
    type Element = Ed448Element;
    type Encoding = [u8; ENCODED_LEN];

    const HAS_COFACTOR: bool = true;
    const TABLE_COST: u32 = 2;
    const NAME: &'static str = "ed448";
    const ENCODED_LEN: usize = ENCODED_LEN;

    fn identity() -> Ed448Element {
        Ed448Element(Point::NEUTRAL)
    }

    fn generator() -> Ed448Element {
        Ed448Element(Point::GENERATOR)
    }

    fn mul_base(scalar: &Ed448Scalar) -> Ed448Element {
        Ed448Element(mul::mul_generator(scalar))
    }

    fn table(element: &Ed448Element) -> Table<Self> {
        let point = FixedPoint::new(&element.0, Size::Small);
        Box::new(move |scalar| Ed448Element(point.multiply(scalar)))
    }

    fn vartime_msm(scalars: &[Ed448Scalar], elements: &[Ed448Element]) -> Ed448Element {
        let scalars: Vec<[u8; 57]> = scalars.iter().map(Scalar::encode).collect();
        Ed448Element(msm::vartime_msm(&scalars, &points(elements)))
    }

    fn vartime_msm_short(scalars: &[u128], elements: &[Ed448Element]) -> Ed448Element {
        Ed448Element(msm::vartime_msm_short(scalars, &points(elements)))
    }

    fn vartime_double_mul(base_scalar: &Ed448Scalar, element: &Ed448Element, scalar: &Ed448Scalar) -> Ed448Element {
        Ed448Element(vartime::double_mul(base_scalar, &element.0, scalar))
    }

    /// The suite edwards448_XOF:SHAKE256_ELL2_RO_ of RFC 9380.
    fn hash_to_group(dst: &[u8], message: &[&[u8]]) -> Ed448Element {
        Ed448Element(hash::hash_to_curve(dst, message))
    }

    fn encode(element: &Ed448Element) -> [u8; ENCODED_LEN] {
        encoding::encode(&element.0)
    }

    fn encode_batch(elements: &[Ed448Element]) -> Vec<[u8; ENCODED_LEN]> {
        encoding::encode_batch(&points(elements))
    }

    fn decode_allowing_identity(bytes: &[u8]) -> Result<Ed448Element, DecodeError> {
        let element = Ed448Element(encoding::decode(bytes)?);
        if Self::is_in_subgroup(&element) { Ok(element) } else { Err(DecodeError::Subgroup) }
    }

    fn decode_unchecked_subgroup(bytes: &[u8]) -> Result<Ed448Element, DecodeError> {
        let element = Ed448Element(encoding::decode(bytes)?);
        if Self::is_identity(&element) { Err(DecodeError::Identity) } else { Ok(element) }
    }

    fn is_in_subgroup(element: &Ed448Element) -> bool {
        subgroup::is_in_subgroup(&element.0).into()
    }

    fn is_identity(element: &Ed448Element) -> bool {
        element.0.is_neutral().into()
    }
}
