//! Pseudorandom blocks: AES-128 in counter mode under a seed.

use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use theta_groups::{Secret, Transcript};

use crate::words;

/// A generator under a secret seed. Its blocks are told apart by a batch, which no two calls of a session share, and a counter.
pub(crate) struct Generator(Aes128Enc);

impl Generator {
    pub(crate) fn new(seed: u128) -> Self {
        Self(Aes128Enc::new(&seed.to_le_bytes().into()))
    }

    /// One block under it.
    fn block(&self, block: u128) -> u128 {
        let mut block = aes::Block::from(block.to_le_bytes());
        self.0.encrypt_block(&mut block);
        number(&block)
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

/// What runs are told apart by in the seeds that [`of_run`] derives for them: a hash of 256 bits, since whoever adds to a run's name last can look for
/// two that are alike.
pub(crate) fn run_blocks(tag: &[u8; 32], run: &[u8; 32]) -> [u128; 2] {
    let hash = Transcript::new("theta/ot/run/seeds/v1").with("set-up", tag).with("run", run).finish32();
    let mut blocks = words::blocks(&hash);
    [(); 2].map(|()| blocks.next().unwrap_or_default())
}

/// The seeds that a run has in the place of those of its set-up: AES-128 of its second block under what AES-128 under the seed makes of its first. A
/// seed that is missing, be it all zeros, stays one: what is made in its place is never used.
pub(crate) fn of_run(seeds: &Secret<Vec<u128>>, [first, second]: [u128; 2]) -> Secret<Vec<u128>> {
    let derive = |seed: &u128| Generator::new(Generator::new(*seed).block(first)).block(second);
    Secret::new(seeds.expose().iter().map(derive).collect())
}
