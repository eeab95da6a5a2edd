//! Sums of secret multiples of several public points, with one series of doublings for all of them (Straus, 1964), in constant time: signed digits of
//! six bits, none of them zero.

use super::{CombPoint, ENTRIES, Recoding, TEETH, bit, entry};
use zeroize::Zeroizing;

/// How many points have their tables at once, of 3 KiB each: as many as stay in a processor's second cache, and enough to share the doublings.
const AT_ONCE: usize = 64;

/// What multiplies several points at once, or one.
///
/// Points may be the identity, so that this is for curves whose entries are points in coordinates that have it, with complete formulas.
pub(crate) struct Multiples<P: CombPoint> {
    recoding: Recoding<P::Scalar>,
}

impl<P: CombPoint> Multiples<P> {
    /// Digits of a scalar.
    const DIGITS: usize = P::ORDER_BITS.div_ceil(TEETH);

    pub(crate) fn new() -> Self {
        Self { recoding: Recoding::new(Self::DIGITS * TEETH) }
    }

    /// The sum of all multiples. Its time depends on how many there are; extra entries of the longer slice are ignored.
    pub(crate) fn sum(&self, scalars: &[P::Scalar], points: &[P]) -> P {
        let parts = scalars.chunks(AT_ONCE).zip(points.chunks(AT_ONCE));
        parts.fold(P::identity(), |sum, (scalars, points)| sum.plus(&self.part(scalars, points)))
    }

    fn part(&self, scalars: &[P::Scalar], points: &[P]) -> P {
        let mut bits = Zeroizing::new(Vec::with_capacity(scalars.len()));
        bits.extend(scalars.iter().map(|scalar| self.recoding.bits::<P>(scalar)));
        let entries: Vec<P::Entry> = points.iter().flat_map(|point| P::to_entries(&odd_multiples(point))).collect();
        let (tables, _) = entries.as_chunks::<ENTRIES>();
        let mut sum = P::identity();
        for digit in (0..Self::DIGITS).rev() {
            sum = sum.doubled(TEETH);
            for (bits, table) in bits.iter().zip(tables) {
                sum = sum.plus_entry(&entry::<P>(table, |place| bit(bits.as_ref(), digit * TEETH + place)));
            }
        }
        sum
    }
}

/// The point times 1, 3, 5, ..., 63.
fn odd_multiples<P: CombPoint>(point: &P) -> [P; ENTRIES] {
    let twice = point.double();
    let mut next = *point;
    [(); ENTRIES].map(|()| {
        let this = next;
        next = this.plus(&twice);
        this
    })
}

#[cfg(test)]
mod tests {
    use super::AT_ONCE;
    use crate::{Group, P256, Ristretto255, Scalar, Secp256k1};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn sums_are_those_of_the_group<G: Group>() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let random = (0..2 * AT_ONCE + 3).map(|_| G::Scalar::random(&mut rng)).collect::<Vec<_>>();
        let points = G::mul_base_batch(&random);
        let some = [G::Scalar::ZERO, G::Scalar::ONE, -G::Scalar::ONE, G::Scalar::from_u64(63), G::Scalar::from_u64(64)];
        let scalars = some.into_iter().chain(random).collect::<Vec<_>>();
        for count in [0, 1, 2, 5, AT_ONCE, AT_ONCE + 1, points.len()] {
            let expected = scalars.iter().zip(&points).take(count).map(|(scalar, point)| *point * *scalar).sum();
            assert_eq!(G::msm(&scalars[..count], &points), expected, "{} {count}", G::NAME);
        }
        // Points that meet every exception of incomplete formulas.
        let g = G::generator();
        let equal = [g, g, -g, G::identity(), g + g];
        let expected = equal.iter().zip(&some).map(|(point, scalar)| *point * *scalar).sum();
        assert_eq!(G::msm(&some, &equal), expected, "{}", G::NAME);
        let (same, opposite) = ([G::Scalar::from_u64(7); 2], [g, -g]);
        assert!(G::is_identity(&G::msm(&same, &opposite)));
    }

    #[test]
    fn sums_of_secret_multiples_are_right() {
        sums_are_those_of_the_group::<P256>();
        sums_are_those_of_the_group::<Secp256k1>();
        sums_are_those_of_the_group::<Ristretto255>();
    }
}
