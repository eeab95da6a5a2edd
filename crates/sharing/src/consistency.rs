//! Whether public key and verification keys belong to one polynomial.

use theta_groups::{Group, Scalar, Transcript};

use crate::{Encoded, Threshold};

/// The dual-code test of Cascudo and David (SCRAPE, ACNS 2017, section 3.1): values h_0..h_n lie on a polynomial of
/// degree t if and only if `sum v_i p(i) h_i = 0` for all polynomials p of degree up to n - t - 1, where
/// `v_i = prod_{j != i} 1 / (i - j)`. Here the points are 0..=n and h_0 is the public key.
///
/// The test takes p(i) = (i - z)^d, d = n - t - 1, at one unpredictable z, a hash of the keys. That decides all p at once, with
/// an error of probability d / q at most: the sum is a polynomial in z whose coefficients are the moments `sum v_i i^j h_i`
/// times non-zero binomials. It takes n log n field operations rather than n^2, and one multi-scalar multiplication.
#[must_use]
pub fn vartime_on_one_polynomial<G: Group>(
    threshold: Threshold,
    public_key: &Encoded<G>,
    verification_keys: &[Encoded<G>],
) -> bool {
    if verification_keys.len() != usize::from(threshold.n()) {
        return false;
    }
    let (n, degree) = (u64::from(threshold.n()), u64::from(threshold.n() - threshold.t()) - 1);
    let mut transcript = Transcript::new("theta/key-consistency/v1").with("public key", public_key.bytes());
    for key in verification_keys {
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
    points.push(*public_key.element());
    points.extend(verification_keys.iter().map(|key| *key.element()));
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
