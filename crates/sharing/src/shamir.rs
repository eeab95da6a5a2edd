//! Shamir's secret sharing (Shamir 1979): the secret is f(0), party i holds f(i), f random of degree k - 1.

use crate::{ShareIndex, Threshold};
use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret};

/// A polynomial whose coefficients, lowest first, are wiped when it is dropped.
struct Polynomial<S: Scalar>(Secret<Vec<S>>);

impl<S: Scalar> Polynomial<S> {
    /// Uniform among those of degree `degree` or less with f(0) = `constant`.
    fn random(constant: &Secret<S>, degree: u16, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        // Sized beforehand: a vector that grows leaves copies of its old contents behind.
        let mut coefficients = Secret::new(Vec::with_capacity(usize::from(degree) + 1));
        coefficients.expose_mut().push(*constant.expose());
        for _ in 0..degree {
            coefficients.expose_mut().push(S::random(rng));
        }
        Self(coefficients)
    }

    /// f(index), by Horner's rule, in constant time.
    fn evaluate(&self, index: ShareIndex) -> Secret<S> {
        let x = S::from_u64(u64::from(index.get()));
        let mut value = Secret::new(S::ZERO);
        for coefficient in self.0.expose().iter().rev() {
            *value.expose_mut() = *value.expose() * x + *coefficient;
        }
        value
    }
}

/// Shares a secret: `shares[i]` belongs to index i + 1. Any k of them determine it; k - 1 are independent of it.
#[must_use]
pub fn split<S: Scalar>(
    secret: &Secret<S>,
    threshold: Threshold,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<Secret<S>> {
    let polynomial = Polynomial::random(secret, threshold.t(), rng);
    threshold.indices().map(|index| polynomial.evaluate(index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use theta_groups::RistrettoScalar;

    #[test]
    fn one_of_n_gives_everyone_the_secret() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let secret = Secret::new(RistrettoScalar::random(&mut rng));
        for share in split(&secret, Threshold::new(1, 5).unwrap(), &mut rng) {
            assert_eq!(share.expose(), secret.expose());
        }
    }

    #[test]
    fn two_of_n_is_a_line() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let secret = Secret::new(RistrettoScalar::random(&mut rng));
        let shares = split(&secret, Threshold::new(2, 4).unwrap(), &mut rng);
        let slope = *shares[0].expose() - *secret.expose();
        let mut expected = *secret.expose();
        for share in &shares {
            expected += slope;
            assert_eq!(*share.expose(), expected);
        }
        assert_ne!(slope, RistrettoScalar::ZERO);
    }

    #[test]
    fn sharing_the_same_secret_twice_gives_different_shares() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let secret = Secret::new(RistrettoScalar::random(&mut rng));
        let threshold = Threshold::new(2, 3).unwrap();
        let (a, b) = (split(&secret, threshold, &mut rng), split(&secret, threshold, &mut rng));
        assert!(a.iter().zip(&b).all(|(a, b)| a.expose() != b.expose()));
    }

    #[test]
    fn a_thousand_shares() {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let secret = Secret::new(RistrettoScalar::random(&mut rng));
        let shares = split(&secret, Threshold::new(334, 1000).unwrap(), &mut rng);
        let last: Vec<ShareIndex> = (667..=1000).map(|i| ShareIndex::try_from(i).unwrap()).collect();
        let coefficients = crate::coefficients_at_zero::<RistrettoScalar>(&last).unwrap();
        let sum = last.iter().zip(coefficients).map(|(i, l)| l * *shares[i.position()].expose());
        assert_eq!(sum.sum::<RistrettoScalar>(), *secret.expose());
    }
}
