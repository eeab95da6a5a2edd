//! Points as bytes: RFC 8032, sections 5.2.2 and 5.2.3.

use super::point::{MINUS_D, Point};
use crate::DecodeError;
use crrl::field::GF448;

/// Bytes of an encoded point: y in 56, and one for the sign of x.
pub(super) const ENCODED_LEN: usize = 57;

/// The encoding of a point by its coordinates.
fn encode_coordinates((x, y): (GF448, GF448)) -> [u8; ENCODED_LEN] {
    let mut encoding = [0; ENCODED_LEN];
    encoding.iter_mut().zip(y.encode()).for_each(|(to, from)| *to = from);
    let [.., last] = &mut encoding;
    *last = sign(x) << 7;
    encoding
}

/// Whether x is odd, which is to say negative.
fn sign(x: GF448) -> u8 {
    let [lowest, ..] = x.encode();
    lowest & 1
}

/// The encoding of a point.
pub(super) fn encode(point: &Point) -> [u8; ENCODED_LEN] {
    encode_coordinates(point.coordinates())
}

/// The encodings of many points, sharing the inversions.
pub(super) fn encode_batch(points: &[Point]) -> Vec<[u8; ENCODED_LEN]> {
    Point::batch_coordinates(points).map(encode_coordinates).collect()
}

/// Parses any point of the curve: y below p, no stray bits, no negative zero.
pub(super) fn decode(bytes: &[u8]) -> Result<Point, DecodeError> {
    let length = DecodeError::Length { expected: ENCODED_LEN, got: bytes.len() };
    let [y @ .., last] = <[u8; ENCODED_LEN]>::try_from(bytes).map_err(|_| length)?;
    let y = GF448::decode(&y).ok_or(DecodeError::NotCanonical)?;
    let yy = y.square();
    let negative = u32::from(last >> 7).wrapping_neg();
    let (u, v) = (GF448::ONE - yy, GF448::ONE + yy.mul_small(MINUS_D));
    let (mut x, is_square) = root_of_ratio(u, v);
    x.set_cond(&-x, negative ^ u32::from(sign(x)).wrapping_neg());
    let negative_zero = negative & x.iszero();
    if is_square & !negative_zero != 0 && last & 0x7f == 0 {
        Ok(Point::from_affine(x, y))
    } else {
        Err(DecodeError::NotCanonical)
    }
}

/// A root of u / v, and all ones if it is one: u^3 v (u^5 v^3)^((p-3)/4).
fn root_of_ratio(u: GF448, v: GF448) -> (GF448, u32) {
    let uv = u * v;
    let (uuuv, uuvv) = (u.square() * uv, uv.square());
    let root = uuuv * power(uuuv * uuvv);
    (root, (root.square() * v).equals(u))
}

/// x^((p-3)/4); (p-3)/4 is 2^446 - 2^222 - 1 = 2^223 (2^223 - 1) + 2^222 - 1.
fn power(x: GF448) -> GF448 {
    // Of n ones each.
    let x2 = x.square() * x;
    let x3 = x2.square() * x;
    let x6 = x3.xsquare(3) * x3;
    let x9 = x6.xsquare(3) * x3;
    let x18 = x9.xsquare(9) * x9;
    let x19 = x18.square() * x;
    let x37 = x19.xsquare(18) * x18;
    let x74 = x37.xsquare(37) * x37;
    let x111 = x74.xsquare(37) * x37;
    let x222 = x111.xsquare(111) * x111;
    let x223 = x222.square() * x;
    x223.xsquare(223) * x222
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use crrl::ed448::Point as Theirs;

    #[test]
    fn encodings_are_the_library_s() {
        let points = oracle::points();
        let batch = encode_batch(&points);
        assert!(points.len() > 100 && batch.len() == points.len(), "more than the library inverts at once");
        for (point, encoding) in points.iter().zip(batch) {
            assert_eq!(encode(point), encoding);
            let decoded = decode(&encoding).unwrap();
            assert_eq!(encode(&decoded), encoding);
            assert!(oracle::is_on_curve(&decoded) && oracle::is_on_curve(point));
            assert_eq!(Theirs::decode(&encoding).unwrap().encode(), encoding);
        }
        assert_eq!(encode(&Point::GENERATOR), Theirs::BASE.encode());
        assert!(encode_batch(&[]).is_empty());
    }

    /// Valid, off the curve, unreduced, with stray bits and with either sign: all that surrounds the edges.
    #[test]
    fn what_the_library_refuses_is_refused() {
        let mut tried: Vec<[u8; ENCODED_LEN]> = Vec::new();
        for byte in 0..=0xff {
            let mut low = [0; ENCODED_LEN];
            low[0] = byte;
            // Around p, which is -1 - 2^224 modulo 2^448.
            let mut high = [0xff; ENCODED_LEN];
            (high[0], high[28], high[56]) = (byte, 0xfe, 0);
            let mut above = [0; ENCODED_LEN];
            above[0] = byte;
            above[28..56].fill(0xff);
            let mut spread = [byte; ENCODED_LEN];
            spread[56] = 0;
            tried.extend([low, high, above, spread]);
        }
        tried.extend(oracle::points().iter().map(encode));
        let mut accepted = 0;
        for encoding in tried {
            for last in [0, 0x80].into_iter().chain((0..7).map(|bit| 1 << bit)) {
                let mut encoding = encoding;
                encoding[56] ^= last;
                let theirs = Theirs::decode(&encoding).map(|point| point.encode());
                assert_eq!(decode(&encoding).ok().map(|point| encode(&point)), theirs);
                accepted += u32::from(theirs.is_some());
                if theirs.is_none() {
                    assert_eq!(decode(&encoding).err(), Some(DecodeError::NotCanonical));
                }
            }
        }
        assert!(accepted > 1000);
    }

    #[test]
    fn other_lengths_are_refused() {
        for len in [0, 56, 58, 114] {
            assert_eq!(decode(&vec![0; len]).err(), Some(DecodeError::Length { expected: 57, got: len }));
        }
    }

    #[test]
    fn exponent() {
        let x = GF448::from_u32(7);
        // x^(p-3) = x^-2, since x^(p-1) = 1.
        assert_eq!((power(x).xsquare(2) * x.square()).equals(GF448::ONE), u32::MAX);
    }
}
