//! Points of y^2 = x^3 + a x + b in Jacobian coordinates, for multi-scalar multiplication. They are a third cheaper than the
//! complete formulas that constant-time code needs, but variable-time, with a branch for every exception. Formulas from the
//! Explicit-Formulas Database: dbl-2001-b, dbl-2009-l, add-2007-bl, madd-2007-bl.

use super::Field;
use crate::msm::{Costs, VartimePoint};
use core::marker::PhantomData;

/// The curve's shape: the formulas depend on a alone.
pub(crate) trait Shape: Copy + 'static {
    type Field: Field;
    /// Whether a is -3; otherwise it is zero.
    const A_IS_MINUS_3: bool;
}

/// (X/Z^2, Y/Z^3), or the identity where Z is zero.
#[derive(Clone, Copy)]
pub(crate) struct Jacobian<S: Shape> {
    x: S::Field,
    y: S::Field,
    z: S::Field,
}

/// (x, y), or (0, 0), which is on no curve of odd order, for the identity.
#[derive(Clone, Copy)]
pub(crate) struct Affine<S: Shape> {
    x: S::Field,
    y: S::Field,
    shape: PhantomData<S>,
}

impl<S: Shape> Affine<S> {
    pub(crate) const fn new(x: S::Field, y: S::Field) -> Self {
        Self { x, y, shape: PhantomData }
    }

    fn is_identity(&self) -> bool {
        self.y.is_zero()
    }
}

impl<S: Shape> Jacobian<S> {
    /// From homogeneous coordinates (X/Z, Y/Z).
    pub(crate) fn from_projective(x: S::Field, y: S::Field, z: S::Field) -> Self {
        Self { x: x * z, y: y * z.square(), z }
    }

    /// Homogeneous coordinates of the same point.
    pub(crate) fn to_projective(self) -> (S::Field, S::Field, S::Field) {
        (self.x * self.z, self.y, self.z * self.z.square())
    }
}

impl<S: Shape> VartimePoint for Jacobian<S> {
    type Affine = Affine<S>;
    const BATCH_FROM: usize = 100;
    // Measured on P-256; secp256k1's doublings are a little cheaper.
    const COSTS: Costs = Costs { in_batch: 7, double: 8, add: 14, entry: 7 };

    fn identity() -> Self {
        Self { x: S::Field::ZERO, y: S::Field::ONE, z: S::Field::ZERO }
    }

    fn double(&self) -> Self {
        let yy = self.y.square();
        let (m, s) = if S::A_IS_MINUS_3 {
            let zz = self.z.square();
            (((self.x - zz) * (self.x + zz)).triple(), self.x * yy)
        } else {
            (self.x.square().triple(), self.x * yy)
        };
        let s4 = s.double().double();
        let x = m.square() - s4.double();
        Self { x, y: m * (s4 - x) - yy.square().double().double().double(), z: (self.y * self.z).double() }
    }

    fn add(&self, other: &Self) -> Self {
        if self.z.is_zero() {
            return *other;
        }
        if other.z.is_zero() {
            return *self;
        }
        let (zz1, zz2) = (self.z.square(), other.z.square());
        let (u1, u2) = (self.x * zz2, other.x * zz1);
        let (s1, s2) = (self.y * other.z * zz2, other.y * self.z * zz1);
        let (h, r) = (u2 - u1, s2 - s1);
        if h.is_zero() {
            return if r.is_zero() { self.double() } else { Self::identity() };
        }
        let hh = h.square();
        let (hhh, v) = (h * hh, u1 * hh);
        let x = r.square() - hhh - v.double();
        Self { x, y: r * (v - x) - s1 * hhh, z: self.z * other.z * h }
    }

    fn add_affine(&self, other: &Affine<S>) -> Self {
        if other.is_identity() {
            return *self;
        }
        if self.z.is_zero() {
            return Self { x: other.x, y: other.y, z: S::Field::ONE };
        }
        let zz = self.z.square();
        let (h, r) = (other.x * zz - self.x, other.y * (self.z * zz) - self.y);
        if h.is_zero() {
            return if r.is_zero() { self.double() } else { Self::identity() };
        }
        let hh = h.square();
        let (hhh, v) = (h * hh, self.x * hh);
        let x = r.square() - hhh - v.double();
        Self { x, y: r * (v - x) - self.y * hhh, z: self.z * h }
    }

    fn negate_affine(point: &Affine<S>) -> Affine<S> {
        Affine::new(point.x, -point.y)
    }

    fn batch_to_affine(points: &[Self]) -> Vec<Affine<S>> {
        // The inverse of zero is zero: the identity becomes (0, 0).
        let mut inverses: Vec<S::Field> = points.iter().map(|point| point.z).collect();
        S::Field::vartime_batch_invert(&mut inverses);
        points
            .iter()
            .zip(inverses)
            .map(|(point, inverse)| {
                let square = inverse.square();
                Affine::new(point.x * square, point.y * square * inverse)
            })
            .collect()
    }

    fn batch_add(left: &[Affine<S>], right: &[Affine<S>]) -> Vec<Affine<S>> {
        // The slope is (y2 - y1) / (x2 - x1), or the tangent's (3 x^2 + a) / (2 y) for equal points; denominators that
        // are zero belong to sums with the identity or of opposite points.
        let denominator = |p: &Affine<S>, q: &Affine<S>| {
            let difference = q.x - p.x;
            if difference.is_zero() { p.y + q.y } else { difference }
        };
        let mut inverses: Vec<S::Field> = left.iter().zip(right).map(|(p, q)| denominator(p, q)).collect();
        S::Field::vartime_batch_invert(&mut inverses);
        let sum = |((p, q), inverse): ((&Affine<S>, &Affine<S>), S::Field)| {
            if p.is_identity() {
                return *q;
            }
            if q.is_identity() {
                return *p;
            }
            let slope = if !(q.x - p.x).is_zero() {
                (q.y - p.y) * inverse
            } else if inverse.is_zero() {
                return Affine::new(S::Field::ZERO, S::Field::ZERO);
            } else {
                let a = if S::A_IS_MINUS_3 { S::Field::ONE.triple() } else { S::Field::ZERO };
                (p.x.square().triple() - a) * inverse
            };
            let x = slope.square() - p.x - q.x;
            Affine::new(x, slope * (p.x - x) - p.y)
        };
        left.iter().zip(right).zip(inverses).map(sum).collect()
    }
}
