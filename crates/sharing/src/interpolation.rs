//! Lagrange interpolation at zero.

use crate::ShareIndex;
use theta_groups::{Group, Scalar};

/// Why shares cannot be interpolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterpolationError {
    /// There are no shares.
    #[error("no shares to interpolate")]
    Empty,
    /// One party is there twice.
    #[error("share {0} appears more than once")]
    Duplicate(ShareIndex),
}

/// Indices of the shares to interpolate: at least one, no two alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterpolationSet(Vec<ShareIndex>);

impl InterpolationSet {
    /// Keeps the order of the indices.
    ///
    /// # Errors
    /// Any [`InterpolationError`].
    pub fn new(indices: Vec<ShareIndex>) -> Result<Self, InterpolationError> {
        if indices.is_empty() {
            return Err(InterpolationError::Empty);
        }
        // Indices are usually sorted already, and then need no copy.
        if indices.is_sorted_by(|a, b| a < b) {
            return Ok(Self(indices));
        }
        let mut sorted = indices.clone();
        sorted.sort_unstable();
        match sorted.iter().zip(sorted.iter().skip(1)).find(|(a, b)| a == b) {
            Some((index, _)) => Err(InterpolationError::Duplicate(*index)),
            None => Ok(Self(indices)),
        }
    }

    /// g * f(0) from the elements g * f(x_i), in the order of the indices: the sum of lambda_i * element_i. For public data only;
    /// surplus elements are ignored.
    ///
    /// For a few parties the coefficients are fractions of small integers. Then the sum has integer weights, with a point negated
    /// for each negative weight, and is divided once by the common denominator. Consecutive indices from 1 need no division.
    #[must_use]
    pub fn vartime_interpolate_at_zero<G: Group>(&self, elements: impl Iterator<Item = G::Element>) -> G::Element {
        let Some(fractions) = SmallFractions::of(self) else {
            return G::vartime_msm(&self.coefficients_at_zero(), &elements.collect::<Vec<_>>());
        };
        let signed = |(element, &index): (G::Element, _)| if self.is_negative(index) { -element } else { element };
        let signed: Vec<G::Element> = elements.zip(&self.0).map(signed).collect();
        let sum = G::vartime_msm_short(&fractions.numerators, &signed);
        if fractions.denominator == 1 { sum } else { sum * G::Scalar::from_u128(fractions.denominator).invert() }
    }

    /// lambda_i = prod over j != i of x_j / (x_j - x_i), in the order of the indices, so that f(0) = sum of lambda_i
    /// f(x_i) for every polynomial of smaller degree than there are indices. One inversion for all.
    #[must_use]
    pub fn coefficients_at_zero<S: Scalar>(&self) -> Vec<S> {
        // lambda_i = (prod of all x_j) / (x_i * prod over j != i of (x_j - x_i)).
        let mut numerator = Product::<S>::new();
        for index in &self.0 {
            numerator.multiply(index.get());
        }
        let numerator = numerator.finish();
        let mut coefficients: Vec<S> = self
            .0
            .iter()
            .map(|&index| {
                let mut denominator = Product::<S>::new();
                denominator.multiply(index.get());
                for factor in self.differences(index) {
                    denominator.multiply(factor);
                }
                let denominator = denominator.finish();
                if self.is_negative(index) { -denominator } else { denominator }
            })
            .collect();
        S::vartime_batch_invert(&mut coefficients);
        for coefficient in &mut coefficients {
            *coefficient = *coefficient * numerator;
        }
        coefficients
    }

    /// lambda_i of one index alone, which is what a signer of FROST needs. With at most 16 indices no inversion is needed if
    /// lambda_i is an integer, as it is for consecutive indices from 1.
    #[must_use]
    pub fn coefficient_at_zero<S: Scalar>(&self, index: ShareIndex) -> S {
        let fraction = if self.0.len() <= FEW { reduced_fraction(self, index) } else { None };
        let magnitude = match fraction {
            Some((numerator, 1)) => S::from_u128(numerator),
            Some((numerator, denominator)) => S::from_u128(numerator) * S::from_u128(denominator).invert(),
            None => {
                let (mut numerator, mut denominator) = (Product::<S>::new(), Product::<S>::new());
                for other in self.0.iter().filter(|other| **other != index) {
                    numerator.multiply(other.get());
                    denominator.multiply(other.get().abs_diff(index.get()));
                }
                numerator.finish() * denominator.finish().invert()
            }
        };
        if self.is_negative(index) { -magnitude } else { magnitude }
    }

    /// |x_j - x_i| for all j != i.
    fn differences(&self, index: ShareIndex) -> impl Iterator<Item = u16> {
        self.0.iter().filter(move |other| **other != index).map(move |other| other.get().abs_diff(index.get()))
    }

