//! Whether a point of edwards448 is in the group of prime order, without multiplying it by the order.
//!
//! The curve's points are a cyclic group of 4 q elements, so those of the prime-order group are those that can be
//! halved twice (Pornin, "Point-halving and subgroup membership in twisted Edwards curves", 2022). The paper computes a
//! half of the point; on this curve a square root less does, since of that half only 1 - y^2 is needed. With c = 1 - d:
//!
//! - If (x, y) = 2 (x', y'), then the formula for doubling and the curve's equation make g = y'^2 a root of d (1 + y)
//!   g^2 - 2 (1 + d y) g + 1 + y = 0, that is g = (1 + d y + s) / (d (1 + y)) with s^2 = c (1 - d y^2).
//! - So a point with a half has a root s. And conversely: both roots g multiply to 1 / d, which is no square, so that
//!   one of them is a square; from its root y' the formula for doubling gives an x'.
//! - As (1 - y^2) / (1 - d y^2) = x^2, points with a half are those for which c (1 - y^2) is a square, if x is not
//!   zero.
//! - So the half has halves itself if c (1 - g) is a square. That is -c (c + s) / (d (1 + y)), and since -d is a
//!   square, c is none, and c (1 - y^2) is one, whether it is a square is whether (1 - y) (c + s) is one. It does not
//!   matter which root s is, since (c + s) (c - s) = -d c (1 - y^2) is a square.
//!
//! The remaining points have x = 0 or x' = 0. They are the neutral element, and (0, -1), for which c + s is 0 or 2 c,
//! neither of which makes a square. The other two points of small order, (1, 0) and (-1, 0), have no s.

use super::point::{MINUS_D, Point, choice};
use subtle::{Choice, ConstantTimeEq};

/// c.
const C: u32 = MINUS_D + 1;

/// Whether a point of the curve has prime order or is the neutral element. Constant-time.
pub(super) fn is_in_subgroup(point: &Point) -> Choice {
    let Point { y, z, .. } = point;
    // S = s Z.
    let (s, is_square) = (z.square() + y.square().mul_small(MINUS_D)).mul_small(C).sqrt();
    let symbol = ((z - y) * (z.mul_small(C) + s)).legendre();
    choice(is_square) & symbol.ct_eq(&1) | point.is_neutral()
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use crrl::field::GF448;

    #[test]
    fn what_the_derivation_says_of_constants() {
        let d = -GF448::from_u32(MINUS_D);
        assert_eq!((d.legendre(), (-d).legendre(), GF448::from_u32(C).legendre()), (-1, 1, -1));
    }

    /// Points of the group and their sums with each point of small order, and points from all of the curve.
    #[test]
    fn membership_is_the_library_s() {
        let (points, mut inside) = (oracle::points(), 0);
        for point in &points {
            let theirs = oracle::theirs(point).is_in_subgroup();
            assert_eq!(is_in_subgroup(point).unwrap_u8(), u8::from(theirs == u32::MAX));
            inside += usize::from(is_in_subgroup(point).unwrap_u8());
        }
        assert!(inside > 20 && inside < points.len() / 2);
    }
}
