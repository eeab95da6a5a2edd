//! Multiplication of a fixed point in constant time, by a comb with signed teeth (Lim and Lee, CRYPTO 1994; in the signed
//! form of Hamburg, "Fast and compact elliptic-curve cryptography", 2012, section 3.3).
//!
//! The small table of a point takes about as long to make as two or three multiplications, and 8 to 24 KiB.

mod batch;
mod several;

pub(crate) use batch::{Affine, Coordinate, CoordinatePoint};
pub(crate) use several::Multiples;

use crate::Scalar;
use core::hint::black_box;
use subtle::Choice;
use zeroize::Zeroize;

/// Bits of the scalar that choose one entry.
const TEETH: usize = 6;
/// Entries of a row. The highest tooth is always positive in an entry; if it is negative, the entry of the opposite digits is
/// negated.
pub(crate) const ENTRIES: usize = 1 << (TEETH - 1);

/// A point of prime order as a comb sees it. Everything here is constant-time.
pub(crate) trait CombPoint: Copy + Send + Sync + 'static {
    /// Integers modulo the order.
    type Scalar: Scalar;
    /// The form of a point in which adding it is cheapest.
    type Entry: Copy + Send + Sync + 'static;
    /// Bits of the order.
    const ORDER_BITS: usize;

    fn identity() -> Self;
    fn double(&self) -> Self;
    /// Doubles so many times.
    fn doubled(&self, times: usize) -> Self {
        (0..times).fold(*self, |point, _| point.double())
    }
    fn plus(&self, other: &Self) -> Self;
    fn negated(&self) -> Self;
    /// Converts multiples of a public point, none of them the identity.
    fn to_entries(points: &[Self]) -> Vec<Self::Entry>;
    /// The entry at `index`, negated if `negative`. Reads all of the row.
    fn select(row: &[Self::Entry; ENTRIES], index: u8, negative: Choice) -> Self::Entry;
    fn plus_entry(&self, entry: &Self::Entry) -> Self;
    /// The canonical integer, little-endian.
    fn little_endian(scalar: &Self::Scalar) -> <Self::Scalar as Scalar>::Encoding;
}

/// How many entries are added for one doubling.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    /// A table that is made in the time of two or three multiplications.
    Small,
    /// The largest table that pays for single products, for points that the program uses as long as it runs.
    Large,
    /// So many rows that nothing is doubled, which pays only for many products at once.
    Batch,
}

impl Size {
    /// Rows of entries.
    const fn rows(self, order_bits: usize) -> usize {
        match self {
            Self::Small => 4,
            Self::Large => 11,
            Self::Batch => order_bits.div_ceil(TEETH),
        }
    }
}

/// The comb's table: the odd multiples of a point that are added up.
///
/// A scalar k becomes the digits +1 and -1 of sum of `(2 c_i - 1) 2^i` for i below D, the c_i being the bits of
/// (k + 2^D - 1) / 2 modulo the order: no digit is zero, so that every step does the same. Bit `i` is bit `i mod d` of tooth
/// `i / d`, d being the number of doublings; entry v of a row is the sum of the row's teeth, those with a zero in v
/// negated. As an odd multiple of less than 2^(6 d) times a power of two, no entry is the identity.
pub(crate) struct Comb<P: CombPoint> {
    rows: Vec<[P::Entry; ENTRIES]>,
    /// d: bits of a tooth.
    spacing: usize,
    recoding: Recoding<P::Scalar>,
}

impl<P: CombPoint> Comb<P> {
    pub(crate) fn new(point: &P, size: Size) -> Self {
        let rows = size.rows(P::ORDER_BITS);
        let spacing = P::ORDER_BITS.div_ceil(TEETH * rows);
        let mut next = *point;
        let mut multiples = Vec::with_capacity(rows * ENTRIES);
        for _ in 0..rows {
            let teeth = [(); TEETH].map(|()| {
                let tooth = next;
                next = next.doubled(spacing);
                tooth
            });
            append_row(&teeth, &mut multiples);
        }
        let recoding = Recoding::new(spacing * TEETH * rows);
        Self { rows: P::to_entries(&multiples).as_chunks().0.to_vec(), spacing, recoding }
    }

    /// The product in constant time.
    pub(crate) fn multiply(&self, scalar: &P::Scalar) -> P {
        let mut bits = self.recoding.bits::<P>(scalar);
        let mut sum = P::identity();
        for position in (0..self.spacing).rev() {
            sum = sum.double();
            for row in self.rows.iter().enumerate() {
                sum = sum.plus_entry(&self.entry(row, position, bits.as_ref()));
            }
        }
        bits.zeroize();
        sum
    }

    /// The entry that a row adds at one position of its teeth. Row and position are public, the bits are not.
    fn entry(&self, (number, row): (usize, &[P::Entry; ENTRIES]), position: usize, bits: &[u8]) -> P::Entry {
        entry::<P>(row, |tooth| bit(bits, (number * TEETH + tooth) * self.spacing + position))
    }
}

/// What makes the digits +1 and -1 of a scalar: see [`Comb`].
struct Recoding<S> {
    /// 1/2.
    half: S,
    /// (2^D - 1) / 2.
    offset: S,
}

impl<S: Scalar> Recoding<S> {
    /// For D digits.
    fn new(digits: usize) -> Self {
        let half = S::from_u64(2).invert();
        let power = (0..digits).fold(S::ONE, |power, _| power + power);
        Self { half, offset: (power - S::ONE) * half }
    }

