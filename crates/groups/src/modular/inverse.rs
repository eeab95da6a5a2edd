//! Inverses of public numbers by Lehmer's form of Euclid's algorithm, which works on leading words. aws-lc has the binary
//! algorithm, which goes bit by bit and is fifteen times slower at 2048 bits.

use dashu_int::ops::{ExtendedGcd as _, RemEuclid as _};
use dashu_int::{IBig, UBig};

use super::Integer;

/// The inverse of `a` modulo `modulus`, from 1 to `modulus` - 1; `None` if they have a factor in common or there is no
/// such number. Time depends on the values, and they are left in memory.
pub(super) fn vartime_inverse(a: &Integer, modulus: &Integer) -> Option<Integer> {
    let [a, modulus] = [public(a)?, public(modulus)?];
    if modulus <= UBig::ONE {
        return None;
    }
    let (divisor, coefficient, _) = (&a).gcd_ext(&modulus);
    (divisor == UBig::ONE).then(|| {
        let inverse = coefficient.rem_euclid(&IBig::from(modulus));
        Integer::from_be_bytes(&inverse.to_be_bytes())
    })
}

/// The same number for the other library.
fn public(value: &Integer) -> Option<UBig> {
    let len = usize::try_from(value.bits().div_ceil(8)).ok()?;
    value.to_be_bytes(len).map(|bytes| UBig::from_be_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::vartime_inverse;
    use crate::modular::Integer;

    #[test]
    fn small_numbers_have_the_inverses_of_the_definition() {
        for modulus in 0..40 {
            for a in 0..80 {
                let expected = (1..modulus).find(|inverse| a * inverse % modulus == 1);
                let got = vartime_inverse(&Integer::from_u64(a), &Integer::from_u64(modulus));
                assert_eq!(got, expected.map(Integer::from_u64), "{a} modulo {modulus}");
            }
        }
    }
}
