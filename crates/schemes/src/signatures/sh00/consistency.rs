//! Whether the verification keys belong to the modulus, to each other and to k.

use theta_groups::Transcript;
use theta_groups::modular::{Integer, Residue};

use super::{PUBLIC_EXPONENT, RsaPublicKey};
use crate::derived_rng::DerivedRng;

/// A polynomial f of degree k - 1 is known by its values at 1, ..., k, and then
/// `f(j) = sum over i of (-1)^(k - i) C(j - 1, i - 1) C(j - i - 1, k - i) f(i)` for j > k and
/// `f(0) = sum over i of (-1)^(i - 1) C(k, i) f(i)`. All coefficients are integers, so the equations can be checked in the
/// exponent, where nobody can divide. With f(0) = Delta d, the last one becomes `e f(0) = Delta`.
///
/// All equations are weighted with 128 bits each, hashed from the keys, and added up; both sides are squared, so what is
/// compared are squares, whose group has no small subgroup. A false equation passes with probability 2^-128 for each
/// attempt. Takes n multiplications for every bit of the binomials, which have up to n bits.
pub(super) fn vartime_on_one_polynomial(key: &RsaPublicKey) -> bool {
    let threshold = key.threshold();
    let (k, n) = (u64::from(threshold.k()), u64::from(threshold.n()));
    let mut weights = weights(key);
    let mut weight = || Integer::from_u128(weights.next_u128());

    // The equation at zero: v_i^(w e C(k, i)) for odd i on the left, for even i and v^(w Delta) on the right.
    let mut zero = weight();
    let at_zero = key.delta().mul(&zero);
    zero.mul_u64(PUBLIC_EXPONENT);
    let mut from_zero = Vec::new();
    let mut binomial = zero;
    for i in 1..=k {
        binomial.mul_u64(k + 1 - i);
        binomial.div_u64(i);
        from_zero.push(binomial.clone());
    }

    // The equations at j > k: C(j - 1, i - 1) C(j - i - 1, k - i) = C(j - 1, k) C(k, i) i / (j - i).
    let mut sums: Vec<Integer> = (1..=k).map(|_| Integer::from_u64(0)).collect();
    let mut outer = Vec::new();
    let mut from_k = Integer::from_u64(1);
    for j in k + 1..=n {
        // C(j - 1, k).
        if j > k + 1 {
            from_k.mul_u64(j - 1);
            from_k.div_u64(j - 1 - k);
        }
        let weight = weight();
        let mut term = from_k.mul(&weight);
        for (i, sum) in (1..=k).zip(&mut sums) {
            // C(k, i), once more by its neighbour; exact although i / (j - i) alone is not.
            term.mul_u64(k + 1 - i);
            term.div_u64(i);
            let mut coefficient = term.clone();
            coefficient.mul_u64(i);
            coefficient.div_u64(j - i);
            sum.add_assign(&coefficient);
        }
        outer.push(weight);
    }

    let (inner_keys, outer_keys) = key.verification_keys().split_at_checked(sums.len()).unwrap_or_default();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (i, (key, exponent)) in (1..=k).zip(inner_keys.iter().zip(&from_zero)) {
        if i % 2 == 1 { left.push((key, exponent)) } else { right.push((key, exponent)) }
    }
    right.push((key.verification_base(), &at_zero));
    for (i, (key, exponent)) in (1..=k).zip(inner_keys.iter().zip(&sums)) {
        if (k - i) % 2 == 0 { left.push((key, exponent)) } else { right.push((key, exponent)) }
    }
    right.extend(outer_keys.iter().zip(&outer));
    let square = |factors: &[(&Residue, &Integer)]| key.modulus().square(&key.modulus().vartime_product(factors));
    square(&left) == square(&right)
}

/// The weights: a hash of the keys, so that a dealer cannot choose them.
fn weights(key: &RsaPublicKey) -> DerivedRng {
    let modulus = key.modulus();
    let mut transcript = Transcript::new("theta/sh00/key-consistency/v1")
        .with("key id", key.key_id().as_bytes())
        .with("k", &key.threshold().k().to_le_bytes())
        .with("base", &modulus.encode(key.verification_base()));
    for key in key.verification_keys() {
        transcript.append("verification key", &modulus.encode(key));
    }
    DerivedRng::new(transcript)
}
