//! Points of edwards448, x^2 + y^2 = 1 + d x^2 y^2 with d = -39081, and their formulas.
//!
//! Coordinates are extended, with the unified addition of Hisil, Wong, Carter and Dawson ("Twisted Edwards curves
//! revisited", 2008, sections 3 and 3.1), except that the fourth coordinate stays a product of two factors, as in
//! Hamburg's extensible coordinates ("Fast and compact elliptic-curve cryptography", 2012): doublings do without it.
//! Since d is not a square, the formulas hold for any two points of the curve, those outside the group included.

use crrl::field::GF448;
use subtle::{Choice, ConstantTimeEq};

/// -d.
pub(super) const MINUS_D: u32 = 39_081;

/// A point of the curve, or of the twisted one with a = A: x = X / Z, y = Y / Z, X Y = Z T U.
#[derive(Clone, Copy)]
pub(super) struct Point<const A: i8 = 1> {
    pub(super) x: GF448,
    pub(super) y: GF448,
    pub(super) z: GF448,
    pub(super) t: GF448,
    pub(super) u: GF448,
}

/// A point to be added: x, y and -d x y.
#[derive(Clone, Copy)]
pub(super) struct Affine {
    pub(super) x: GF448,
    pub(super) y: GF448,
    pub(super) minus_dt: GF448,
}

/// A point to be added that is not affine, which spares an inversion: X, Y, Z and -d X Y / Z.
#[derive(Clone, Copy)]
pub(super) struct Addend {
    pub(super) affine: Affine,
    pub(super) z: GF448,
}

/// A choice from the mask of a field comparison, all ones or zero.
pub(super) fn choice(mask: u32) -> Choice {
    mask.ct_eq(&u32::MAX)
}

impl<const A: i8> Point<A> {
    /// The neutral element.
    pub(super) const NEUTRAL: Self =
        Self { x: GF448::ZERO, y: GF448::ONE, z: GF448::ONE, t: GF448::ZERO, u: GF448::ONE };

    /// (2 x y / (y^2 + b x^2), (y^2 - b x^2) / (2 - y^2 - a x^2)), in 3M + 4S. With b = a that is twice the point
    /// (Hisil, Wong, Carter and Dawson, section 3.3), with b = -a its image on the other curve under an isogeny of
    /// degree four (Hamburg, "Decaf", 2015).
    pub(super) fn map<const B: i8>(&self) -> Point<B> {
        let (t, sum, difference, k) = self.factors();
        let (denominator, u) = if B == 1 { (sum, difference) } else { (difference, sum) };
        Point { x: t * k, y: sum * difference, z: denominator * k, t, u }
    }

    /// 2 X Y, Y^2 + X^2, Y^2 - X^2, 2 Z^2 - Y^2 - a X^2.
    #[inline(always)]
    fn factors(&self) -> (GF448, GF448, GF448, GF448) {
        let (xx, yy) = (self.x.square(), self.y.square());
        let (sum, difference) = (yy + xx, yy - xx);
        let t = (self.x + self.y).square() - sum;
        (t, sum, difference, self.z.square().mul2() - if A == 1 { sum } else { difference })
    }

    /// The inverse: (-x, y).
    pub(super) fn negate(&self) -> Self {
        Self { x: -self.x, t: -self.t, ..*self }
    }

    /// (x, y).
    pub(super) fn coordinates(&self) -> (GF448, GF448) {
        let inverse = GF448::ONE / self.z;
        (self.x * inverse, self.y * inverse)
    }

    /// (x, y) of many points, sharing the inversions, in constant time.
    pub(super) fn batch_coordinates(points: &[Self]) -> impl Iterator<Item = (GF448, GF448)> {
        let mut inverses: Vec<GF448> = points.iter().map(|point| point.z).collect();
        GF448::batch_invert(&mut inverses);
        points.iter().zip(inverses).map(|(point, inverse)| (point.x * inverse, point.y * inverse))
    }
}

impl Point {
    /// The generator of RFC 8032, section 5.2.
    pub(super) const GENERATOR: Self = Self::from_affine(
        GF448::w64be([
            0x4f19_70c6_6bed_0ded,
            0x221d_15a6_22bf_36da,
            0x9e14_6570_470f_1767,
            0xea6d_e324_a3d3_a464,
            0x12ae_1af7_2ab6_6511,
            0x433b_80e1_8b00_938e,
            0x2626_a82b_c70c_c05e,
        ]),
        GF448::w64be([
            0x693f_4671_6eb6_bc24,
            0x8876_2037_56c9_c762,
            0x4bea_7373_6ca3_9840,
            0x8778_9c1e_05a0_c2d7,
            0x3ad3_ff1c_e67c_39c4,
            0xfdbd_132c_4ed7_c8ad,
            0x9808_795b_f230_fa14,
        ]),
    );

    /// A point of the curve from its coordinates.
    pub(super) const fn from_affine(x: GF448, y: GF448) -> Self {
        Self { x, y, z: GF448::ONE, t: x, u: y }
    }

