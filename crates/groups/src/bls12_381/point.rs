//! The groups G1 and G2.

use super::BlsScalar;
use super::ffi::{Method, ORDER_BITS, RawPoint};
use crate::comb::{Comb, Size};
use crate::{DecodeError, Group, Table, bit_length, hex_debug};
use blst::{blst_p1, blst_p2};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, Mul, Neg, Sub};
use std::sync::OnceLock;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroize;

/// The group of points on the curve itself: short encodings (48 bytes), fast arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G1;

/// The group of points on the twist: long encodings (96 bytes), about 2.5 times slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G2;

/// An element of [`G1`], in Jacobian coordinates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct G1Element(blst_p1);

/// An element of [`G2`], in Jacobian coordinates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct G2Element(blst_p2);

/// The number of products from which sharing an inversion pays; an inversion takes as long as fifty multiplications.
const BATCH_FROM: usize = 16;

/// How to sum `n` products with scalars of `bits` bits fastest; found by measurement, see `docs/adr/0001-groups.md`.
const fn msm_method<P: RawPoint>(n: usize, bits: usize) -> Method {
    let (long, short) = P::BUCKETS_FROM;
    match bits {
        // blst's own choice for a single point needs no table.
        _ if n == 1 => Method::Pippenger,
        129.. if n < long => Method::Windowed(5),
        65..=128 if n < short => Method::Windowed(4),
        17..=64 if n < short => Method::Windowed(3),
        0..=16 if n < short => Method::Windowed(2),
        _ => Method::Pippenger,
    }
}

fn msm<P: RawPoint>(scalars: &[BlsScalar], points: &[P]) -> P {
    let n = scalars.len().min(points.len());
    let points = P::batch_to_affine(points.get(..n).unwrap_or_default());
    let scalars: Vec<u8> = scalars.iter().take(n).flat_map(|scalar| scalar.to_little_endian().b).collect();
    P::vartime_msm(&points, &scalars, ORDER_BITS, msm_method::<P>(n, ORDER_BITS))
}

/// The cost follows the longest scalar, which Lagrange coefficients over a common denominator keep far below 128 bits.
fn msm_short<P: RawPoint>(scalars: &[u128], points: &[P]) -> P {
    let n = scalars.len().min(points.len());
    let bits = bit_length(scalars.iter().take(n));
    let points = P::batch_to_affine(points.get(..n).unwrap_or_default());
    let scalars: Vec<u8> =
        scalars.iter().take(n).flat_map(|scalar| scalar.to_le_bytes().into_iter().take(bits.div_ceil(8))).collect();
    P::vartime_msm(&points, &scalars, bits, msm_method::<P>(n, bits))
}

fn hash<P: RawPoint>(dst: &[u8], message: &[&[u8]]) -> P {
    match message {
        [] => P::hash(dst, &[], &[]),
        [only] => P::hash(dst, &[], only),
        [first, second] => P::hash(dst, first, second),
        many => P::hash(dst, &[], &many.concat()),
    }
}

fn decode<P: RawPoint>(bytes: &[u8]) -> Result<P, DecodeError> {
    P::uncompress(bytes).map(|affine| P::from_affine(&affine))
}

macro_rules! group {
    ($group:ident, $element:ident, $raw:ty, $len:literal, $name:literal) => {
        impl $element {
            pub(crate) const fn raw(&self) -> $raw {
                self.0
            }
        }

        impl fmt::Debug for $element {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex_debug(f, stringify!($element), &$group::encode(self))
            }
        }

        impl ConstantTimeEq for $element {
            fn ct_eq(&self, other: &Self) -> Choice {
                Choice::from(u8::from(self.0 == other.0))
            }
        }

        impl Zeroize for $element {
            fn zeroize(&mut self) {
                self.0.wipe();
            }
        }

        impl Add for $element {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(RawPoint::add(&self.0, &other.0))
            }
        }

        impl Sub for $element {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                self + -other
            }
        }

        impl Neg for $element {
            type Output = Self;
            fn neg(self) -> Self {
                Self(self.0.negate())
            }
        }

        impl Mul<BlsScalar> for $element {
            type Output = Self;
            fn mul(self, scalar: BlsScalar) -> Self {
                // The scalar may be secret; blst_scalar wipes itself when dropped.
                Self(RawPoint::mul(&self.0, &scalar.to_little_endian()))
            }
        }

        impl Sum for $element {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold($group::identity(), Add::add)
            }
        }

        impl Group for $group {
            type Scalar = BlsScalar;
            type Element = $element;
            type Encoding = [u8; $len];

            const HAS_COFACTOR: bool = true;
            const TABLE_COST: u32 = 3;
            const NAME: &'static str = $name;
            const ENCODED_LEN: usize = $len;

            fn identity() -> $element {
                // All zeros are infinity in Jacobian coordinates.
                $element(<$raw>::default())
            }

            fn generator() -> $element {
                $element(RawPoint::generator())
            }

            fn mul_base(scalar: &BlsScalar) -> $element {
                static COMB: OnceLock<Comb<$raw>> = OnceLock::new();
                $element(COMB.get_or_init(|| Comb::new(&RawPoint::generator(), Size::Large)).multiply(scalar))
            }

            fn mul_base_batch(scalars: &[BlsScalar]) -> Vec<$element> {
                static COMB: OnceLock<Comb<$raw>> = OnceLock::new();
                if scalars.len() < BATCH_FROM {
                    return scalars.iter().map(Self::mul_base).collect();
                }
                let comb = COMB.get_or_init(|| Comb::new(&RawPoint::generator(), Size::Batch));
                comb.multiply_all(scalars).into_iter().map($element).collect()
            }

            fn table(element: &$element) -> Table<Self> {
                let comb = Comb::new(&element.0, Size::Small);
                Box::new(move |scalar| $element(comb.multiply(scalar)))
            }

            fn vartime_msm(scalars: &[BlsScalar], points: &[$element]) -> $element {
                let points: Vec<_> = points.iter().map($element::raw).collect();
                $element(msm(scalars, &points))
            }

            fn vartime_msm_short(scalars: &[u128], points: &[$element]) -> $element {
                let points: Vec<_> = points.iter().map($element::raw).collect();
                $element(msm_short(scalars, &points))
            }

            fn hash_to_group(dst: &[u8], message: &[&[u8]]) -> $element {
                $element(hash(dst, message))
            }

            fn encode(element: &$element) -> [u8; $len] {
                <$raw>::compress(&element.0.to_affine())
            }

            fn encode_batch(elements: &[$element]) -> Vec<[u8; $len]> {
                let points: Vec<_> = elements.iter().map($element::raw).collect();
                RawPoint::batch_to_affine(&points).iter().map(<$raw>::compress).collect()
            }

            fn decode_allowing_identity(bytes: &[u8]) -> Result<$element, DecodeError> {
                let element = $element(decode(bytes)?);
                if Self::is_in_subgroup(&element) { Ok(element) } else { Err(DecodeError::Subgroup) }
            }

            fn decode_unchecked_subgroup(bytes: &[u8]) -> Result<$element, DecodeError> {
                let element = $element(decode(bytes)?);
                if Self::is_identity(&element) { Err(DecodeError::Identity) } else { Ok(element) }
            }

            fn is_in_subgroup(element: &$element) -> bool {
                element.0.is_in_subgroup()
            }

            fn is_identity(element: &$element) -> bool {
                element.0.is_infinity()
            }
        }
    };
}

group!(G1, G1Element, blst_p1, 48, "bls12-381-g1");
group!(G2, G2Element, blst_p2, 96, "bls12-381-g2");
