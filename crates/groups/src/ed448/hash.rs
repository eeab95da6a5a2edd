//! Hashing to Ed448's group: the suite edwards448_XOF:SHAKE256_ELL2_RO_ of RFC 9380.

use crate::expand::expand_message_xof;
use crrl::ed448::Point;
use crrl::field::GF448;
use shake::Shake256;

/// Bytes for one field element: 448 bits and the 224 of the security level.
const FIELD_LEN: usize = 84;
/// The coefficient of curve448: v^2 = u^3 + J u^2 + u.
const J: u32 = 156_326;
/// The coefficient of edwards448 is -39081: x^2 + y^2 = 1 - 39081 x^2 y^2.
const MINUS_D: u32 = 39_081;

/// A point of edwards448: x = X / Z, y = Y / Z. (The library keeps the coordinates of its own points to itself.)
struct Projective {
    x: GF448,
    y: GF448,
    z: GF448,
}

/// Hashes to a uniform element of the group.
pub(super) fn hash_to_curve(dst: &[u8], message: &[&[u8]]) -> Point {
    let uniform = expand_message_xof::<Shake256, 224, { 2 * FIELD_LEN }>(dst, message);
    let (first, second) = uniform.split_at(FIELD_LEN);
    let sum = map_to_curve(first).add(&map_to_curve(second));
    // The cofactor is 4.
    sum.to_point().xdouble(2)
}

/// Reduces big-endian bytes to a field element and maps it to the curve.
fn map_to_curve(bytes: &[u8]) -> Projective {
    let little_endian: Vec<u8> = bytes.iter().rev().copied().collect();
    let (u, v) = elligator2(GF448::decode_reduce(&little_endian));
    to_edwards(u, v)
}

/// Elligator 2 to curve448 (RFC 9380, section 6.7.1, with Z = -1), in constant time.
fn elligator2(mut r: GF448) -> (GF448, GF448) {
    // The exceptional case 1 + Z r^2 = 0 is to come out as r = 0 does: u = -J, or 0.
    let exceptional = r.square().equals(GF448::ONE);
    r.set_cond(&GF448::ZERO, exceptional);
    let r2 = r.square();
    let u1 = -GF448::from_u32(J) / (GF448::ONE - r2);
    let g1 = ((u1 + GF448::from_u32(J)) * u1 + GF448::ONE) * u1;
    // u2 = -u1 - J = Z r^2 u1 has g(u2) = Z r^2 g1 = r^2 (-g1), and of g1 and -g1 the library takes the root of the
    // one that is a square.
    let (root, is_square) = g1.sqrt_ext();
    let u = GF448::select(&-(r2 * u1), &u1, is_square);
    let mut v = GF448::select(&(r * root), &root, is_square);
    // v is to be odd for u1, even for u2.
    let odd = u32::from(v.encode()[0] & 1).wrapping_neg();
    v.set_cond(&-v, odd ^ is_square);
    (u, v)
}

/// The 4-isogeny from curve448 to edwards448 (RFC 7748, section 4.2):
/// x = 4 v (u^2 - 1) / ((u^2 - 1)^2 + 4 v^2), y = u (4 v^2 - (u^2 - 1)^2) / (u (u^2 - 1)^2 - 2 v^2 (u^2 + 1)).
fn to_edwards(u: GF448, v: GF448) -> Projective {
    let (u2, v2) = (u.square(), v.square());
    let w = u2 - GF448::ONE;
    let w2 = w.square();
    let x_numerator = (v * w).mul4();
    let x_denominator = w2 + v2.mul4();
    let y_numerator = u * (v2.mul4() - w2);
    let y_denominator = u * w2 - (v2 * (u2 + GF448::ONE)).mul2();
    let mut point =
        Projective { x: x_numerator * y_denominator, y: y_numerator * x_denominator, z: x_denominator * y_denominator };
    // Where the map is not defined, it is to give the neutral element.
    let undefined = point.z.iszero();
    point.x.set_cond(&GF448::ZERO, undefined);
    point.y.set_cond(&GF448::ONE, undefined);
    point.z.set_cond(&GF448::ONE, undefined);
    point
}

impl Projective {
    /// The addition of RFC 8032, section 5.2.4, which holds for any two points.
    fn add(&self, other: &Self) -> Self {
        let a = self.z * other.z;
        let b = a.square();
        let c = self.x * other.x;
        let d = self.y * other.y;
        let minus_e = (c * d).mul_small(MINUS_D);
        let (f, g) = (b + minus_e, b - minus_e);
        let h = (self.x + self.y) * (other.x + other.y);
        Self { x: a * f * (h - c - d), y: a * g * (d - c), z: f * g }
    }

    /// As the library's point, by way of its encoding.
    fn to_point(&self) -> Point {
        let inverse = GF448::ONE / self.z;
        let (x, y) = (self.x * inverse, self.y * inverse);
        let mut encoding = [0; 57];
        encoding.iter_mut().zip(y.encode()).for_each(|(to, from)| *to = from);
        encoding[56] = x.encode()[0] << 7;
        // A point of the curve always decodes; unlike `decode`, this hides which it is.
        let mut point = Point::NEUTRAL;
        point.set_decode(&encoding);
        point
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(a: GF448, b: GF448) -> bool {
        a.equals(b) == u32::MAX
    }

    /// On both curves, with the parity that the RFC asks for, for the exceptional inputs 1 and -1 as well.
    #[test]
    fn every_field_element_has_its_place_on_both_curves() {
        let j = GF448::from_u32(J);
        for r in (0..200).map(|r| GF448::from_i32(r - 100)) {
            let (u, v) = elligator2(r);
            assert!(equal(v.square(), u * (u.square() + j * u + GF448::ONE)));
            let exceptional = equal(r.square(), GF448::ONE);
            let u1 = if exceptional { -j } else { -j / (GF448::ONE - r.square()) };
            let odd = v.encode()[0] & 1 == 1;
            assert!(if odd { equal(u, u1) } else { equal(u, -u1 - j) });
            assert!(equal(elligator2(-r).0, u), "a sign makes no difference");

            let Projective { x, y, z } = to_edwards(u, v);
            let (x2, y2, z2) = (x.square(), y.square(), z.square());
            assert_eq!(z.iszero(), 0);
            assert!(equal((x2 + y2) * z2, z2.square() - (x2 * y2).mul_small(MINUS_D)));
            let point = Projective { x, y, z }.to_point();
            assert_eq!(point.isneutral(), x.iszero() & y.equals(z), "decoding failed");
        }
    }

    #[test]
    fn where_the_isogeny_is_undefined_it_gives_the_neutral_element() {
        // (0, 0) is the point of order two.
        let point = to_edwards(GF448::ZERO, GF448::ZERO);
        assert!(equal(point.x, GF448::ZERO) && equal(point.y, GF448::ONE) && equal(point.z, GF448::ONE));
    }

    #[test]
    fn additions_are_the_library_s() {
        let points = [1, 2, 5].map(|r| {
            let (u, v) = elligator2(GF448::from_u32(r));
            to_edwards(u, v)
        });
        for left in &points {
            for right in &points {
                assert_eq!(left.add(right).to_point().equals(left.to_point() + right.to_point()), u32::MAX);
            }
        }
    }
}
