//! Lagrange coefficients over the integers.

use theta_groups::modular::Integer;
use theta_sharing::ShareIndex;

/// The Lagrange coefficients at zero of some indices, lambda_i = ± numerators\[i\] / denominator, with the least common
/// denominator. It divides the paper's Delta = n! and is far smaller for most sets: for 1, 2, ..., k it is 1.
pub(super) struct IntegerCoefficients {
    /// Positive, in the order of the indices.
    pub(super) numerators: Vec<Integer>,
    /// Whether the coefficient is negative.
    pub(super) negative: Vec<bool>,
    /// Positive.
    pub(super) denominator: Integer,
}

/// Exponents of the primes, by prime; entries that are no primes are zero.
type Exponents = Vec<i32>;

impl IntegerCoefficients {
    /// The coefficients of different indices.
    ///
    /// All factors are numbers up to n, so the code computes with the exponents of their primes, without divisions or greatest
    /// common divisors of large numbers.
    pub(super) fn at_zero(indices: &[ShareIndex]) -> Self {
        let largest = indices.iter().map(|index| usize::from(index.get())).max().unwrap_or(0);
        let smallest_factors = smallest_factors(largest);
        let fractions: Vec<Exponents> =
            indices.iter().map(|index| fraction(*index, indices, &smallest_factors)).collect();
        let mut common: Exponents = vec![0; smallest_factors.len()];
        for fraction in &fractions {
            for (common, exponent) in common.iter_mut().zip(fraction) {
                *common = (*common).max(-exponent);
            }
        }
        let numerators = fractions.iter().map(|fraction| product(common.iter().zip(fraction).map(|(c, e)| c + e)));
        Self {
            numerators: numerators.collect(),
            negative: indices.iter().map(|i| indices.iter().filter(|j| *j < i).count() % 2 == 1).collect(),
            denominator: product(common.iter().copied()),
        }
    }
}

/// The smallest prime factor of each number up to `largest`.
fn smallest_factors(largest: usize) -> Vec<usize> {
    let mut factors: Vec<usize> = (0..=largest).collect();
    for number in 2..=largest.isqrt() {
        if factors.get(number) == Some(&number) {
            for (multiple, factor) in factors.iter_mut().enumerate().skip(number * number).step_by(number) {
                if *factor == multiple {
                    *factor = number;
                }
            }
        }
    }
    factors
}

/// |lambda_i| = prod over j != i of j / |j - i|.
fn fraction(index: ShareIndex, indices: &[ShareIndex], smallest_factors: &[usize]) -> Exponents {
    let mut exponents: Exponents = vec![0; smallest_factors.len()];
    let mut add = |factor: u16, times: i32| {
        if let Some(exponent) = exponents.get_mut(usize::from(factor)) {
            *exponent += times;
        }
    };
    for other in indices.iter().filter(|other| **other != index) {
        add(other.get(), 1);
        add(other.get().abs_diff(index.get()), -1);
    }
    // From the largest down, every composite adds its exponent to those of its smallest prime and of the cofactor.
    for (number, factor) in smallest_factors.iter().enumerate().skip(4).rev().filter(|(number, f)| number != *f) {
        let exponent = exponents.get_mut(number).map_or(0, core::mem::take);
        for part in [*factor, number / factor] {
            if let Some(entry) = exponents.get_mut(part) {
                *entry += exponent;
            }
        }
    }
    // 1 is no prime.
    if let Some(one) = exponents.get_mut(1) {
        *one = 0;
    }
    exponents
}

/// The product of all numbers to their exponents, none of which is negative.
fn product(exponents: impl Iterator<Item = i32>) -> Integer {
    let mut done = Integer::from_u64(1);
    let mut pending = 1_u64;
    for (prime, exponent) in (0_u64..).zip(exponents) {
        for _ in 0..exponent {
            // Factors are gathered in a word until it is full.
            pending = pending.checked_mul(prime).unwrap_or_else(|| {
                done.mul_u64(pending);
                prime
            });
        }
    }
    done.mul_u64(pending);
    done
}

/// n!, the paper's Delta.
pub(super) fn factorial(n: u16) -> Integer {
    let mut exponents: Exponents = vec![1; usize::from(n) + 1];
    if let Some(zero) = exponents.first_mut() {
        *zero = 0;
    }
    product(exponents.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(value: &Integer) -> i128 {
        i128::from_be_bytes(value.to_be_bytes(16).unwrap().try_into().unwrap())
    }

    fn gcd(a: i128, b: i128) -> i128 {
        if b == 0 { a.abs() } else { gcd(b, a % b) }
    }

    #[test]
    fn coefficients_are_those_of_the_definition() {
        for mask in 1..1_u32 << 11 {
            let numbers: Vec<u16> = (1..=11).filter(|i| mask >> (i - 1) & 1 == 1).collect();
            let indices: Vec<_> = numbers.iter().map(|i| ShareIndex::try_from(*i).unwrap()).collect();
            let got = IntegerCoefficients::at_zero(&indices);
            let mut common = 1;
            for ((i, numerator), negative) in numbers.iter().zip(&got.numerators).zip(&got.negative) {
                let others = || numbers.iter().filter(|j| *j != i).map(|j| i128::from(*j));
                let above: i128 = others().product();
                let below: i128 = others().map(|j| j - i128::from(*i)).product();
                let signed = if *negative { -small(numerator) } else { small(numerator) };
                assert_eq!(signed * below, above * small(&got.denominator), "{numbers:?}");
                let reduced = (below / gcd(above, below)).abs();
                common = common / gcd(common, reduced) * reduced;
            }
            assert_eq!(small(&got.denominator), common, "the least common denominator of {numbers:?}");
        }
    }

    #[test]
    fn consecutive_indices_have_binomials() {
        let indices: Vec<_> = (1..=5).map(|i| ShareIndex::try_from(i).unwrap()).collect();
        let got = IntegerCoefficients::at_zero(&indices);
        assert_eq!(got.numerators.iter().map(small).collect::<Vec<_>>(), [5, 10, 10, 5, 1]);
        assert_eq!(got.negative, [false, true, false, true, false]);
        assert_eq!(small(&got.denominator), 1);
    }

    #[test]
    fn large_indices() {
        let indices: Vec<_> = [65_535, 1, 65_521].map(|i| ShareIndex::try_from(i).unwrap()).to_vec();
        let got = IntegerCoefficients::at_zero(&indices);
        // The coefficients of the constant polynomial add up to one.
        let sum: i128 =
            got.numerators.iter().zip(&got.negative).map(|(n, s)| if *s { -small(n) } else { small(n) }).sum();
        assert_eq!(sum, small(&got.denominator));
    }

    #[test]
    fn factorials() {
        assert_eq!(small(&factorial(1)), 1);
        assert_eq!(small(&factorial(25)), (1..=25).product::<i128>());
        assert_eq!(factorial(1000).bits(), 8530);
    }
}