    /// Doubles the point: [`Point::map`] in place, as additions are, since points are long to copy.
    pub(super) fn double_assign(&mut self) {
        let b = (self.x + self.y).square();
        let (xx, yy) = (self.x.square(), self.y.square());
        let sum = xx + yy;
        let j = sum - self.z.square().mul2();
        let (t, u) = (b - sum, xx - yy);
        self.x = t * j;
        self.y = sum * u;
        self.z = sum * j;
        (self.t, self.u) = (t, u);
    }

    /// Adds any point: 10M.
    pub(super) fn add_assign(&mut self, other: &Self) {
        let minus_c = (self.t * self.u * (other.t * other.u)).mul_small(MINUS_D);
        self.combine(&other.x, &other.y, &minus_c, &(self.z * other.z));
    }

    /// Adds an affine point: 8M.
    pub(super) fn add_affine_assign(&mut self, other: &Affine) {
        let (minus_c, d) = (self.t * self.u * other.minus_dt, self.z);
        self.combine(&other.x, &other.y, &minus_c, &d);
    }

    /// Adds a point prepared for that: 9M.
    pub(super) fn add_addend_assign(&mut self, other: &Addend) {
        let Affine { x, y, minus_dt } = &other.affine;
        self.combine(x, y, &(self.t * self.u * minus_dt), &(self.z * other.z));
    }

    /// What all additions have in common. The factors of the fourth coordinate are the paper's E and H; its C has the
    /// other sign, so that d is multiplied as a positive number.
    #[inline(always)]
    fn combine(&mut self, x: &GF448, y: &GF448, minus_c: &GF448, d: &GF448) {
        let (a, b) = (self.x * x, self.y * y);
        self.t = (self.x + self.y) * (x + y) - a - b;
        self.u = b - a;
        let (f, g) = (d + minus_c, d - minus_c);
        self.x = self.t * f;
        self.y = g * self.u;
        self.z = f * g;
    }

    /// The form that is cheapest to add among those that need no inversion.
    pub(super) fn to_addend(self) -> Addend {
        let minus_dt = (self.t * self.u).mul_small(MINUS_D);
        Addend { affine: Affine { x: self.x, y: self.y, minus_dt }, z: self.z }
    }

    /// Whether this is the neutral element: the only point with y = 1.
    pub(super) fn is_neutral(&self) -> Choice {
        choice(self.y.equals(self.z))
    }
}

impl ConstantTimeEq for Point {
    fn ct_eq(&self, other: &Self) -> Choice {
        let x = (self.x * other.z).equals(other.x * self.z);
        let y = (self.y * other.z).equals(other.y * self.z);
        choice(x & y)
    }
}

impl Affine {
    /// A point of the curve from its coordinates.
    pub(super) fn new(x: GF448, y: GF448) -> Self {
        Self { x, y, minus_dt: (x * y).mul_small(MINUS_D) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    fn equal(ours: &Point, theirs: &crrl::ed448::Point) -> bool {
        assert!(oracle::is_on_curve(ours));
        oracle::theirs(ours).equals(*theirs) == u32::MAX
    }

    /// Sums of all pairs: equal and opposite points, the neutral element and the other points of small order among them.
    #[test]
    fn sums_are_the_library_s() {
        let points = oracle::points();
        let theirs: Vec<_> = points.iter().map(oracle::theirs).collect();
        let coordinates: Vec<_> = Point::batch_coordinates(&points).collect();
        for (left, their_left) in points.iter().zip(&theirs) {
            for ((right, their_right), (x, y)) in points.iter().zip(&theirs).zip(&coordinates) {
                let [mut any, mut affine, mut addend] = [*left; 3];
                any.add_assign(right);
                affine.add_affine_assign(&Affine::new(*x, *y));
                addend.add_addend_assign(&right.to_addend());
                assert!(equal(&any, &(their_left + their_right)));
                assert!(bool::from(any.ct_eq(&affine) & any.ct_eq(&addend)));
                assert!(oracle::is_on_curve(&affine) && oracle::is_on_curve(&addend));
            }
        }
    }

    #[test]
    fn doubles_and_inverses_are_the_library_s() {
        for point in oracle::points() {
            let theirs = oracle::theirs(&point);
            let mut twice = point;
            twice.double_assign();
            assert!(equal(&twice, &theirs.double()));
            assert!(equal(&point.map(), &theirs.double()));
            assert!(equal(&point.negate(), &-theirs));
            let mut nothing = point;
            nothing.add_assign(&point.negate());
            assert!(bool::from(nothing.is_neutral()));
        }
    }

    #[test]
    fn points_are_equal_if_their_encodings_are() {
        let points = oracle::points();
        for left in &points {
            let theirs = oracle::theirs(left);
            assert_eq!(left.is_neutral().unwrap_u8(), u8::from(theirs.isneutral() != 0));
            for right in &points {
                assert_eq!(left.ct_eq(right).unwrap_u8(), u8::from(theirs.equals(oracle::theirs(right)) != 0));
            }
        }
    }
}
