//! Hashing to Ed448's group: the suite edwards448_XOF:SHAKE256_ELL2_RO_ of RFC 9380.

use super::point::Point;
use crate::expand::expand_message_xof;
use crrl::field::GF448;
use shake::Shake256;

/// Bytes for one field element: 448 bits and the 224 of the security level.
const FIELD_LEN: usize = 84;
/// The coefficient of curve448: v^2 = u^3 + J u^2 + u.
const J: u32 = 156_326;

/// Hashes to a uniform element of the group.
pub(super) fn hash_to_curve(dst: &[u8], message: &[&[u8]]) -> Point {
    let uniform = expand_message_xof::<Shake256, 224, { 2 * FIELD_LEN }>(dst, message);
    let (first, second) = uniform.split_at(FIELD_LEN);
    let mut point = map_to_curve(first);
    point.add_assign(&map_to_curve(second));
    // The cofactor is 4.
    point.double_assign();
    point.double_assign();
    point
}

/// Reduces big-endian bytes to a field element and maps it to the curve.
fn map_to_curve(bytes: &[u8]) -> Point {
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
fn to_edwards(u: GF448, v: GF448) -> Point {
    let (u2, v2) = (u.square(), v.square());
    let w = u2 - GF448::ONE;
    let w2 = w.square();
    let x_numerator = (v * w).mul4();
    let x_denominator = w2 + v2.mul4();
    let y_numerator = u * (v2.mul4() - w2);
    let y_denominator = u * w2 - (v2 * (u2 + GF448::ONE)).mul2();
    let mut point = Point {
        x: x_numerator * y_denominator,
        y: y_numerator * x_denominator,
        z: x_denominator * y_denominator,
        t: x_numerator,
        u: y_numerator,
    };
    // Where the map is not defined, it is to give the neutral element.
    let undefined = point.z.iszero();
    point.x.set_cond(&GF448::ZERO, undefined);
    point.y.set_cond(&GF448::ONE, undefined);
    point.z.set_cond(&GF448::ONE, undefined);
    point.t.set_cond(&GF448::ZERO, undefined);
    point
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
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

            assert!(oracle::is_on_curve(&to_edwards(u, v)));
        }
    }

    #[test]
    fn where_the_isogeny_is_undefined_it_gives_the_neutral_element() {
        // (0, 0) is the point of order two.
        let point = to_edwards(GF448::ZERO, GF448::ZERO);
        assert!(bool::from(point.is_neutral()) && oracle::is_on_curve(&point));
    }
}
