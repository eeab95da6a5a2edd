//! Products of points and scalars.

use super::curve::{Affine, Curve, Point};
use super::field::Field;
use super::scalar::Bn254Scalar;
use crate::Scalar;
use crate::comb::{self, CombPoint, CoordinatePoint, ENTRIES, masks};
use crate::msm::{VartimePoint, vartime_msm_affine};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

/// A cube root of unity modulo the order; the endomorphism (x, y) -> (beta x, y) multiplies by it.
pub(super) const LAMBDA: Bn254Scalar =
    Bn254Scalar::from_raw([0xb8ca_0b2d_3663_6f23, 0xcc37_a73f_ec2b_c5e9, 0x048b_6e19_3fd8_4104, 0x3064_4e72_e131_a029]);

/// Half of a scalar: its absolute value, below 2^127, and whether it is negative.
struct Half {
    value: [u8; 16],
    negative: Choice,
}

impl Drop for Half {
    fn drop(&mut self) {
        self.value.zeroize();
    }
}

impl Half {
    /// Takes a scalar between -2^127 and 2^127.
    fn new(mut scalar: Bn254Scalar) -> Self {
        let mut positive = scalar.to_little_endian();
        let mut negated = (-scalar).to_little_endian();
        // Zero counts as positive: its upper half is zero.
        let negative = !positive.iter().skip(16).fold(0, |all, byte| all | byte).ct_eq(&0);
        let mut value = [0; 16];
        for (out, (p, n)) in value.iter_mut().zip(positive.iter().zip(&negated)) {
            *out = u8::conditional_select(p, n, negative);
        }
        positive.zeroize();
        negated.zeroize();
        scalar.zeroize();
        Self { value, negative }
    }
}

/// (a b) >> 256 for little-endian integers.
fn high_half(a: [u64; 4], b: [u64; 3]) -> [u64; 4] {
    let mut product = [0_u64; 8];
    for (i, a) in a.into_iter().enumerate() {
        let mut carry = 0_u64;
        for (b, out) in b.into_iter().chain([0]).zip(product.iter_mut().skip(i)) {
            let sum = u128::from(a) * u128::from(b) + u128::from(*out) + u128::from(carry);
            *out = u64::try_from(sum & u128::from(u64::MAX)).unwrap_or(0);
            carry = u64::try_from(sum >> 64).unwrap_or(0);
        }
        if let Some(out) = product.get_mut(i + 4) {
            *out = carry;
        }
    }
    let [.., e, f, g, h] = product;
    product.zeroize();
    [e, f, g, h]
}

/// Splits a scalar k into short k1 + lambda k2 (Gallant, Lambert and Vanstone, CRYPTO 2001): k minus the vector of the
/// lattice {(a, b): a + lambda b = 0} that is nearest to (k, 0), found by multiplying with rounded reciprocals.
fn split(scalar: Bn254Scalar) -> (Half, Half) {
    // A basis of the lattice is (., B1), (., -B2); the reciprocals are 2^256 B2 / q and 2^256 B1 / q.
    const B1: Bn254Scalar = Bn254Scalar::from_raw([0x89d3_2568_94d2_13e3, 0, 0, 0]);
    const B2: Bn254Scalar = Bn254Scalar::from_raw([0x0be4_e154_1221_250b, 0x6f4d_8248_eeb8_59fd, 0, 0]);
    const RECIPROCAL_B2: [u64; 3] = [0x5398_fd03_00ff_6565, 0x4cce_f014_a773_d2d2, 2];
    const RECIPROCAL_B1: [u64; 3] = [0xd91d_232e_c7e0_b3d7, 2, 0];
    let mut bytes = scalar.to_little_endian();
    let mut limbs = [0; 4];
    for (limb, chunk) in limbs.iter_mut().zip(bytes.chunks(8)) {
        *limb = chunk.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    }
    let c1 = Zeroizing::new(Bn254Scalar::from_raw(high_half(limbs, RECIPROCAL_B2)));
    let c2 = Zeroizing::new(Bn254Scalar::from_raw(high_half(limbs, RECIPROCAL_B1)));
    bytes.zeroize();
    limbs.zeroize();
    let k2 = Zeroizing::new(*c1 * B1 - *c2 * B2);
    (Half::new(scalar - *k2 * LAMBDA), Half::new(*k2))
}