    /// The bits c_i of a scalar.
    fn bits<P: CombPoint<Scalar = S>>(&self, scalar: &S) -> S::Encoding {
        let mut recoded = *scalar * self.half + self.offset;
        let bits = P::little_endian(&recoded);
        recoded.zeroize();
        bits
    }
}

/// The entry of a row for these bits of its teeth.
fn entry<P: CombPoint>(row: &[P::Entry; ENTRIES], tooth: impl Fn(usize) -> u8) -> P::Entry {
    let digits = (0..TEETH - 1).rev().fold(0, |digits, i| digits << 1 | tooth(i));
    // 0 if the highest tooth is positive, else 1; then all other digits are inverted.
    let negative = 1 - tooth(TEETH - 1);
    let index = (digits ^ negative.wrapping_neg()) & ENTRIES_MASK;
    P::select(row, index, Choice::from(negative))
}

/// The highest index of an entry.
const ENTRIES_MASK: u8 = 31;

/// A bit of a little-endian integer; which one is public.
fn bit(bytes: &[u8], position: usize) -> u8 {
    bytes.get(position / 8).copied().unwrap_or(0) >> (position % 8) & 1
}

/// Appends the entries of a row: the highest tooth plus or minus each other tooth, by the bits of the index.
fn append_row<P: CombPoint>(teeth: &[P; TEETH], multiples: &mut Vec<P>) {
    let [others @ .., highest] = teeth;
    let start = multiples.len();
    multiples.push(others.iter().fold(*highest, |sum, tooth| sum.plus(&tooth.negated())));
    for tooth in others {
        let twice = tooth.double();
        let more: Vec<P> = multiples.iter().skip(start).map(|entry| entry.plus(&twice)).collect();
        multiples.extend(more);
    }
}

/// For each entry of a row, all ones if it is at the index, else zero. The compiler cannot tell that these are the only values.
pub(crate) fn masks(index: u8) -> [u64; ENTRIES] {
    let mut masks = [0; ENTRIES];
    masks.iter_mut().zip(0..).for_each(|(mask, entry)| *mask = mask_if_equal(entry, index));
    black_box(masks)
}

/// All ones if both are equal, else zero. The caller has to hide from the compiler that these are the only values. (`subtle` does
/// that with a call for each mask, which takes more time than the selection.)
pub(crate) fn mask_if_equal(a: u8, b: u8) -> u64 {
    // Subtracting one sets the highest bit of zero alone.
    (u64::from(a ^ b).wrapping_sub(1) >> 63).wrapping_neg()
}

/// The words of the entry that has the mask, in constant time.
pub(crate) fn select_words<E, const N: usize>(
    row: &[E; ENTRIES],
    masks: &[u64; ENTRIES],
    words: impl Fn(&E) -> &[u64; N],
) -> [u64; N] {
    let mut selected = [0; N];
    for (entry, mask) in row.iter().zip(masks) {
        for (to, from) in selected.iter_mut().zip(words(entry)) {
            *to |= from & mask;
        }
    }
    selected
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Comb, Size};
    use crate::{Ed448, P256, Secp256k1, bls12_381, bn254};
    use crate::{Group, Scalar};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    /// Scalars with every digit in every place, long runs of equal bits, and the smallest and largest ones.
    pub(crate) fn scalars<S: Scalar>() -> Vec<S> {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut scalars = vec![S::ZERO, S::ONE, -S::ONE, S::from_u64(2).invert(), -S::from_u64(2)];
        let mut power = S::ONE;
        for _ in 0..470 {
            power = power + power;
            scalars.extend([power, power - S::ONE, -power]);
        }
        scalars.extend((0..100).map(|_| S::random(&mut rng)));
        scalars
    }

    fn products_are_those_of_the_group<G: Group>() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let products = G::mul_base_batch(&scalars());
        for (scalar, product) in scalars::<G::Scalar>().iter().zip(products) {
            assert_eq!(product, G::generator() * *scalar, "{scalar:?}");
        }
        for element in [G::generator(), G::generator() * G::Scalar::random(&mut rng)] {
            let table = G::table(&element);
            for scalar in scalars::<G::Scalar>() {
                assert_eq!(table(&scalar), element * scalar, "{scalar:?}");
            }
        }
    }

    #[test]
    fn all_sizes_give_the_same() {
        let (g, mut rng) = (bn254::G1::generator(), ChaCha20Rng::seed_from_u64(3));
        let [small, large, batch] = [Size::Small, Size::Large, Size::Batch].map(|size| Comb::new(&g, size));
        for scalar in scalars().into_iter().chain([Scalar::random(&mut rng)]) {
            assert_eq!(small.multiply(&scalar), large.multiply(&scalar));
            assert_eq!(batch.multiply(&scalar), large.multiply(&scalar));
            assert_eq!(large.multiply(&scalar), g * scalar);
        }
    }

    macro_rules! each {
        ($($name:ident: $group:ty,)*) => { $(#[test] fn $name() { products_are_those_of_the_group::<$group>(); })* };
    }

    each! {
        p256: P256,
        secp256k1: Secp256k1,
        ed448: Ed448,
        ed25519: crate::Ed25519,
        ristretto255: crate::Ristretto255,
        bls12_381_g1: bls12_381::G1,
        bls12_381_g2: bls12_381::G2,
        bn254_g1: bn254::G1,
        bn254_g2: bn254::G2,
    }
}
