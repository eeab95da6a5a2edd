//! Pseudorandom blocks: AES-128 in counter mode under a seed.

use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

/// A generator under a secret seed. Its blocks are told apart by a batch, which no two calls of a session share, and a counter.
pub(crate) struct Generator(Aes128Enc);

impl Generator {
    pub(crate) fn new(seed: u128) -> Self {
        Self(Aes128Enc::new(&seed.to_le_bytes().into()))
    }

    /// Writes the blocks `first`, `first + 1`, and so on, of a batch.
    pub(crate) fn fill(&self, batch: u64, first: u64, blocks: &mut [aes::Block]) {
        let high = u128::from(batch) << 64;
        for (block, counter) in blocks.iter_mut().zip(u128::from(first)..) {
            *block = (high | counter).to_le_bytes().into();
        }
        self.0.encrypt_blocks(blocks);
    }
}

/// A block of the cipher as an integer.
#[inline]
pub(crate) fn number(block: &aes::Block) -> u128 {
    u128::from_le_bytes((*block).into())
}
