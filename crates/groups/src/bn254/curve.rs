//! Points on the curve and its twist, y^2 = x^3 + b, with complete formulas: the same operations serve every pair of points.

use super::encoding;
use super::field::Field;
use super::mul;
use super::scalar::Bn254Scalar;
use crate::hex_debug;
use crate::msm::VartimePoint;
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, Mul, Neg, Sub};
use halo2curves::bn256::Fq;
use subtle::{Choice, ConstantTimeEq};
use zeroize::{Zeroize, optimization_barrier};

/// The curve or its twist.
pub trait Curve: Copy + fmt::Debug + Eq + Send + Sync + 'static {
    /// The field of the coordinates.
    type Coordinate: Field;
    /// The name of its points in `Debug`.
    const ELEMENT_NAME: &'static str;
    /// The generator's affine coordinates.
    const GENERATOR: (Self::Coordinate, Self::Coordinate);
    /// b of the curve's equation.
    const B: Self::Coordinate;
    /// The cube root of unity with which (beta x, y) is the multiple of (x, y) by
    /// [`LAMBDA`](super::mul::LAMBDA), for points of prime order.
    const BETA: Fq;

    /// 3 b t.
    fn times_3b(t: Self::Coordinate) -> Self::Coordinate;
}

/// A point of G1 or G2 in homogeneous coordinates: (X/Z, Y/Z), or the identity where Z is zero.
#[derive(Clone, Copy)]
pub struct Point<C: Curve> {
    pub(super) x: C::Coordinate,
    pub(super) y: C::Coordinate,
    pub(super) z: C::Coordinate,
}

/// A point other than the identity, or a stand-in for the identity where the caller allows one.
#[derive(Clone, Copy)]
pub(crate) struct Affine<C: Curve> {
    pub(super) x: C::Coordinate,
    pub(super) y: C::Coordinate,
}

impl<C: Curve> Point<C> {
    pub(super) const IDENTITY: Self = Self { x: C::Coordinate::ZERO, y: C::Coordinate::ONE, z: C::Coordinate::ZERO };
    pub(super) const GENERATOR: Self = Self { x: C::GENERATOR.0, y: C::GENERATOR.1, z: C::Coordinate::ONE };

    pub(super) fn is_identity(&self) -> Choice {
        self.z.is_zero()
    }

    /// Renes, Costello and Batina, "Complete addition formulas for prime order elliptic curves" (2016), algorithm 9.
    pub(super) fn double(&self) -> Self {
        let (x, y, z) = (self.x, self.y, self.z);
        let yy = y.square();
        let bzz3 = C::times_3b(z.square());
        let yy8 = yy.double().double().double();
        let difference = yy - (bzz3.double() + bzz3);
        Self { x: (difference * (x * y)).double(), y: difference * (yy + bzz3) + bzz3 * yy8, z: yy8 * (y * z) }
    }

    /// Addition by algorithm 7 of the same paper.
    fn plus(&self, other: &Self) -> Self {
        let xx = self.x * other.x;
        let yy = self.y * other.y;
        let zz = self.z * other.z;
        let xy = (self.x + self.y) * (other.x + other.y) - (xx + yy);
        let yz = (self.y + self.z) * (other.y + other.z) - (yy + zz);
        let xz = (self.x + self.z) * (other.x + other.z) - (xx + zz);
        Self::finish(xx, yy, zz, xy, yz, xz)
    }

    /// Mixed addition by algorithm 8 of the same paper; `other` must not be the identity.
    pub(super) fn plus_affine(&self, other: &Affine<C>) -> Self {
        let xx = self.x * other.x;
        let yy = self.y * other.y;
        let xy = (self.x + self.y) * (other.x + other.y) - (xx + yy);
        let yz = other.y * self.z + self.y;
        let xz = other.x * self.z + self.x;
        Self::finish(xx, yy, self.z, xy, yz, xz)
    }

    /// The common end of both additions, from X1 X2, Y1 Y2, Z1 Z2 and the mixed sums X1 Y2 + X2 Y1, ...
    fn finish(
        xx: C::Coordinate,
        yy: C::Coordinate,
        zz: C::Coordinate,
        xy: C::Coordinate,
        yz: C::Coordinate,
        xz: C::Coordinate,
    ) -> Self {
        let xx3 = xx.double() + xx;
        let bzz3 = C::times_3b(zz);
        let bxz3 = C::times_3b(xz);
        let (sum, difference) = (yy + bzz3, yy - bzz3);
        Self { x: xy * difference - yz * bxz3, y: difference * sum + bxz3 * xx3, z: sum * yz + xx3 * xy }
    }

