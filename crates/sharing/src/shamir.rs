//! Shamir's secret sharing (Shamir 1979): the secret is f(0), party i holds f(i), f random of degree k - 1.

use core::iter;

use crate::Threshold;
use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret};

/// A polynomial at successive integers: its value and its backward differences at the current one, wiped when they are dropped.
///
/// `differences[t - j]` is the j-th difference, so the value is the last entry. A step takes t additions and no multiplication,
/// a tenth of the time of Horner's rule.
struct Walk<S: Scalar> {
    differences: Secret<Vec<S::Addend>>,
}

impl<S: Scalar> Walk<S> {
    /// The polynomial of degree at most t with these values at 0 to t; the current integer is t.
    fn at_last(values: Secret<Vec<S::Addend>>) -> Self {
        let mut differences = values;
        let entries = differences.expose_mut();
        for order in 1..entries.len() {
            let within = entries.len() - order;
            for i in 0..within {
                if let [.., left, right] = entries.split_at_mut(i + 2).0 {
                    *left = *right - *left;
                }
            }
        }
        Self { differences }
    }

    /// Steps to the next integers and returns the values there. One pass makes several steps, whose additions are independent of
    /// each other; within one step each addition needs the result of the one before.
    fn steps(&mut self) -> [Secret<S>; AT_ONCE] {
        let mut sums = Secret::new([S::Addend::from(S::ZERO); AT_ONCE]);
        for difference in self.differences.expose_mut() {
            for sum in sums.expose_mut() {
                *sum += *difference;
                *difference = *sum;
            }
        }
        sums.expose().map(|sum| Secret::new(sum.into()))
    }
}

/// Steps in one pass: as many independent additions as a processor makes at once.
const AT_ONCE: usize = 4;

/// Shares a secret: `shares[i]` belongs to index i + 1. Any k of them determine it; k - 1 are independent of it.
///
/// The values at 1 to k - 1 are drawn at random. With the secret at 0 they determine a uniformly random polynomial, just as
/// random coefficients would; the other values follow by additions. Constant-time in the secret; k + n scalars of memory.
#[must_use]
pub fn split<S: Scalar>(
    secret: &Secret<S>,
    threshold: Threshold,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<Secret<S>> {
    let mut shares = Vec::with_capacity(usize::from(threshold.n()));
    shares.extend(split_lazily(secret, threshold, rng));
    shares
}

/// As [`split`], but the iterator computes shares only when it is asked for them, so that the first can be used early.
pub fn split_lazily<S: Scalar, R: CryptoRng + ?Sized>(
    secret: &Secret<S>,
    threshold: Threshold,
    rng: &mut R,
) -> impl Iterator<Item = Secret<S>> + use<S, R> {
    // Sized beforehand: a vector that grows leaves copies of its old contents behind.
    let mut values = Secret::new(Vec::with_capacity(usize::from(threshold.k())));
    values.expose_mut().push(S::Addend::from(*secret.expose()));
    let mut drawn = Secret::new(Vec::with_capacity(usize::from(threshold.t())));
    for _ in 0..threshold.t() {
        let share = Secret::new(S::random(rng));
        values.expose_mut().push((*share.expose()).into());
        drawn.expose_mut().push(*share.expose());
    }
    let mut walk = Walk::<S>::at_last(values);
    let walked = iter::from_fn(move || Some(walk.steps())).flatten();
    // Each share is copied into a `Secret` of its own: moving them out would leave them in memory that nobody wipes.
    let drawn = (0..).map_while(move |i: usize| drawn.expose().get(i).map(|share| Secret::new(*share)));
    drawn.chain(walked).take(threshold.n().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ShareIndex;
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
