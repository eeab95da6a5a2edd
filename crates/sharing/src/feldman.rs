//! Verifiable secret sharing (Feldman, FOCS 1987): the dealer publishes g to the power of each coefficient, and everyone
//! can check a share against them.

use rand_core::CryptoRng;
use theta_groups::{Group, Scalar, Secret};

use crate::dealing::scalar_of;
use crate::pedersen::Blinding;
use crate::{Polynomial, ShareIndex};

/// A polynomial in the exponent: one group element for each coefficient, the constant first. The elements are commitments of
/// Feldman or of Pedersen; the type does not tell which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitments<G: Group>(Vec<G::Element>);

impl<G: Group> Commitments<G> {
    /// These coefficients, unchecked.
    #[must_use]
    pub const fn new(coefficients: Vec<G::Element>) -> Self {
        Self(coefficients)
    }

    /// Feldman's commitments to a polynomial: g * a_j.
    #[must_use]
    pub fn feldman(polynomial: &Polynomial<G::Scalar>) -> Self {
        Self(G::mul_base_batch(polynomial.coefficients().expose()))
    }

    /// Turns commitments to q(X) into commitments to (X - root) q(X), which vanishes at `root` by construction.
    #[must_use]
    pub fn vartime_times_root(&self, root: ShareIndex) -> Self {
        let root = [u128::from(root.get())];
        let scaled = self.0.iter().map(|element| -G::vartime_msm_short(&root, &[*element]));
        let zero = || core::iter::once(G::identity());
        let shifted = zero().chain(self.0.iter().copied());
        Self(scaled.chain(zero()).zip(shifted).map(|(low, high)| low + high).collect())
    }

    /// One element for each coefficient.
    #[must_use]
    pub fn coefficients(&self) -> &[G::Element] {
        &self.0
    }

    /// The polynomial's value at an index, in the exponent.
    #[must_use]
    pub fn vartime_at(&self, index: ShareIndex) -> G::Element {
        match short_powers(index, self.0.len()) {
            Some(powers) => G::vartime_msm_short(&powers, &self.0),
            None => G::vartime_msm(&powers_of::<G::Scalar>(index, self.0.len()), &self.0),
        }
    }

    /// The sum of polynomials, each times a scalar.
    #[must_use]
    pub fn vartime_combine(terms: &[(G::Scalar, &Self)]) -> Self {
        let longest = terms.iter().map(|(_, commitments)| commitments.0.len()).max().unwrap_or(0);
        let coefficient = |j: usize| {
            let terms = terms.iter().filter_map(|(scalar, commitments)| Some((*scalar, *commitments.0.get(j)?)));
            let (scalars, elements): (Vec<_>, Vec<_>) = terms.unzip();
            G::vartime_msm(&scalars, &elements)
        };
        Self((0..longest).map(coefficient).collect())
    }

    /// The sum of polynomials.
    #[must_use]
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum: Vec<G::Element> = Vec::new();
        for commitments in all {
            sum.resize(sum.len().max(commitments.0.len()), G::identity());
            sum.iter_mut().zip(&commitments.0).for_each(|(sum, element)| *sum = *sum + *element);
        }
        Self(sum)
    }
}

/// 1, x, x^2, ..., if they are all below 2^128.
fn short_powers(index: ShareIndex, count: usize) -> Option<Vec<u128>> {
    let mut powers = vec![1_u128];
    while powers.len() < count {
        powers.push(powers.last()?.checked_mul(u128::from(index.get()))?);
    }
    Some(powers)
}

/// 1, x, x^2, ...
fn powers_of<S: Scalar>(index: ShareIndex, count: usize) -> Vec<S> {
    core::iter::successors(Some(S::ONE), |power| Some(*power * scalar_of(index))).take(count).collect()
}

/// A share as its holder sees it: a value at an index, and the commitments that it should fit.
#[derive(Debug)]
pub struct CommittedShare<'a, G: Group> {
    /// The commitments that the dealer published.
    pub commitments: &'a Commitments<G>,
    /// Whose share it is.
    pub index: ShareIndex,
    /// f(index).
    pub value: &'a Secret<G::Scalar>,
    /// For Pedersen's commitments, f'(index) and the second generator.
    pub blinding: Option<(&'a Secret<G::Scalar>, Blinding<G>)>,
}

impl<G: Group> CommittedShare<'_, G> {
    /// g * f(index), plus h * f'(index) if it is blinded. Constant-time in the values.
    fn image(&self) -> G::Element {
        let image = G::mul_base(self.value.expose());
        self.blinding.map_or(image, |(value, blinding)| image + *blinding.element() * *value.expose())
    }

    /// Whether the share fits the commitments.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.commitments.vartime_at(self.index) == self.image()
    }
}

