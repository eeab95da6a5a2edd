//! Whether public key and verification keys belong to one polynomial.

use theta_groups::{Group, Scalar, Transcript};

use super::PublicKeySet;

/// The dual-code test of Cascudo and David (SCRAPE, ACNS 2017, section 3.1): values h_0..h_n lie on a polynomial of
/// degree t if and only if `sum v_i p(i) h_i = 0` for all polynomials p of degree up to n - t - 1, where
/// `v_i = prod_{j != i} 1 / (i - j)`. Here the points are 0..=n and h_0 is the public key.
///
/// Testing p(i) = (i - z)^d, d = n - t - 1, at one unpredictable z decides all p at once but for a chance of d / q: the sum
/// is a polynomial in z whose coefficients are the moments `sum v_i i^j h_i` times non-zero binomials.
/// Takes time n log n rather than n^2. z is a hash of the keys.
pub(super) fn vartime_on_one_polynomial<G: Group>(set: &PublicKeySet<G>) -> bool {
    let threshold = set.threshold();
    let (n, degree) = (u64::from(threshold.n()), u64::from(threshold.n() - threshold.t()) - 1);
    let mut transcript = Transcript::new("theta/key-consistency/v1").with("public key", set.public_key_bytes());
    for key in set.verification_keys() {
        transcript.append("verification key", key.bytes());
    }
    let z: G::Scalar = transcript.with("k", &threshold.k().to_le_bytes()).challenge();

    // Up to the common factor n!, v_i is (-1)^i times the binomial coefficient of n and i.
    let mut inverses: Vec<G::Scalar> = (1..=n).map(G::Scalar::from_u64).collect();
    G::Scalar::vartime_batch_invert(&mut inverses);
    let mut signed_binomial = G::Scalar::ONE;
    let mut weights = Vec::with_capacity(inverses.len() + 1);
    weights.push(signed_binomial * power(-z, degree));
    for (i, inverse) in (1..=n).zip(inverses) {
        signed_binomial = -(signed_binomial * G::Scalar::from_u64(n + 1 - i) * inverse);
        weights.push(signed_binomial * power(G::Scalar::from_u64(i) - z, degree));
    }
    let mut points = Vec::with_capacity(weights.len());
    points.push(*set.public_key());
    points.extend(set.verification_keys().iter().map(|key| *key.element()));
    G::is_identity(&G::vartime_msm(&weights, &points))
}

/// base^exponent by squaring; both public.
fn power<S: Scalar>(mut base: S, mut exponent: u64) -> S {
    let mut result = S::ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base;
        }
        base = base * base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;
    use theta_groups::{Group, Ristretto255};
    use theta_sharing::{Encoded, Threshold};

    use crate::coins::cks05::Cks05;
    use crate::keys::{PublicKeyError, PublicKeySet, deal};

    type Coin = Cks05<Ristretto255>;

    #[test]
    fn only_one_degree_fits() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for (k, n) in [(1, 1), (1, 5), (2, 2), (3, 7), (6, 7), (7, 7)] {
            let dealt = deal::<Coin>(Threshold::new(k, n).unwrap(), &mut rng).public;
            let check = |k, public_key, keys: &[_]| {
                let public_key = Encoded::new(public_key);
                PublicKeySet::new::<Coin>(Threshold::new(k, n).unwrap(), public_key, keys.to_vec(), None).map(drop)
            };
            let (public_key, keys) = (*dealt.public_key(), dealt.verification_keys());
            for claimed in 1..=n {
                // A polynomial of degree k - 1 is one of any higher degree, too; that much is the dealer's word.
                assert_eq!(check(claimed, public_key, keys).is_ok(), claimed >= k, "{claimed} for {k} of {n}");
            }
            let moved = public_key + Ristretto255::generator();
            assert_eq!(check(k, moved, keys), Err(PublicKeyError::Inconsistent));
            for party in 0..usize::from(n) {
                let mut wrong = keys.to_vec();
                wrong[party] = Encoded::new(*wrong[party].element() + Ristretto255::generator());
                assert_eq!(check(k, public_key, &wrong), Err(PublicKeyError::Inconsistent));
            }
        }
    }

    #[test]
    fn the_identity_is_no_key() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let threshold = Threshold::new(1, 2).unwrap();
        let dealt = deal::<Coin>(threshold, &mut rng).public;
        let identity = Encoded::new(Ristretto255::identity());
        let public_key = Encoded::new(*dealt.public_key());
        let with_identity = vec![public_key, identity];
        assert_eq!(
            PublicKeySet::new::<Coin>(threshold, identity, vec![identity; 2], None),
            Err(PublicKeyError::Identity)
        );
        assert_eq!(
            PublicKeySet::new::<Coin>(threshold, public_key, with_identity, None),
            Err(PublicKeyError::Identity)
        );
    }
}
