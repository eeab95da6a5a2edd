//! Products of fixed points of the group, by way of the curve -x^2 + y^2 = 1 + (d - 1) x^2 y^2, where an addition takes
//! a multiplication less.
//!
//! As in Hamburg's Decaf ("Decaf: eliminating cofactors through point compression", 2015), an isogeny of degree four leads to
//! that curve and another one back; their composition multiplies by four. On points of odd order each is one-to-one; components
//! of small order are lost.

use super::Ed448Scalar;
use super::point::{MINUS_D, Point};
use super::table::{self, Entry};
use crate::Scalar;
use crate::comb::{Comb, CombPoint, ENTRIES, Size};
use crrl::field::GF448;
use subtle::Choice;
use zeroize::Zeroize;

/// A point of odd order on the twisted curve. The addition formulas do not hold for all points of that curve, because its
/// coefficient -1 is not a square. But where a formula divides by zero, the sum or the difference of both points is at infinity
/// (Bernstein and Lange, "A complete set of addition laws for incomplete Edwards curves", 2011), and points at infinity have
/// order two or four.
type Twisted = Point<-1>;

/// 1 - d.
const MINUS_TWISTED_D: u32 = MINUS_D + 1;

impl Twisted {
    /// The unified addition of Hisil, Wong, Carter and Dawson, section 3.1, for a = -1. Takes y - x, y + x and z of the
    /// other point and 1 - d times the product of both fourth coordinates (and z's with it): these two twice if the
    /// others are not halved.
    #[inline(always)]
    fn combine(&self, difference: &GF448, sum: &GF448, minus_c: &GF448, d: &GF448) -> Self {
        let (a, b) = ((self.y - self.x) * difference, (self.y + self.x) * sum);
        let (e, f, g, h) = (b - a, d + minus_c, d - minus_c, b + a);
        Self { x: e * f, y: g * h, z: f * g, t: e, u: h }
    }
}

impl CombPoint for Twisted {
    type Scalar = Ed448Scalar;
    /// (y - x) / 2, (y + x) / 2, (1 - d) x y: Hamburg's "half Niels" form.
    type Entry = Entry<3>;
    const ORDER_BITS: usize = Ed448Scalar::BITS;

    fn identity() -> Self {
        Self::NEUTRAL
    }

    fn double(&self) -> Self {
        self.map()
    }

    fn plus(&self, other: &Self) -> Self {
        let minus_c = (self.t * self.u * (other.t * other.u)).mul_small(2 * MINUS_TWISTED_D);
        self.combine(&(other.y - other.x), &(other.y + other.x), &minus_c, &(self.z * other.z).mul2())
    }

    fn negated(&self) -> Self {
        self.negate()
    }

    fn to_entries(points: &[Self]) -> Vec<Entry<3>> {
        let entry =
            |(x, y): (GF448, GF448)| Entry::new([(y - x).half(), (y + x).half(), (x * y).mul_small(MINUS_TWISTED_D)]);
        Self::batch_coordinates(points).map(entry).collect()
    }

    fn select(row: &[Entry<3>; ENTRIES], index: u8, negative: Choice) -> Entry<3> {
        let mut selected = Entry::select(row, index);
        // The inverse of (x, y) is (-x, y).
        let Entry([difference, sum, product]) = &mut selected;
        table::swap_if(difference, sum, negative);
        table::negate_if(product, negative);
        selected
    }

    fn plus_entry(&self, entry: &Entry<3>) -> Self {
        let [difference, sum, product] = entry.elements();
        self.combine(&difference, &sum, &(self.t * self.u * product), &self.z)
    }

    fn little_endian(scalar: &Ed448Scalar) -> [u8; 57] {
        scalar.encode()
    }
}

/// Multiples of a fixed point of the group other than the neutral element.
pub(super) struct FixedPoint {
    comb: Comb<Twisted>,
    /// Takes away the factor that the isogenies bring.
    quarter: Ed448Scalar,
}

impl FixedPoint {
    pub(super) fn new(point: &Point, size: Size) -> Self {
        Self { comb: Comb::new(&point.map(), size), quarter: Ed448Scalar::from_u64(4).invert() }
    }

    /// The product in constant time.
    pub(super) fn multiply(&self, scalar: &Ed448Scalar) -> Point {
        let mut quarter = *scalar * self.quarter;
        let product = self.comb.multiply(&quarter).map();
        quarter.zeroize();
        product
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use crrl::ed448::{Point as Theirs, Scalar as TheirScalar};
    use subtle::ConstantTimeEq;

    /// Points of the group, the neutral element among them.
    fn group() -> Vec<Theirs> {
        oracle::points().iter().map(oracle::theirs).filter(|point| point.is_in_subgroup() != 0).collect()
    }

    fn twisted(point: &Theirs) -> Twisted {
        oracle::ours(point).map()
    }

    fn is_on_curve(Twisted { x, y, z, t, u }: &Twisted) -> bool {
        let t = t * u;
        let equation = (y.square() - x.square()).equals(z.square() - t.square().mul_small(MINUS_TWISTED_D));
        equation & (x * y).equals(z * t) & !z.iszero() == u32::MAX
    }

    /// Mapping back gives four times the point.
    fn equal(ours: &Twisted, theirs: Theirs) -> bool {
        assert!(is_on_curve(ours));
        oracle::theirs(&ours.map()).equals(theirs.xdouble(2)) == u32::MAX
    }

    #[test]
    fn the_isogenies_keep_sums_and_multiply_by_four() {
        let group = group();
        for left in &group {
            assert!(equal(&twisted(left), *left));
            assert!(equal(&twisted(left).double(), left.double()));
            assert!(equal(&twisted(left).negated(), -left));
            for right in &group {
                assert!(equal(&twisted(left).plus(&twisted(right)), left + right));
            }
        }
        assert!(bool::from(oracle::ours(&Theirs::NEUTRAL).map::<-1>().map::<1>().ct_eq(&Point::NEUTRAL)));
    }

    #[test]
    fn entries_are_added_and_subtracted() {
        let group = group();
        let entries = Twisted::to_entries(&group.iter().map(twisted).collect::<Vec<_>>());
        let row: &[Entry<3>; ENTRIES] = entries.first_chunk().unwrap();
        for left in group.iter().step_by(3) {
            for (right, index) in group.iter().zip(0..).take(ENTRIES) {
                let [plus, minus] = [0, 1].map(|negative| Twisted::select(row, index, Choice::from(negative)));
                assert!(equal(&twisted(left).plus_entry(&plus), left + right));
                assert!(equal(&twisted(left).plus_entry(&minus), left - right));
            }
        }
    }

    #[test]
    fn products_are_the_library_s() {
        let theirs = Theirs::BASE * TheirScalar::from_u64(1 << 50);
        let point = FixedPoint::new(&oracle::ours(&theirs), Size::Small);
        for scalar in oracle::scalars() {
            let product = point.multiply(&Ed448Scalar(scalar));
            assert!(oracle::is_on_curve(&product));
            assert_eq!(oracle::theirs(&product).equals(theirs * scalar), u32::MAX);
        }
    }
}
