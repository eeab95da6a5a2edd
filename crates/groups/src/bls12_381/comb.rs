//! Multiplication of a fixed point in constant time: only additions, of multiples computed beforehand.

use super::BlsScalar;
use super::ffi::RawPoint;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq, ConstantTimeGreater};
use zeroize::Zeroize;

/// Bits of a digit: wider ones save additions and cost longer tables, all of which every look-up reads.
const WIDTH: usize = 5;
/// Digits of a scalar of 255 bits; the last takes the carry of the others.
const DIGITS: usize = 52;
/// Multiples by 1 to 16.
const ROW: usize = 1 << (WIDTH - 1);

/// The multiples of a point by 1 to 16 times 32^i, for every i.
pub(super) struct Comb<P: RawPoint>(Vec<[P::Affine; ROW]>);

/// A digit from -15 to 16.
#[derive(Clone, Copy, Default)]
struct Digit {
    magnitude: u8,
    negative: u8,
}

/// The digits to base 32 of a little-endian integer of 255 bits, lowest first.
fn digits(scalar: &[u8; 32]) -> [Digit; DIGITS] {
    let mut digits = [Digit::default(); DIGITS];
    let mut carry = 0;
    for (i, digit) in digits.iter_mut().enumerate() {
        let mut bytes = scalar.iter().skip(WIDTH * i / 8).map(|byte| u16::from(*byte));
        let pair = bytes.next().unwrap_or(0) | bytes.next().unwrap_or(0) << 8;
        let [bits, _] = (pair >> (WIDTH * i % 8) & 31).to_le_bytes();
        let value = bits + carry;
        let too_large = value.ct_gt(&16);
        carry = too_large.unwrap_u8();
        *digit =
            Digit { magnitude: u8::conditional_select(&value, &32_u8.wrapping_sub(value), too_large), negative: carry };
    }
    digits
}

impl<P: RawPoint> Comb<P> {
    pub(super) fn new(point: &P) -> Self {
        let mut base = *point;
        let mut multiples = Vec::with_capacity(DIGITS * ROW);
        for _ in 0..DIGITS {
            let mut multiple = P::default();
            for _ in 0..ROW {
                multiple = multiple.add(&base);
                multiples.push(multiple);
            }
            base = multiple.add(&multiple);
        }
        Self(P::batch_to_affine(&multiples).as_chunks().0.to_vec())
    }

    /// The product in constant time.
    pub(super) fn multiply(&self, scalar: &BlsScalar) -> P {
        // The library's integer wipes itself.
        let mut digits = digits(&scalar.to_little_endian().b);
        let product = self.0.iter().zip(&digits).fold(P::default(), |sum, (row, digit)| {
            // All zeros, infinity, unless one entry is copied.
            let mut multiple = P::Affine::default();
            for (magnitude, entry) in (1_u8..).zip(row) {
                P::copy_if(&mut multiple, entry, magnitude.ct_eq(&digit.magnitude));
            }
            sum.add_affine(&P::negate_affine_if(&multiple, Choice::from(digit.negative)))
        });
        for digit in &mut digits {
            digit.magnitude.zeroize();
            digit.negative.zeroize();
        }
        product
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Group;
    use crate::Scalar;
    use crate::bls12_381::{G1, G2};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    /// Scalars with every digit in every place, long runs of carries, and the largest ones.
    fn scalars() -> Vec<BlsScalar> {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut scalars = vec![BlsScalar::ZERO, BlsScalar::ONE, -BlsScalar::ONE, -BlsScalar::from_u64(2)];
        let mut all_alike = [BlsScalar::ZERO; 32];
        let mut power = BlsScalar::ONE;
        for _ in 0..50 {
            for (digit, sum) in (0..).zip(&mut all_alike) {
                *sum += power * BlsScalar::from_u64(digit);
            }
            scalars.extend([15, 16, 17, 31].map(|digit| power * BlsScalar::from_u64(digit)));
            power = power * BlsScalar::from_u64(32);
        }
        scalars.extend(all_alike);
        scalars.extend((0..50).map(|_| BlsScalar::random(&mut rng)));
        scalars
    }

    #[test]
    fn digits_stand_for_their_scalar() {
        for scalar in scalars() {
            let digits = digits(&scalar.to_little_endian().b);
            let value = digits.iter().rev().fold(BlsScalar::ZERO, |sum, digit| {
                assert!(digit.magnitude <= 16 - digit.negative);
                let magnitude = BlsScalar::from_u64(digit.magnitude.into());
                sum * BlsScalar::from_u64(32) + if digit.negative == 1 { -magnitude } else { magnitude }
            });
            assert_eq!(value, scalar);
        }
    }

    #[test]
    fn products_are_the_library_s() {
        for scalar in scalars() {
            assert_eq!(G1::mul_base(&scalar), G1::generator() * scalar);
            assert_eq!(G2::mul_base(&scalar), G2::generator() * scalar);
        }
    }
}
