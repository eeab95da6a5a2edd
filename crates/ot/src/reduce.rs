//! Integers modulo q, in words, in constant time.
//!
//! A correction for each bit or digit of each product is what products cost. The scalars of the groups, which are made for
//! multiplications, take ten times as long for a remainder and its encoding.

use core::hint::black_box;

use theta_groups::Scalar;

use crate::wide::Wide;
use crate::words;

/// An order of 252 to 256 bits, with what reductions need.
pub(crate) struct Modulus {
    /// q.
    order: [u64; 4],
    /// The bits of the highest word that integers as long as q have.
    highest: u64,
    /// q times the power of two that makes it 256 bits long.
    long: [u64; 4],
    /// The logarithm of that power: 0 to 4.
    shift: u32,
    /// The whole part of 2^272 / long: at most 2^17.
    reciprocal: u64,
    is_little_endian: bool,
}

/// Integers of which [`Modulus::remainder`] is taken are below 2^268.
#[cfg(test)]
pub(crate) const MOST_BITS: u32 = 268;

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
        let (reciprocal, is_little_endian) = (reciprocal(&long), words::is_little_endian::<S>());
        Self { order, highest: u64::MAX >> shift, long, shift, reciprocal, is_little_endian }
    }

    /// q.
    pub(crate) const fn order(&self) -> &[u64; 4] {
        &self.order
    }

    /// A uniform scalar from two uniform blocks, the lower first: as many bits as q has, if they are below q. (q of P-256 and secp256k1 is so close to
    /// 2^256 that this fails once in 2^32 and 2^128 times; of others, up to every second time.)
    ///
    /// Whether it fails says nothing of the scalar that another try gives.
    #[inline]
    pub(crate) fn accept(&self, [low, high]: [u128; 2]) -> Option<[u64; 4]> {
        let ([a, b], [c, d]) = (words::split(low), words::split(high));
        let words = [a, b, c, d & self.highest];
        let (_, is_below) = borrow(&words, &self.order);
        is_below.then_some(words)
    }

    /// The scalar where candidate 0 was none: the first of candidates 1 to 127 that is one.
    #[cold]
    pub(crate) fn accept_later(&self, candidate: impl FnMut(u64) -> [u128; 2]) -> [u64; 4] {
        // Half of all candidates are below q for the q of least use: there is none among these with probability 2^-127.
        (1..128).map(candidate).find_map(|blocks| self.accept(blocks)).unwrap_or_default()
    }

    /// x - y + z modulo q, of three integers below q.
    #[inline]
    pub(crate) fn difference_and(&self, x: &[u64; 4], y: &[u64; 4], z: &[u64; 4]) -> [u64; 4] {
        let (mut difference, is_negative) = borrow(x, y);
        let mask = mask_if(is_negative);
        carry(&mut difference, &self.order.map(|word| word & mask));
        let overflows = carry(&mut difference, z);
        let (less, is_below) = borrow(&difference, &self.order);
        // q is taken away unless the sum is below it.
        let keep = mask_if(is_below & !overflows);
        let mut result = less;
        result.iter_mut().zip(difference).for_each(|(result, sum)| *result ^= (*result ^ sum) & keep);
        result
    }

    /// Writes the encoding of an integer below q.
    #[inline]
    pub(crate) fn encode(&self, integer: &[u64; 4], encoding: &mut [u8; 32]) {
        let words = encoding.as_chunks_mut().0.iter_mut();
        if self.is_little_endian {
            words.zip(integer).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        } else {
            words.rev().zip(integer).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
        }
    }

    /// Reads an encoding; `None` unless it is below q. For public bytes.
    pub(crate) fn decode(&self, bytes: &[u8; 32]) -> Option<[u64; 4]> {
        let words = words::read(bytes, self.is_little_endian);
        borrow(&words, &self.order).1.then_some(words)
    }

    /// The remainder of an integer below 2^268: Barrett's reduction (*Handbook of Applied Cryptography*, algorithm 14.42), with a quotient of one word.
    pub(crate) fn remainder(&self, integer: &Wide<5>) -> [u64; 4] {
        let mut integer = *integer;
        if self.shift > 0 {
            integer.double(self.shift);
        }
        // The quotient is estimated from the bits above the lowest 240, of which there are 32; it is at most 2 too small.
        let [.., d, e] = integer.0;
        let quotient = ((d >> 48 | e << 16) * self.reciprocal) >> 32;
        let mut multiple = Wide::<5>::ZERO;
        multiple.add_multiple(&self.long, quotient);
        integer.subtract(multiple.words());
        // Less than three times the modulus is left.
        let [a, b, c, d, _] = self.subtract_once(self.subtract_once(integer.0));
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
        let keep = mask_if(highest >> 63 == 1);
        let mut result = [0; 5];
        for ((result, from), difference) in result.iter_mut().zip(from).zip(difference) {
            *result = difference ^ (difference ^ from) & keep;
        }
        result
    }
}

/// All ones if `choice`, else zero. The compiler cannot tell that these are the only values: where it could, it made a jump of what they choose, so that
/// the time of a correction said whether it is below the factor that it hides (`docs/adr/0068-secret-multiples-on-p256-and-secp256k1.md`).
fn mask_if(choice: bool) -> u64 {
    black_box(u64::from(choice)).wrapping_neg()
}

