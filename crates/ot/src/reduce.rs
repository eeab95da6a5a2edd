//! Remainders modulo q, in words: Barrett's reduction (*Handbook of Applied Cryptography*, algorithm 14.42).
//!
//! A correction for each bit or digit of each product is what products cost. The scalars of the groups, which are made for
//! multiplications, take ten times as long for a remainder and its encoding.

use theta_groups::Scalar;

use crate::wide::Wide;
use crate::words;

/// An order of 252 to 256 bits, with what reductions need.
pub(crate) struct Modulus {
    /// q.
    order: [u64; 4],
    /// q times the power of two that makes it 256 bits long.
    long: [u64; 4],
    /// The logarithm of that power: 0 to 4.
    shift: u32,
    /// The whole part of 2^400 / long.
    reciprocal: [u64; 3],
    is_little_endian: bool,
}

/// Integers that are reduced are below 2^394: a sum of 2^8 pads, or a multiple of q that is above such sums.
#[cfg(test)]
pub(crate) const MOST_BITS: u32 = 394;

impl Modulus {
    pub(crate) fn of<S: Scalar>() -> Self {
        let order = words::order::<S>();
        let [.., highest] = order;
        let shift = highest.leading_zeros();
        let mut long = Wide(order);
        if shift > 0 {
            long.double(shift);
        }
        let Wide(long) = long;
        Self { order, long, shift, reciprocal: reciprocal(&long), is_little_endian: words::is_little_endian::<S>() }
    }

    /// q.
    pub(crate) const fn order(&self) -> &[u64; 4] {
        &self.order
    }

    /// The encoding of the remainder of an integer of at most 394 bits. Constant-time.
    pub(crate) fn encode(&self, integer: &Wide<7>) -> [u8; 32] {
        let remainder = self.remainder(integer);
        let mut bytes = [[0; 8]; 4];
        if self.is_little_endian {
            bytes.iter_mut().zip(remainder).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        } else {
            bytes.iter_mut().rev().zip(remainder).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
        }
        let mut encoding = [0; 32];
        encoding.copy_from_slice(bytes.as_flattened());
        encoding
    }

    /// Reads an encoding; `None` unless it is below q. For public bytes.
    pub(crate) fn decode(&self, bytes: &[u8; 32]) -> Option<[u64; 4]> {
        let words = words::read(bytes, self.is_little_endian);
        words.iter().rev().lt(self.order.iter().rev()).then_some(words)
    }

    fn remainder(&self, integer: &Wide<7>) -> [u64; 4] {
        let mut integer = *integer;
        if self.shift > 0 {
            integer.double(self.shift);
        }
        // The quotient is estimated from the bits above the lowest 255; it is at most 2 too small.
        let [_, _, _, c, d, e, f] = integer.0;
        let high = [c >> 63 | d << 1, d >> 63 | e << 1, e >> 63 | f << 1];
        let [_, _, c, d, e, _] = multiply::<3, 6>(&high, &self.reciprocal);
        let quotient = [c >> 17 | d << 47, d >> 17 | e << 47, e >> 17];
        integer.subtract(&multiply::<4, 7>(&quotient, &self.long));
        // Less than three times the modulus is left.
        let [a, b, c, d, e, ..] = integer.0;
        let left = self.subtract_once(self.subtract_once([a, b, c, d, e]));
        let [a, b, c, d, _] = left;
        match self.shift {
            0 => [a, b, c, d],
            shift => [
                a >> shift | b << (64 - shift),
                b >> shift | c << (64 - shift),
                c >> shift | d << (64 - shift),
                d >> shift,
            ],
        }
    }

    /// Subtracts the long modulus from what is not less.
    fn subtract_once(&self, from: [u64; 5]) -> [u64; 5] {
        let mut difference = Wide(from);
        difference.subtract(&self.long);
        let Wide(difference) = difference;
        // Below zero, the highest word is all ones; otherwise it is small.
        let [.., highest] = difference;
        let keep = (highest >> 63).wrapping_neg();
        let mut result = [0; 5];
        for ((result, from), difference) in result.iter_mut().zip(from).zip(difference) {
            *result = difference ^ (difference ^ from) & keep;
        }
        result
    }
}

/// The product of three words and others.
fn multiply<const M: usize, const N: usize>(left: &[u64; 3], right: &[u64; M]) -> [u64; N] {
    let mut product = Wide([0; N]);
    let [a, b, c] = *left;
    product.add_multiple(right, a);
    let mut shifted = [[0; N]; 2];
    for (index, word) in right.iter().enumerate() {
        for (offset, shifted) in (1..).zip(&mut shifted) {
            if let Some(place) = shifted.get_mut(index + offset) {
                *place = *word;
            }
        }
    }
    let [once, twice] = shifted;
    product.add_multiple(&once, b);
    product.add_multiple(&twice, c);
    product.0
}

/// The whole part of 2^400 / long, bit by bit; public.
fn reciprocal(long: &[u64; 4]) -> [u64; 3] {
    let mut quotient = Wide([0; 3]);
    let mut rest = Wide([1, 0, 0, 0, 0]);
    for _ in 0..400 {
        quotient.double(1);
        rest.double(1);
        let mut less = rest;
        less.subtract(long);
        if less.0.last().is_some_and(|word| word >> 63 == 0) {
            rest = less;
            quotient.add(&[1]);
        }
    }
    quotient.0
}

#[cfg(test)]
mod tests {
    use theta_groups::bls12_381::G1;
    use theta_groups::{Group, P256, Ristretto255, Secp256k1};

    use super::*;

    fn agrees<G: Group>() {
        let modulus = Modulus::of::<G::Scalar>();
        let most = |bits: u32| {
            let mut integer = Wide([0_u64; 7]);
            for (index, word) in (0..).zip(&mut integer.0) {
                let left = bits.saturating_sub(64 * index).min(64);
                *word = if left == 64 { u64::MAX } else { (1 << left) - 1 };
            }
            integer
        };
        let mut integers: Vec<Wide<7>> = (0..=MOST_BITS).map(most).collect();
        // Multiples of q, and what is beside them.
        for bits in 0..MOST_BITS - 256 {
            let factor = match bits / 64 {
                0 => [u64::MAX >> (63 - bits), 0, 0],
                1 => [u64::MAX, u64::MAX >> (127 - bits), 0],
                _ => [u64::MAX, u64::MAX, u64::MAX >> (191 - bits)],
            };
            let multiple = Wide(multiply::<4, 7>(&factor, modulus.order()));
            let (mut above, mut below) = (multiple, multiple);
            above.add(&[1]);
            below.subtract(&[1]);
            integers.extend([multiple, above, below]);
        }
        let mut state = 1_u64;
        for _ in 0..2000 {
            let mut integer = most(MOST_BITS);
            for word in &mut integer.0 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                *word &= state ^ state >> 29;
            }
            integers.push(integer);
        }
        for integer in integers {
            let expected = integer.reduce::<G::Scalar>().encode();
            assert_eq!(modulus.encode(&integer), expected.as_ref(), "{} {:x?}", G::NAME, integer.0);
        }
    }

    #[test]
    fn remainders_are_those_of_the_scalars() {
        agrees::<P256>();
        agrees::<Secp256k1>();
        agrees::<Ristretto255>();
        agrees::<G1>();
    }
}