    /// The sign of lambda_i: the number of smaller indices is odd.
    fn is_negative(&self, index: ShareIndex) -> bool {
        self.0.iter().filter(|other| **other < index).count() % 2 == 1
    }
}

/// A product of 16-bit numbers: eight or more of them are multiplied as integers for each multiplication in the field.
struct Product<S> {
    done: S,
    pending: u128,
}

impl<S: Scalar> Product<S> {
    fn new() -> Self {
        Self { done: S::ONE, pending: 1 }
    }

    fn multiply(&mut self, factor: u16) {
        self.pending = if let Some(product) = self.pending.checked_mul(u128::from(factor)) {
            product
        } else {
            self.done = self.done * S::from_u128(self.pending);
            u128::from(factor)
        };
    }

    fn finish(self) -> S {
        self.done * S::from_u128(self.pending)
    }
}

/// The Lagrange coefficients at zero for these indices, in their order.
///
/// # Errors
/// Any [`InterpolationError`].
pub fn coefficients_at_zero<S: Scalar>(indices: &[ShareIndex]) -> Result<Vec<S>, InterpolationError> {
    Ok(InterpolationSet::new(indices.to_vec())?.coefficients_at_zero())
}

/// g * f(0) from shares g * f(x_i): see [`InterpolationSet::vartime_interpolate_at_zero`].
///
/// # Errors
/// Any [`InterpolationError`].
pub fn vartime_interpolate_at_zero<G: Group>(
    shares: &[(ShareIndex, G::Element)],
) -> Result<G::Element, InterpolationError> {
    let set = InterpolationSet::new(shares.iter().map(|(index, _)| *index).collect())?;
    Ok(set.vartime_interpolate_at_zero::<G>(shares.iter().map(|(_, element)| *element)))
}

/// |lambda_i| = numerators\[i\] / denominator.
struct SmallFractions {
    numerators: Vec<u128>,
    denominator: u128,
}

impl SmallFractions {
    /// `None` when they do not fit 128 bits, or would so rarely that trying costs more than it saves.
    fn of(set: &InterpolationSet) -> Option<Self> {
        let highest = set.0.iter().map(|index| usize::from(index.get())).max()?;
        let gaps = highest.saturating_sub(set.0.len());
        if gaps == 0 {
            return Self::binomials(set);
        }
        if set.0.len() > FEW && gaps > FEW_GAPS {
            return None;
        }
        let fractions: Vec<(u128, u128)> =
            set.0.iter().map(|&index| reduced_fraction(set, index)).collect::<Option<_>>()?;
        let denominator = fractions.iter().try_fold(1, |lcm: u128, (_, d)| match d {
            1 => Some(lcm),
            _ => (lcm / gcd(lcm, *d)).checked_mul(*d),
        })?;
        let numerators = match denominator {
            1 => fractions.into_iter().map(|(n, _)| n).collect(),
            _ => fractions.iter().map(|(n, d)| n.checked_mul(denominator / d)).collect::<Option<_>>()?,
        };
        Some(Self { numerators, denominator })
    }

    /// For the indices 1 to k in any order: the binomial coefficients k over i.
    fn binomials(set: &InterpolationSet) -> Option<Self> {
        let k = u128::try_from(set.0.len()).ok()?;
        let mut binomial = 1_u128;
        let all: Vec<u128> = (1..=k)
            .map(|i| {
                binomial = binomial.checked_mul(k + 1 - i)? / i;
                Some(binomial)
            })
            .collect::<Option<_>>()?;
        let numerators = if set.0.is_sorted() {
            all
        } else {
            set.0.iter().map(|index| all.get(index.position()).copied()).collect::<Option<_>>()?
        };
        Some(Self { numerators, denominator: 1 })
    }
}

/// The products of at most this many indices often fit 128 bits.
const FEW: usize = 16;
/// The products of more indices may fit 128 bits if at most this many indices are missing below the highest.
const FEW_GAPS: usize = 4;

/// |lambda| of one index in lowest terms.
fn reduced_fraction(set: &InterpolationSet, index: ShareIndex) -> Option<(u128, u128)> {
    let (mut numerator, mut denominator) = (1_u128, 1_u128);
    for other in set.0.iter().filter(|other| **other != index) {
        let factors = (u128::from(other.get()), u128::from(other.get().abs_diff(index.get())));
        // Reducing costs more than multiplying, so it is done only on overflow.
        (numerator, denominator) = if let Some(product) = multiplied(numerator, denominator, factors) {
            product
        } else {
            let common = gcd(numerator, denominator);
            multiplied(numerator / common, denominator / common, factors)?
        };
    }
    // Consecutive indices from 1 have binomial coefficients, and one division is cheaper than the gcd.
    if numerator.is_multiple_of(denominator) {
        return Some((numerator / denominator, 1));
    }
    let common = gcd(numerator, denominator);
    Some((numerator / common, denominator / common))
}