/// A digit from -8 to 8.
#[derive(Clone, Copy, Default)]
struct Digit {
    magnitude: u8,
    negative: u8,
}

impl Zeroize for Digit {
    fn zeroize(&mut self) {
        self.magnitude.zeroize();
        self.negative.zeroize();
    }
}

/// The digits to base 16 of a little-endian integer, lowest first. The highest must be below 8.
fn digits<const N: usize>(bytes: &[u8]) -> Zeroizing<[Digit; N]> {
    let mut digits = Zeroizing::new([Digit::default(); N]);
    let mut carry = 0;
    for (i, (digit, nibble)) in digits.iter_mut().zip(bytes.iter().flat_map(|byte| [byte & 15, byte >> 4])).enumerate()
    {
        let value = nibble + carry;
        carry = if i + 1 == N { 0 } else { (value + 8) >> 4 };
        *digit = Digit {
            magnitude: u8::conditional_select(&value, &16_u8.wrapping_sub(value), carry.into()),
            negative: carry,
        };
    }
    digits
}

/// The multiple of a point by a digit, from the point's first eight multiples; negated if `negate`. Reads all of the table.
fn look_up<C: Curve>(table: &[Point<C>; 8], digit: Digit, negate: Choice) -> Point<C> {
    let found = (1_u8..).zip(table).fold(Point::IDENTITY, |found, (magnitude, multiple)| {
        found.select(multiple, magnitude.ct_eq(&digit.magnitude))
    });
    found.select(&-found, Choice::from(digit.negative) ^ negate)
}

/// The product in constant time. The point must have prime order.
pub(super) fn multiply<C: Curve>(point: &Point<C>, scalar: Bn254Scalar) -> Point<C> {
    let (k1, k2) = split(scalar);
    let mut multiple = Point::IDENTITY;
    let table = [(); 8].map(|()| {
        multiple = multiple + *point;
        multiple
    });
    let image = table.map(|point| Point { x: point.x.scale(C::BETA), ..point });
    let (digits1, digits2) = (digits::<32>(&k1.value), digits::<32>(&k2.value));
    let mut sum = Point::IDENTITY;
    for (d1, d2) in digits1.iter().zip(digits2.iter()).rev() {
        for _ in 0..4 {
            sum = sum.double();
        }
        sum = sum + look_up(&table, *d1, k1.negative) + look_up(&image, *d2, k2.negative);
    }
    sum
}

impl<C: Curve> CombPoint for Point<C> {
    type Scalar = Bn254Scalar;
    type Entry = Affine<C>;
    const ORDER_BITS: usize = 254;

    fn identity() -> Self {
        Self::IDENTITY
    }

    fn double(&self) -> Self {
        Self::double(self)
    }

    fn plus(&self, other: &Self) -> Self {
        *self + *other
    }

    fn negated(&self) -> Self {
        -*self
    }

    fn to_entries(points: &[Self]) -> Vec<Affine<C>> {
        Self::batch_to_affine(points)
    }

    fn select(row: &[Affine<C>; ENTRIES], index: u8, negative: Choice) -> Affine<C> {
        let masks = masks(index);
        let x = C::Coordinate::select_from(row, &masks, |entry| &entry.x);
        let y = C::Coordinate::select_from(row, &masks, |entry| &entry.y);
        Affine { x, y: y.select(-y, negative) }
    }

    /// No entry is the identity.
    fn plus_entry(&self, entry: &Affine<C>) -> Self {
        self.plus_affine(entry)
    }

