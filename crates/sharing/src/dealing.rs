//! Polynomials with known coefficients, for verifiable dealings.
//!
//! [`crate::split`] draws values and never computes coefficients. Feldman's and Pedersen's commitments are made of
//! coefficients, so a dealer who must convince others uses a [`Polynomial`].

use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret};

use crate::{InterpolationError, InterpolationSet, ShareIndex};

/// The index as an element of the field.
pub(crate) fn scalar_of<S: Scalar>(index: ShareIndex) -> S {
    S::from_u64(u64::from(index.get()))
}

/// A secret polynomial over Z_q by its coefficients, the constant first. Wiped when it is dropped.
#[derive(Debug)]
pub struct Polynomial<S: Scalar>(Secret<Vec<S>>);

impl<S: Scalar> Polynomial<S> {
    /// A uniformly random polynomial with `coefficients` coefficients, one more than its degree.
    #[must_use]
    pub fn random(coefficients: u16, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        // Sized beforehand: a vector that grows leaves copies of its old contents behind.
        let mut all = Secret::new(Vec::with_capacity(usize::from(coefficients)));
        (0..coefficients).for_each(|_| all.expose_mut().push(S::random(rng)));
        Self(all)
    }

    /// A uniformly random polynomial with `coefficients` coefficients, at least one, whose value at zero is `constant`.
    #[must_use]
    pub fn with_constant(constant: &Secret<S>, coefficients: u16, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut polynomial = Self::random(coefficients, rng);
        if let Some(first) = polynomial.0.expose_mut().first_mut() {
            *first = *constant.expose();
        }
        polynomial
    }

    /// The polynomial of these coefficients, the constant first: what a dealer that does not draw them at random deals.
    #[must_use]
    pub const fn of(coefficients: Secret<Vec<S>>) -> Self {
        Self(coefficients)
    }

    /// The coefficients, the constant first.
    #[must_use]
    pub const fn coefficients(&self) -> &Secret<Vec<S>> {
        &self.0
    }

    /// The value at an index, by Horner's rule.
    #[must_use]
    pub fn at(&self, index: ShareIndex) -> Secret<S> {
        let x = scalar_of::<S>(index);
        let mut value = Secret::new(S::ZERO);
        for coefficient in self.0.expose().iter().rev() {
            *value.expose_mut() = *value.expose() * x + *coefficient;
        }
        value
    }
}

/// The Lagrange coefficients at `point`, in the order of `indices`: f(point) = sum of `coefficient_i` f(x_i) for every
/// polynomial of smaller degree than there are indices. One inversion for all.
///
/// # Errors
/// Any [`InterpolationError`].
pub fn coefficients_at<S: Scalar>(indices: &[ShareIndex], point: ShareIndex) -> Result<Vec<S>, InterpolationError> {
    InterpolationSet::new(indices.to_vec())?;
    let x = scalar_of::<S>(point);
    let others = |i: ShareIndex| indices.iter().filter(move |j| **j != i).map(|j| scalar_of::<S>(*j));
    let product = |factors: &mut dyn Iterator<Item = S>| factors.fold(S::ONE, |product, factor| product * factor);
    let mut coefficients: Vec<S> =
        indices.iter().map(|&i| product(&mut others(i).map(|j| scalar_of::<S>(i) - j))).collect();
    S::vartime_batch_invert(&mut coefficients);
    for (coefficient, &i) in coefficients.iter_mut().zip(indices) {
        *coefficient = *coefficient * product(&mut others(i).map(|j| x - j));
    }
    Ok(coefficients)
}

/// f(point) from secret shares f(x_i). The indices are public.
///
/// # Errors
/// Any [`InterpolationError`].
pub fn interpolate_at<S: Scalar>(
    shares: &[(ShareIndex, &Secret<S>)],
    point: ShareIndex,
) -> Result<Secret<S>, InterpolationError> {
    let indices: Vec<_> = shares.iter().map(|(index, _)| *index).collect();
    let mut sum = Secret::new(S::ZERO);
    for (coefficient, (_, share)) in coefficients_at::<S>(&indices, point)?.into_iter().zip(shares) {
        *sum.expose_mut() += coefficient * *share.expose();
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use theta_groups::RistrettoScalar;

    fn index(number: u16) -> ShareIndex {
        ShareIndex::try_from(number).unwrap()
    }

    #[test]
    fn any_k_values_give_every_other_one() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for k in 1..=6_u16 {
            let polynomial = Polynomial::<RistrettoScalar>::random(k, &mut rng);
            let values: Vec<_> = (0..k).map(|i| (index(3 * i + 2), polynomial.at(index(3 * i + 2)))).collect();
            let borrowed: Vec<_> = values.iter().map(|(i, value)| (*i, value)).collect();
            for point in [1, 2, 5, 40, u16::MAX].map(index) {
                let value = interpolate_at(&borrowed, point).unwrap();
                assert_eq!(value.expose(), polynomial.at(point).expose(), "{k}, {point}");
            }
        }
    }

    #[test]
    fn the_constant_is_where_it_was_put() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let secret = Secret::new(RistrettoScalar::random(&mut rng));
        let polynomial = Polynomial::with_constant(&secret, 3, &mut rng);
        assert_eq!(polynomial.coefficients().expose()[0], *secret.expose());
        let constant = Polynomial::with_constant(&secret, 1, &mut rng);
        assert_eq!(constant.at(index(9)).expose(), secret.expose());
    }

    #[test]
    fn bad_sets_are_refused() {
        assert_eq!(coefficients_at::<RistrettoScalar>(&[], index(1)), Err(InterpolationError::Empty));
        let twice = [index(2), index(2)];
        assert_eq!(coefficients_at::<RistrettoScalar>(&twice, index(1)), Err(InterpolationError::Duplicate(index(2))));
    }
}
