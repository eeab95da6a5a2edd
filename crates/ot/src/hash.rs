//! The hash that breaks correlations: TMMO (Guo, Katz, Wang, Yu, *Efficient and secure multiparty computation from fixed-key
//! block ciphers*, S&P 2020).

use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use zeroize::Zeroizing;

/// H(x, i) = p(p(x) + i) + p(x), where + is the exclusive or and p is AES-128 under a public key that the session's transcript
/// gives. Sessions have different keys, so what an attacker computes about one tells nothing about another.
pub(crate) struct Breaker(Aes128Enc);

/// How many transfers are hashed at once: enough to keep the cipher's pipeline full.
const AT_ONCE: usize = 64;

impl Breaker {
    /// The key is the first half of `tag`, a hash of the session and its set-up.
    pub(crate) fn new(tag: &[u8; 32]) -> Self {
        let (key, _) = tag.split_at(16);
        let key: [u8; 16] = key.try_into().unwrap_or_default();
        Self(Aes128Enc::new(&key.into()))
    }

    /// W pads for each input. The tweak of pad w of transfer i is 256 i + w; `first` is the number of the first transfer.
    pub(crate) fn pads<const W: usize>(&self, inputs: &[u128], first: u64, mut take: impl FnMut(usize, [u128; W])) {
        const { assert!(W <= 256, "a tweak has eight bits for the pad") };
        let mut permuted = Zeroizing::new([[0_u8; 16]; AT_ONCE]);
        let mut pads = vec![aes::Block::default(); AT_ONCE * W];
        for (chunk, start) in inputs.chunks(AT_ONCE).zip((0_usize..).step_by(AT_ONCE)) {
            let mut inner = [aes::Block::default(); AT_ONCE];
            inner.iter_mut().zip(chunk).for_each(|(block, input)| *block = input.to_le_bytes().into());
            self.0.encrypt_blocks(&mut inner);
            permuted.iter_mut().zip(inner).for_each(|(to, from)| *to = from.into());
            let numbered = permuted.iter().zip(u128::from(first) + start as u128..);
            for (pads, (permuted, number)) in pads.chunks_exact_mut(W).zip(numbered) {
                let permuted = u128::from_le_bytes(*permuted);
                for (pad, tweak) in pads.iter_mut().zip(number << 8..) {
                    *pad = (permuted ^ tweak).to_le_bytes().into();
                }
            }
            self.0.encrypt_blocks(&mut pads);
            for ((index, permuted), pads) in (start..).zip(permuted.iter()).zip(pads.chunks_exact(W)).take(chunk.len())
            {
                let permuted = u128::from_le_bytes(*permuted);
                let mut out = [0; W];
                out.iter_mut().zip(pads).for_each(|(out, pad)| *out = crate::prg::number(pad) ^ permuted);
                take(index, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        let mut seen = 0;
        Breaker::new(&tag).pads::<3>(&inputs, 1000, |index, pads| {
            for (w, pad) in pads.into_iter().enumerate() {
                let tweak = ((1000 + index as u128) << 8) + w as u128;
                assert_eq!(pad, plain(key, inputs[index], tweak));
            }
            assert_eq!(index, seen);
            seen += 1;
        });
        assert_eq!(seen, 37);
    }
}