    fn little_endian(scalar: &Bn254Scalar) -> [u8; 32] {
        scalar.to_little_endian()
    }
}

impl<C: Curve> CoordinatePoint for Point<C> {
    type Coordinate = C::Coordinate;

    fn coordinates(entry: &Affine<C>) -> comb::Affine<C::Coordinate> {
        comb::Affine { x: entry.x, y: entry.y }
    }

    fn from_coordinates(point: &comb::Affine<C::Coordinate>) -> Self {
        Self { x: point.x, y: point.y, z: C::Coordinate::ONE }
    }
}

impl<F: Field> comb::Coordinate for F {
    const ZERO: Self = F::ZERO;
    const ONE: Self = F::ONE;

    fn plus(&self, other: &Self) -> Self {
        *self + *other
    }

    fn minus(&self, other: &Self) -> Self {
        *self - *other
    }

    fn times(&self, other: &Self) -> Self {
        *self * *other
    }

    fn squared(&self) -> Self {
        self.square()
    }

    fn inverse(&self) -> Self {
        self.invert()
    }

    fn vanishes(&self) -> Choice {
        self.is_zero()
    }
}

/// The sum of products; each scalar is split first, so that half as many doublings are shared by twice as many points.
pub(super) fn vartime_msm<C: Curve>(scalars: &[Bn254Scalar], points: &[Point<C>]) -> Point<C> {
    let n = scalars.len().min(points.len());
    let affine = Point::batch_to_affine(points.get(..n).unwrap_or_default());
    let (halves, points): (Vec<[u8; 16]>, Vec<Affine<C>>) = scalars
        .iter()
        .zip(&affine)
        .filter(|(scalar, point)| **scalar != Bn254Scalar::ZERO && !bool::from(point.is_identity()))
        .flat_map(|(scalar, point)| {
            let (k1, k2) = split(*scalar);
            let image = Affine { x: point.x.scale(C::BETA), y: point.y };
            [(k1, *point), (k2, image)].map(|(half, point)| {
                let negated = Point::<C>::negate_affine(&point);
                (half.value, if bool::from(half.negative) { negated } else { point })
            })
        })
        .unzip();
    vartime_msm_affine::<Point<C>>(&halves, &points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bn254::{G1, G2};
    use crate::comb::{Comb, Size};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn value(half: &Half) -> Bn254Scalar {
        assert!(half.value[15] < 0x80, "below 2^127");
        let value = Bn254Scalar::from_u128(u128::from_le_bytes(half.value));
        if bool::from(half.negative) { -value } else { value }
    }

    #[test]
    fn halves_are_short_and_add_up() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut scalars =
            vec![Bn254Scalar::ZERO, Bn254Scalar::ONE, -Bn254Scalar::ONE, LAMBDA, -LAMBDA, LAMBDA * LAMBDA];
        for bits in 0..128 {
            let power = Bn254Scalar::from_u128(1 << bits);
            scalars.extend([power, -power, power * power, LAMBDA * power, power - Bn254Scalar::ONE]);
        }
        scalars.extend((0..2000).map(|_| Bn254Scalar::random(&mut rng)));
        for scalar in scalars {
            let (k1, k2) = split(scalar);
            assert_eq!(value(&k1) + LAMBDA * value(&k2), scalar);
        }
    }

    fn endomorphism<C: Curve>() {
        let g = Point::<C>::GENERATOR;
        let image = Point { x: g.x.scale(C::BETA), ..g };
        assert_eq!(image, Comb::new(&g, Size::Large).multiply(&LAMBDA));
        assert_eq!(image, multiply(&g, LAMBDA));
        let mut naive = Point::IDENTITY;
        for byte in LAMBDA.encode() {
            naive = naive.vartime_times(256) + g.vartime_times(byte.into());
        }
        assert_eq!(image, naive);
    }

    #[test]
    fn the_endomorphism_multiplies_by_lambda() {
        endomorphism::<G1>();
        endomorphism::<G2>();
    }
}