fn multiplied(numerator: u128, denominator: u128, factors: (u128, u128)) -> Option<(u128, u128)> {
    Some((numerator.checked_mul(factors.0)?, denominator.checked_mul(factors.1)?))
}

/// The greatest common divisor of two positive numbers, by halving and subtracting (Stein 1967).
const fn gcd(a: u128, b: u128) -> u128 {
    let twos = (a | b).trailing_zeros();
    let (mut a, mut b) = (a >> a.trailing_zeros(), b >> b.trailing_zeros());
    while a != b {
        if a > b {
            (a, b) = (b, a);
        }
        b -= a;
        b >>= b.trailing_zeros();
    }
    a << twos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Threshold, split};
    use proptest::prelude::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};
    use theta_groups::bls12_381::{BlsScalar, G1, G2};
    use theta_groups::{Ristretto255, RistrettoScalar, Secret};

    fn indices(numbers: &[u16]) -> Vec<ShareIndex> {
        numbers.iter().map(|number| ShareIndex::try_from(*number).unwrap()).collect()
    }

    /// k different numbers of 1 to n in random order.
    fn random_subset(n: u16, k: usize, rng: &mut impl Rng) -> Vec<u16> {
        let mut numbers: Vec<u16> = (1..=n).collect();
        for i in 0..k {
            let j = i + rng.next_u32() as usize % (numbers.len() - i);
            numbers.swap(i, j);
        }
        numbers.truncate(k);
        numbers
    }

    /// The textbook's formula, one inversion for every factor.
    fn naive<S: Scalar>(set: &[ShareIndex]) -> Vec<S> {
        let number = |index: ShareIndex| S::from_u64(u64::from(index.get()));
        set.iter()
            .map(|i| {
                let others = set.iter().filter(|j| *j != i);
                others.fold(S::ONE, |product, j| product * number(*j) * (number(*j) - number(*i)).invert())
            })
            .collect()
    }

    fn one_by_one<S: Scalar>(indices: &[ShareIndex]) -> Vec<S> {
        let set = InterpolationSet::new(indices.to_vec()).unwrap();
        indices.iter().map(|&index| set.coefficient_at_zero(index)).collect()
    }

    /// A polynomial of degree `degree`, in the exponent, at these indices; and at zero.
    fn shares_of<G: Group>(numbers: &[u16], rng: &mut ChaCha20Rng) -> (Vec<(ShareIndex, G::Element)>, G::Element) {
        let coefficients: Vec<G::Scalar> = numbers.iter().map(|_| G::Scalar::random(rng)).collect();
        let shares = indices(numbers)
            .into_iter()
            .map(|index| {
                let x = G::Scalar::from_u64(u64::from(index.get()));
                let y = coefficients.iter().rev().fold(G::Scalar::ZERO, |y, coefficient| y * x + *coefficient);
                (index, G::mul_base(&y))
            })
            .collect();
        (shares, G::mul_base(&coefficients[0]))
    }

    #[test]
    fn bad_sets_are_refused() {
        assert_eq!(coefficients_at_zero::<BlsScalar>(&[]), Err(InterpolationError::Empty));
        let duplicate = indices(&[3, 1, 2, 1]);
        assert_eq!(coefficients_at_zero::<BlsScalar>(&duplicate), Err(InterpolationError::Duplicate(duplicate[1])));
        assert_eq!(vartime_interpolate_at_zero::<G1>(&[]), Err(InterpolationError::Empty));
        let twice = [(duplicate[0], G1::generator()), (duplicate[0], G1::identity())];
        assert_eq!(vartime_interpolate_at_zero::<G1>(&twice), Err(InterpolationError::Duplicate(duplicate[0])));
    }

    fn every_small_subset<G: Group>(n: u16) {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for mask in 1..1_u32 << n {
            let numbers: Vec<u16> = (1..=n).filter(|i| mask >> (i - 1) & 1 == 1).collect();
            let set = indices(&numbers);
            assert_eq!(coefficients_at_zero::<G::Scalar>(&set).unwrap(), naive::<G::Scalar>(&set), "{numbers:?}");
            assert_eq!(one_by_one::<G::Scalar>(&set), naive::<G::Scalar>(&set), "{numbers:?}");
            let (shares, expected) = shares_of::<G>(&numbers, &mut rng);
            assert_eq!(vartime_interpolate_at_zero::<G>(&shares), Ok(expected), "{numbers:?}");
        }
    }

    #[test]
    fn every_small_subset_of_ristretto255() {
        every_small_subset::<Ristretto255>(8);
    }

    #[test]
    fn every_small_subset_of_g1() {
        every_small_subset::<G1>(6);
    }

    #[test]
    fn every_small_subset_of_g2() {
        every_small_subset::<G2>(5);
    }

    #[test]
    fn random_subsets_of_many() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        for (n, k) in [(31, 11), (40, 14), (60, 20), (127, 43), (127, 43), (1000, 334), (u16::MAX, 7), (u16::MAX, 12)] {
            let numbers = random_subset(n, k, &mut rng);
            let set = indices(&numbers);
            let fast = coefficients_at_zero::<RistrettoScalar>(&set).unwrap();
            assert_eq!(one_by_one::<RistrettoScalar>(&set), fast);
            if k < 100 {
                assert_eq!(fast, naive::<RistrettoScalar>(&set));
            }
            // The coefficients at zero of the constant polynomial and of x.
            assert_eq!(fast.iter().copied().sum::<RistrettoScalar>(), RistrettoScalar::ONE);
            let x = fast.iter().zip(&set).map(|(l, i)| *l * RistrettoScalar::from_u64(u64::from(i.get())));
            assert_eq!(x.sum::<RistrettoScalar>(), if k == 1 { fast[0] } else { RistrettoScalar::ZERO });
            let (shares, expected) = shares_of::<Ristretto255>(&numbers, &mut rng);
            assert_eq!(vartime_interpolate_at_zero::<Ristretto255>(&shares), Ok(expected), "{k} of {n}");
        }
    }

    #[test]
    fn consecutive_indices_need_no_division() {
        for k in 1..=30_u16 {
            let numbers: Vec<u16> = (1..=k).rev().collect();
            let fractions = SmallFractions::of(&InterpolationSet::new(indices(&numbers)).unwrap()).unwrap();
            assert_eq!(fractions.denominator, 1);
        }
        let four = SmallFractions::of(&InterpolationSet::new(indices(&[1, 2, 3, 4])).unwrap()).unwrap();
        assert_eq!(four.numerators, [4, 6, 4, 1]);
    }

    #[test]
    fn both_ways_are_taken() {
        let small = |numbers: &[u16]| SmallFractions::of(&InterpolationSet::new(indices(numbers)).unwrap()).is_some();
        assert!(small(&[2, 5, 7]) && small(&[65_535]) && small(&[1, 65_535]));
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        assert!(small(&random_subset(31, 11, &mut rng)));
        assert!(!small(&random_subset(127, 43, &mut rng)));
        assert!(!small(&random_subset(1000, 334, &mut rng)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn gcd_is_the_greatest(a in 1..=u64::MAX, b in 1..=u64::MAX, c in 1..=u64::MAX) {
            let (a, b, c) = (u128::from(a), u128::from(b), u128::from(c));
            let euclid = |mut a: u128, mut b: u128| { while b != 0 { (a, b) = (b, a % b); } a };
            prop_assert_eq!(gcd(a * c, b * c), euclid(a * c, b * c));
            prop_assert_eq!(gcd(a, b), euclid(a, b));
        }

        #[test]
        fn any_k_shares_give_the_secret(seed: u64, n in 1..=30_u16, k in 1..=30_u16) {
            let k = k.min(n);
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let secret = Secret::new(BlsScalar::random(&mut rng));
            let shares = split(&secret, Threshold::new(k, n).unwrap(), &mut rng);
            prop_assert_eq!(shares.len(), usize::from(n));
            let mut numbers = random_subset(n, usize::from(k), &mut rng);
            let combine = |numbers: &[u16]| {
                let set = indices(numbers);
                let coefficients = coefficients_at_zero::<BlsScalar>(&set).unwrap();
                set.iter().zip(coefficients).map(|(i, l)| l * *shares[i.position()].expose()).sum::<BlsScalar>()
            };
            prop_assert_eq!(combine(&numbers), *secret.expose());
            // One share less gives something else.
            numbers.pop();
            if !numbers.is_empty() {
                prop_assert_ne!(combine(&numbers), *secret.expose());
            }
        }

        #[test]
        fn interpolation_in_the_exponent(seed: u64, n in 1..=40_u16, k in 1..=16_u16) {
            let k = k.min(n);
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let numbers = random_subset(n, usize::from(k), &mut rng);
            let (shares, expected) = shares_of::<Ristretto255>(&numbers, &mut rng);
            prop_assert_eq!(vartime_interpolate_at_zero::<Ristretto255>(&shares), Ok(expected));
            let elements: Vec<_> = shares.iter().map(|(_, element)| *element).collect();
            let naive = Ristretto255::vartime_msm(&naive(&indices(&numbers)), &elements);
            prop_assert_eq!(naive, expected);
        }
    }
}