    /// `other` if `choice`, otherwise this.
    pub(super) fn select(&self, other: &Self, choice: Choice) -> Self {
        Self { x: self.x.select(other.x, choice), y: self.y.select(other.y, choice), z: self.z.select(other.z, choice) }
    }

    /// Its product with a public integer, bit by bit; also right for points outside the prime-order group.
    pub(super) fn vartime_times(&self, factor: u64) -> Self {
        (0..64 - factor.leading_zeros()).rev().fold(Self::IDENTITY, |sum, bit| {
            let sum = sum.double();
            if factor >> bit & 1 == 1 { sum.plus(self) } else { sum }
        })
    }

    /// Divides by Z in constant time; the identity gives (0, 1).
    pub(super) fn to_affine(self) -> Affine<C> {
        let inverse = self.z.invert();
        Affine { x: self.x * inverse, y: (self.y * inverse).select(C::Coordinate::ONE, self.is_identity()) }
    }

    /// Divides many points by their Z, with one inversion (Montgomery's trick).
    pub(super) fn batch_to_affine(points: &[Self]) -> Vec<Affine<C>> {
        let mut product = C::Coordinate::ONE;
        let prefixes: Vec<C::Coordinate> = points
            .iter()
            .map(|point| {
                let prefix = product;
                product = product * point.z.select(C::Coordinate::ONE, point.is_identity());
                prefix
            })
            .collect();
        let mut inverse = product.invert();
        let mut affine: Vec<Affine<C>> = points
            .iter()
            .zip(prefixes)
            .rev()
            .map(|(point, prefix)| {
                let is_identity = point.is_identity();
                let factor = inverse * prefix;
                inverse = inverse * point.z.select(C::Coordinate::ONE, is_identity);
                Affine { x: point.x * factor, y: (point.y * factor).select(C::Coordinate::ONE, is_identity) }
            })
            .collect();
        affine.reverse();
        affine
    }
}

impl<C: Curve> Affine<C> {
    /// (0, 1), which is on neither curve, stands for the identity.
    pub(super) fn is_identity(&self) -> Choice {
        self.x.is_zero() & self.y.equal(C::Coordinate::ONE)
    }

    pub(super) fn to_point(self) -> Point<C> {
        let point = Point { x: self.x, y: self.y, z: C::Coordinate::ONE };
        point.select(&Point::IDENTITY, self.is_identity())
    }
}

impl<C: Curve> fmt::Debug for Point<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![0; C::Coordinate::ENCODED_LEN];
        encoding::compress(&self.to_affine(), &mut bytes);
        hex_debug(f, C::ELEMENT_NAME, &bytes)
    }
}

impl<C: Curve> ConstantTimeEq for Point<C> {
    fn ct_eq(&self, other: &Self) -> Choice {
        (self.x * other.z).equal(other.x * self.z) & (self.y * other.z).equal(other.y * self.z)
    }
}

impl<C: Curve> PartialEq for Point<C> {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl<C: Curve> Eq for Point<C> {}

impl<C: Curve> Zeroize for Point<C> {
    fn zeroize(&mut self) {
        // A point of all zeros would compare equal to every point.
        *self = Self::IDENTITY;
        optimization_barrier(self);
    }
}

impl<C: Curve> Add for Point<C> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.plus(&other)
    }
}

impl<C: Curve> Sub for Point<C> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl<C: Curve> Neg for Point<C> {
    type Output = Self;
    fn neg(self) -> Self {
        Self { y: -self.y, ..self }
    }
}

impl<C: Curve> Mul<Bn254Scalar> for Point<C> {
    type Output = Self;
    fn mul(self, scalar: Bn254Scalar) -> Self {
        mul::multiply(&self, scalar)
    }
}

impl<C: Curve> Sum for Point<C> {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::IDENTITY, Add::add)
    }
}

impl<C: Curve> VartimePoint for Point<C> {
    type Affine = Affine<C>;

    fn identity() -> Self {
        Self::IDENTITY
    }

    fn double(&self) -> Self {
        Self::double(self)
    }

    fn add(&self, other: &Self) -> Self {
        self.plus(other)
    }

    fn add_affine(&self, other: &Affine<C>) -> Self {
        if bool::from(other.is_identity()) { *self } else { self.plus_affine(other) }
    }

    fn negate_affine(point: &Affine<C>) -> Affine<C> {
        // The stand-in for the identity is its own negative.
        if bool::from(point.is_identity()) { *point } else { Affine { x: point.x, y: -point.y } }
    }

    fn batch_to_affine(points: &[Self]) -> Vec<Affine<C>> {
        Self::batch_to_affine(points)
    }
}