/// x - y modulo 2^256, and whether it is below zero.
#[inline]
fn borrow(x: &[u64; 4], y: &[u64; 4]) -> ([u64; 4], bool) {
    let (mut difference, mut borrow) = (*x, false);
    for (word, less) in difference.iter_mut().zip(y) {
        (*word, borrow) = word.borrowing_sub(*less, borrow);
    }
    (difference, borrow)
}

/// Adds y modulo 2^256; whether there is a carry.
#[inline]
fn carry(x: &mut [u64; 4], y: &[u64; 4]) -> bool {
    let mut carry = false;
    for (word, more) in x.iter_mut().zip(y) {
        (*word, carry) = word.carrying_add(*more, carry);
    }
    carry
}

/// The whole part of 2^272 / long, bit by bit; public.
fn reciprocal(long: &[u64; 4]) -> u64 {
    let mut quotient = 0;
    let mut rest = Wide([1, 0, 0, 0, 0]);
    for _ in 0..272 {
        quotient <<= 1;
        rest.double(1);
        let mut less = rest;
        less.subtract(long);
        if less.0.last().is_some_and(|word| word >> 63 == 0) {
            rest = less;
            quotient |= 1;
        }
    }
    quotient
}

#[cfg(test)]
mod tests {
    use theta_groups::bls12_381::G1;
    use theta_groups::{Group, P256, Ristretto255, Secp256k1};

    use super::*;

    fn encoded(modulus: &Modulus, integer: &[u64; 4]) -> [u8; 32] {
        let mut encoding = [0; 32];
        modulus.encode(integer, &mut encoding);
        encoding
    }

    /// Numbers that look random.
    fn mixed(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        *state ^ *state >> 29
    }

    fn agrees<G: Group>() {
        let modulus = Modulus::of::<G::Scalar>();
        let most = |bits: u32| {
            let mut integer = Wide([0_u64; 5]);
            for (index, word) in (0..).zip(&mut integer.0) {
                let left = bits.saturating_sub(64 * index).min(64);
                *word = if left == 64 { u64::MAX } else { (1 << left) - 1 };
            }
            integer
        };
        let mut integers: Vec<Wide<5>> = (0..=MOST_BITS).map(most).collect();
        // Multiples of q, and what is beside them.
        for factor in
            (0..12).flat_map(|bits| [1 << bits, (1 << bits) - 1, (1 << bits) + 1]).filter(|factor| *factor > 0)
        {
            let mut multiple = Wide([0; 5]);
            multiple.add_multiple(modulus.order(), factor);
            let (mut above, mut below) = (multiple, multiple);
            above.add(&[1]);
            below.subtract(&[1]);
            integers.extend([multiple, above, below]);
        }
        let mut state = 1_u64;
        for _ in 0..2000 {
            let mut integer = most(MOST_BITS);
            integer.0.iter_mut().for_each(|word| *word &= mixed(&mut state));
            integers.push(integer);
        }
        for integer in integers {
            let expected = integer.reduce::<G::Scalar>().encode();
            assert_eq!(
                encoded(&modulus, &modulus.remainder(&integer)),
                expected.as_ref(),
                "{} {:x?}",
                G::NAME,
                integer.0
            );
        }
    }

    #[test]
    fn remainders_are_those_of_the_scalars() {
        agrees::<P256>();
        agrees::<Secp256k1>();
        agrees::<Ristretto255>();
        agrees::<G1>();
    }

    fn differences<G: Group>() {
        let modulus = Modulus::of::<G::Scalar>();
        let (one, last) = (G::Scalar::ONE, -G::Scalar::ONE);
        let scalars = [G::Scalar::ZERO, one, last, last - one, G::Scalar::from_u64(1 << 63), (one + one).invert()];
        for x in scalars {
            for y in scalars {
                for z in scalars {
                    let [a, b, c] = [x, y, z].map(|scalar| words::of_scalar(&scalar));
                    let found = encoded(&modulus, &modulus.difference_and(&a, &b, &c));
                    assert_eq!(found, (x - y + z).encode().as_ref(), "{}", G::NAME);
                }
            }
        }
    }

    #[test]
    fn differences_are_those_of_the_scalars() {
        differences::<P256>();
        differences::<Secp256k1>();
        differences::<Ristretto255>();
        differences::<G1>();
    }

    /// How many of 4,000 candidates are scalars: those as long as q that are below it, and no others.
    fn accepted<G: Group>() -> usize {
        let modulus = Modulus::of::<G::Scalar>();
        let [a, b, c, d] = words::of_scalar(&-G::Scalar::ONE);
        let last = [words::join(a, b), words::join(c, d)];
        assert_eq!(modulus.accept(last), Some([a, b, c, d]));
        // The lowest word of every q is below its greatest number.
        assert_eq!(modulus.accept([words::join(a + 1, b), words::join(c, d)]), None, "q");
        assert_eq!(modulus.accept([u128::MAX; 2]), None);
        assert_eq!(modulus.accept([7, 1 << 127 >> modulus.shift >> 1]), Some([7, 0, 0, 1 << 62 >> modulus.shift]));
        let mut state = 5_u64;
        let mut block = || words::join(mixed(&mut state), mixed(&mut state));
        (0..4000).filter(|_| modulus.accept([block(), block()]).is_some()).count()
    }

    #[test]
    fn candidates_are_accepted_as_often_as_they_are_below_q() {
        assert_eq!(accepted::<P256>(), 4000);
        assert_eq!(accepted::<Secp256k1>(), 4000);
        assert!((1800..2200).contains(&accepted::<Ristretto255>()));
        // 0.9057 of all.
        assert!((3523..3723).contains(&accepted::<G1>()));
    }
}