/// The positions of all shares that do not fit their commitments, in order.
///
/// One multi-scalar multiplication over all commitments with random 128-bit weights decides about all shares at once (a
/// wrong answer has probability 2^-128). If it fails, halves are tried, down to the false shares.
pub fn vartime_false_shares<G: Group>(
    shares: &[CommittedShare<'_, G>],
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<usize> {
    let terms: Vec<Term<'_, G>> = shares
        .iter()
        .enumerate()
        .map(|(position, share)| {
            let mut weight = [0; 16];
            rng.fill_bytes(&mut weight);
            // The secret value is multiplied here, once and in constant time; the sums below have public terms only.
            Term { position, weight: G::Scalar::from_u128(u128::from_le_bytes(weight)), share, image: share.image() }
        })
        .collect();
    let mut culprits = Vec::new();
    bisect(&terms, &mut culprits);
    culprits
}

struct Term<'a, G: Group> {
    position: usize,
    weight: G::Scalar,
    share: &'a CommittedShare<'a, G>,
    image: G::Element,
}

fn bisect<G: Group>(terms: &[Term<'_, G>], culprits: &mut Vec<usize>) {
    if sums_to_identity(terms) {
        return;
    }
    if let [term] = terms {
        culprits.push(term.position);
        return;
    }
    let (left, right) = terms.split_at(terms.len() / 2);
    bisect(left, culprits);
    bisect(right, culprits);
}

/// Whether the weighted sum of all differences between commitments and images is the identity.
fn sums_to_identity<G: Group>(terms: &[Term<'_, G>]) -> bool {
    let (mut scalars, mut points) = (Vec::new(), Vec::new());
    for Term { weight, share, image, .. } in terms {
        let mut power = *weight;
        for element in share.commitments.coefficients() {
            scalars.push(power);
            points.push(*element);
            power = power * scalar_of(share.index);
        }
        scalars.push(-*weight);
        points.push(*image);
    }
    G::is_identity(&G::vartime_msm(&scalars, &points))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use theta_groups::{Ed448, P256, Ristretto255, bls12_381, bn254};

    fn index(number: u16) -> ShareIndex {
        ShareIndex::try_from(number).unwrap()
    }

    fn commitments_are_the_polynomial_in_the_exponent<G: Group>() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for k in [1, 2, 5, 9] {
            let polynomial = Polynomial::<G::Scalar>::random(k, &mut rng);
            let commitments = Commitments::<G>::feldman(&polynomial);
            for at in [1, 2, 7, u16::MAX].map(index) {
                assert_eq!(commitments.vartime_at(at), G::mul_base(polynomial.at(at).expose()));
            }
        }
    }

    #[test]
    fn in_every_kind_of_group() {
        commitments_are_the_polynomial_in_the_exponent::<Ristretto255>();
        commitments_are_the_polynomial_in_the_exponent::<Ed448>();
        commitments_are_the_polynomial_in_the_exponent::<P256>();
        commitments_are_the_polynomial_in_the_exponent::<bls12_381::G2>();
        commitments_are_the_polynomial_in_the_exponent::<bn254::G1>();
    }

    #[test]
    fn a_root_is_a_root_and_nothing_else_changes() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        for coefficients in 0..4 {
            let quotient = Polynomial::<<Ristretto255 as Group>::Scalar>::random(coefficients, &mut rng);
            let product = Commitments::<Ristretto255>::feldman(&quotient).vartime_times_root(index(4));
            assert_eq!(product.coefficients().len(), usize::from(coefficients) + 1);
            assert!(Ristretto255::is_identity(&product.vartime_at(index(4))));
            let factor = scalar_of::<<Ristretto255 as Group>::Scalar>(index(9)) - scalar_of(index(4));
            let expected = Ristretto255::mul_base(&(*quotient.at(index(9)).expose() * factor));
            assert_eq!(product.vartime_at(index(9)), expected);
        }
    }

    #[test]
    fn all_false_shares_are_found_even_if_their_errors_cancel() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let polynomials: Vec<_> =
            (0..9).map(|_| Polynomial::<<Ristretto255 as Group>::Scalar>::random(3, &mut rng)).collect();
        let commitments: Vec<_> = polynomials.iter().map(Commitments::<Ristretto255>::feldman).collect();
        let one = <Ristretto255 as Group>::Scalar::ONE;
        for wrong in [vec![], vec![0], vec![8], vec![2, 3], vec![1, 4, 7, 8]] {
            let values: Vec<_> = polynomials
                .iter()
                .enumerate()
                .map(|(i, polynomial)| {
                    let error = match wrong.iter().position(|w| *w == i) {
                        None => one - one,
                        Some(place) if place % 2 == 0 => one,
                        Some(_) => -one,
                    };
                    Secret::new(*polynomial.at(index(5)).expose() + error)
                })
                .collect();
            let shares: Vec<_> = commitments
                .iter()
                .zip(&values)
                .map(|(commitments, value)| CommittedShare { commitments, index: index(5), value, blinding: None })
                .collect();
            assert_eq!(vartime_false_shares(&shares, &mut rng), wrong);
            for (i, share) in shares.iter().enumerate() {
                assert_eq!(share.is_true(), !wrong.contains(&i));
            }
        }
    }

    #[test]
    fn sums_and_combinations_agree_with_values() {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let polynomials: Vec<_> =
            [2, 3].map(|k| Polynomial::<<Ristretto255 as Group>::Scalar>::random(k, &mut rng)).into();
        let commitments: Vec<_> = polynomials.iter().map(Commitments::<Ristretto255>::feldman).collect();
        let at = index(6);
        let values: Vec<_> = polynomials.iter().map(|polynomial| *polynomial.at(at).expose()).collect();
        let sum = Commitments::sum(&commitments);
        assert_eq!(sum.vartime_at(at), Ristretto255::mul_base(&(values[0] + values[1])));
        let two = <Ristretto255 as Group>::Scalar::from_u64(2);
        let combined = Commitments::vartime_combine(&[(two, &commitments[0]), (-two, &commitments[1])]);
        assert_eq!(combined.vartime_at(at), Ristretto255::mul_base(&(two * values[0] - two * values[1])));
    }
}
