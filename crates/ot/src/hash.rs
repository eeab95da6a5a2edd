//! The hash that breaks correlations: TMMO (Guo, Katz, Wang, Yu, *Efficient and secure multiparty computation from fixed-key
//! block ciphers*, S&P 2020).

use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use zeroize::Zeroizing;

use crate::reduce::Modulus;

/// H(x, i) = p(p(x) + i) + p(x), where + is the exclusive or and p is AES-128 under a public key that the session's transcript
/// gives. Sessions have different keys, so what an attacker computes about one tells nothing about another.
pub(crate) struct Breaker(Aes128Enc);

/// How many transfers are hashed at once: enough to keep the cipher's pipeline full.
pub(crate) const AT_ONCE: usize = 64;

impl Breaker {
    /// The key is the first half of `tag`, a hash of the session and its set-up.
    pub(crate) fn new(tag: &[u8; 32]) -> Self {
        let (key, _) = tag.split_at(16);
        let key: [u8; 16] = key.try_into().unwrap_or_default();
        Self(Aes128Enc::new(&key.into()))
    }

    /// W pads for each of at most [`AT_ONCE`] inputs. The tweak of pad w of transfer i is 256 i + w; `first` is the number of the first transfer.
    pub(crate) fn pads<const W: usize>(&self, inputs: &[u128], first: u64, out: &mut [[u128; W]; AT_ONCE]) {
        const { assert!(W <= 256, "a tweak has eight bits for the pad") };
        let mut permuted = Zeroizing::new([[0_u8; 16]; AT_ONCE]);
        let mut inner = [aes::Block::default(); AT_ONCE];
        inner.iter_mut().zip(inputs).for_each(|(block, input)| *block = input.to_le_bytes().into());
        self.0.encrypt_blocks(&mut inner);
        permuted.iter_mut().zip(inner).for_each(|(to, from)| *to = from.into());
        let mut pads = [[aes::Block::default(); W]; AT_ONCE];
        for ((pads, permuted), number) in pads.iter_mut().zip(permuted.iter()).zip(u128::from(first)..) {
            let permuted = u128::from_le_bytes(*permuted);
            for (pad, tweak) in pads.iter_mut().zip(number << 8..) {
                *pad = (permuted ^ tweak).to_le_bytes().into();
            }
        }
        self.0.encrypt_blocks(pads.as_flattened_mut());
        for ((out, permuted), pads) in out.iter_mut().zip(permuted.iter()).zip(&pads) {
            let permuted = u128::from_le_bytes(*permuted);
            out.iter_mut().zip(pads).for_each(|(out, pad)| *out = crate::prg::number(pad) ^ permuted);
        }
    }
}

impl Breaker {
    /// A scalar for each of at most [`AT_ONCE`] inputs: the first candidate that is below q. A candidate is two pads: 0 and 1, then 2 and 3, and so on.
    pub(crate) fn scalars(&self, modulus: &Modulus, inputs: &[u128], first: u64, out: &mut [[u64; 4]; AT_ONCE]) {
        let mut candidates = Zeroizing::new([[0; 2]; AT_ONCE]);
        self.pads(inputs, first, &mut candidates);
        for (((out, pads), input), number) in out.iter_mut().zip(candidates.iter()).zip(inputs).zip(first..) {
            let tweak = |candidate: u64| (u128::from(number) << 8) + 2 * u128::from(candidate);
            let later = |candidate| [0, 1].map(|half| self.pad(*input, tweak(candidate) + half));
            *out = modulus.accept(*pads).unwrap_or_else(|| modulus.accept_later(later));
        }
    }

    /// One pad.
    fn pad(&self, input: u128, tweak: u128) -> u128 {
        let permute = |block: u128| {
            let mut block = aes::Block::from(block.to_le_bytes());
            self.0.encrypt_block(&mut block);
            crate::prg::number(&block)
        };
        let permuted = permute(input);
        permute(permuted ^ tweak) ^ permuted
    }
}

#[cfg(test)]
mod tests {
    use theta_groups::RistrettoScalar;

    use super::*;

    /// The definition, one block at a time.
    fn plain(key: [u8; 16], x: u128, tweak: u128) -> u128 {
        let cipher = Aes128Enc::new(&key.into());
        let permute = |x: u128| {
            let mut block = aes::Block::from(x.to_le_bytes());
            cipher.encrypt_block(&mut block);
            u128::from_le_bytes(block.into())
        };
        permute(permute(x) ^ tweak) ^ permute(x)
    }

    #[test]
    fn the_permutation_is_that_of_fips_197() {
        // FIPS 197, appendix C.1.
        let key = core::array::from_fn(|i| u8::try_from(i).unwrap());
        let input: [u8; 16] = core::array::from_fn(|i| 17 * u8::try_from(i).unwrap());
        let mut block = aes::Block::from(input);
        Aes128Enc::new(&key.into()).encrypt_block(&mut block);
        assert_eq!(u128::from_be_bytes(block.into()), 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a);
    }

    #[test]
    fn many_at_once_are_as_one_by_one() {
        let tag = core::array::from_fn(|i| u8::try_from(i * 7).unwrap());
        let key = tag.split_at(16).0.try_into().unwrap();
        let inputs: Vec<u128> = (0..37).map(|i| 0x1234_5678_u128.pow(4).rotate_left(i)).collect();
        let mut pads = [[0; 3]; AT_ONCE];
        Breaker::new(&tag).pads(&inputs, 1000, &mut pads);
        for (index, (input, pads)) in inputs.iter().zip(pads).enumerate() {
            for (w, pad) in pads.into_iter().enumerate() {
                let tweak = ((1000 + index as u128) << 8) + w as u128;
                assert_eq!(pad, plain(key, *input, tweak));
            }
        }
    }

    #[test]
    fn scalars_are_the_first_candidates_below_the_order() {
        let key = [9; 16];
        let tag = [9; 32];
        let modulus = Modulus::of::<RistrettoScalar>();
        let inputs: Vec<u128> = (0..64).map(|i| 0x4321_8765_u128.pow(4).rotate_left(i)).collect();
        let mut scalars = [[0; 4]; AT_ONCE];
        Breaker::new(&tag).scalars(&modulus, &inputs, 77, &mut scalars);
        let mut most = 0;
        for (index, (input, scalar)) in inputs.iter().zip(scalars).enumerate() {
            let pad = |w: usize| plain(key, *input, ((77 + index as u128) << 8) + w as u128);
            let tries = (0..).find(|i| modulus.accept([pad(2 * i), pad(2 * i + 1)]).is_some()).unwrap();
            assert_eq!(modulus.accept([pad(2 * tries), pad(2 * tries + 1)]), Some(scalar));
            most = most.max(tries);
        }
        assert!((3..20).contains(&most), "half of the candidates are too large");
    }
}
