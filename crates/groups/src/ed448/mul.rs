//! Products in constant time.

use super::Ed448Scalar;
use super::point::{Addend, Affine, Point};
use super::table::{self, Entry};
use super::twisted::FixedPoint;
use crate::Scalar;
use crate::comb::Size;
use std::sync::OnceLock;
use subtle::Choice;
use zeroize::Zeroize;

/// Bits of a digit in products with any point.
const WINDOW: usize = 5;
/// The number of digits.
const DIGITS: usize = Ed448Scalar::BITS.div_ceil(WINDOW);
/// The largest digit.
const MAX_DIGIT: usize = 1 << (WINDOW - 1);

/// The product with the generator.
pub(super) fn mul_generator(scalar: &Ed448Scalar) -> Point {
    static GENERATOR: OnceLock<FixedPoint> = OnceLock::new();
    GENERATOR.get_or_init(|| FixedPoint::new(&Point::GENERATOR, Size::Large)).multiply(scalar)
}

/// The product of any point of the curve with a scalar, as an integer below the order: signed digits of five bits after
/// Booth ("A signed binary multiplication technique", 1951), from the highest.
pub(super) fn mul(point: &Point, scalar: &Ed448Scalar) -> Point {
    let multiples = multiples(point);
    let mut bytes = scalar.encode();
    let mut product = Point::NEUTRAL;
    for digit in (0..DIGITS).rev() {
        if digit + 1 != DIGITS {
            (0..WINDOW).for_each(|_| product.double_assign());
        }
        let (magnitude, negative) = booth_digit(&bytes, digit);
        let mut entry = Entry::select(&multiples, magnitude);
        let Entry([x, _, minus_dt, _]) = &mut entry;
        table::negate_if(x, negative);
        table::negate_if(minus_dt, negative);
        let [x, y, minus_dt, z] = entry.elements();
        product.add_addend_assign(&Addend { affine: Affine { x, y, minus_dt }, z });
    }
    bytes.zeroize();
    product
}

/// 0 P, 1 P, ... 16 P, and one more.
fn multiples(point: &Point) -> Vec<Entry<4>> {
    let addend = point.to_addend();
    let mut points = vec![Point::NEUTRAL, *point];
    for half in 1..=MAX_DIGIT / 2 {
        let Some(mut multiple) = points.get(half).copied() else { break };
        multiple.double_assign();
        points.push(multiple);
        multiple.add_addend_assign(&addend);
        points.push(multiple);
    }
    let entry = |point: &Point| {
        let Addend { affine: Affine { x, y, minus_dt }, z } = point.to_addend();
        Entry::new([x, y, minus_dt, z])
    };
    points.iter().map(entry).collect()
}

/// A digit from -16 to 16 of a little-endian integer: its absolute value and whether it is negative. Of each window of
/// five bits the highest counts negatively, which the next window sets right by counting it once more.
fn booth_digit(bytes: &[u8], digit: usize) -> (u8, Choice) {
    let bit = |position: usize| bytes.get(position / 8).map_or(0, |byte| byte >> (position % 8) & 1);
    let bits = (0..WINDOW).rev().fold(0, |bits, i| bits << 1 | bit(digit * WINDOW + i));
    let below = (digit * WINDOW).checked_sub(1).map_or(0, bit);
    let negative = bits >> (WINDOW - 1);
    // A negative digit is -16 + low + below, with the four low bits, so its absolute value is (15 - low) + (1 - below).
    let value = (bits ^ negative.wrapping_neg()) & 0xf;
    (value + (below ^ negative), Choice::from(negative))
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use subtle::ConstantTimeEq;

    fn equal(ours: &Point, theirs: crrl::ed448::Point) -> bool {
        assert!(oracle::is_on_curve(ours));
        bool::from(ours.ct_eq(&oracle::ours(&theirs)))
    }

    #[test]
    fn products_are_the_library_s() {
        for point in oracle::points().into_iter().step_by(7) {
            let theirs = oracle::theirs(&point);
            for scalar in oracle::scalars() {
                assert!(equal(&mul(&point, &Ed448Scalar(scalar)), theirs * scalar));
            }
        }
    }

    #[test]
    fn products_with_the_generator_are_the_library_s() {
        for scalar in oracle::scalars() {
            assert!(equal(&mul_generator(&Ed448Scalar(scalar)), crrl::ed448::Point::mulgen(&scalar)));
        }
    }

    #[test]
    fn digits_stand_for_the_integer() {
        for bytes in [[0; 57], [0xff; 57], [0x5a; 57], [0x10; 57], [0x0f; 57]] {
            let mut sum = [0_i32; 32];
            // The lowest 150 bits, five by five.
            for (digit, place) in sum.iter_mut().enumerate().take(30) {
                let (magnitude, negative) = booth_digit(&bytes, digit);
                assert!(magnitude <= 16);
                *place = i32::from(magnitude) * (1 - 2 * i32::from(negative.unwrap_u8()));
            }
            let mut carry = 0;
            for (digit, place) in sum.iter().enumerate().take(30) {
                let bits = (0..5).map(|i| i32::from(bytes[(digit * 5 + i) / 8] >> ((digit * 5 + i) % 8) & 1) << i);
                let value = bits.sum::<i32>() + carry;
                carry = i32::from(value >= 16 && *place != 16);
                assert_eq!(value - 32 * carry, *place);
            }
        }
    }
}
