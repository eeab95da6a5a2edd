//! Products with a fixed factor: correlated oblivious product evaluation with errors (MASCOT, Keller, Orsini, Scholl, CCS 2016,
//! figure 3), by digits.
//!
//! Set up once: P_B, who has the fixed factor Delta (its MAC key), chooses with the 256 bits of Delta in OTs of P_A. For each x of P_A
//! the parties then have t and q with t + q = x Delta modulo q, for one message of P_A.
//!
//! The paper has a generator for each bit of Delta and sends a scalar for each. Here k bits make a digit, whose OTs open all but one
//! leaf of a tree, as in [`crate::extension`], and P_A sends a scalar for each digit. With k = 1 it is the paper's protocol.
//!
//! As in the paper, P_A may use different x for different digits and is not caught here: the result is then x Delta plus an error that
//! depends on Delta, which the MAC check on a random combination sees unless P_A has guessed those digits.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::Receiver;
pub use sender::Sender;

use zeroize::Zeroizing;

use crate::Misuse;
use crate::prg::{Generator, number};
use crate::reduce::Modulus;
use crate::wide::Wide;

/// How many OTs a set-up takes: the bits of Delta.
pub const BITS: usize = 256;
/// The most products in one batch.
pub const MOST: usize = 1 << 16;

/// P_A's message of the set-up: the opening of its trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening(pub Vec<u8>);

/// P_A's message of a batch: for each digit, the highest first, a scalar for each product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrections(pub Vec<u8>);

impl AsRef<[u8]> for Corrections {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Corrections {
    /// Its length in bytes.
    #[must_use]
    pub const fn length(k: u8, products: usize) -> usize {
        32 * BITS.div_ceil(if k == 0 { 1 } else { k as usize }) * products
    }
}

const fn expect_count(products: usize) -> Result<(), Misuse> {
    if products == 0 || products > MOST { Err(Misuse::Count { got: products, most: MOST }) } else { Ok(()) }
}

/// A sum of up to 2^8 pads, each times up to 2^8.
type DigitSum = Wide<5>;
/// Those over all digits, each times its power of two: 272 + 256 bits at most.
type Sum = Wide<9>;

/// How many products are computed at once.
const CHUNK: usize = 32;

/// For each product the sums over a tree's leaves of their pads, and of their pads times the leaf's number.
struct Sums {
    plain: Vec<DigitSum>,
    numbered: Vec<DigitSum>,
}

impl Drop for Sums {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.plain);
        zeroize::Zeroize::zeroize(&mut self.numbered);
    }
}

impl Sums {
    /// Of `products` products, from leaves with their numbers.
    fn new(modulus: &Modulus, leaves: impl Iterator<Item = (u128, u64)>, batch: u64, products: usize) -> Self {
        let mut plain = vec![DigitSum::ZERO; products];
        let mut numbered = vec![DigitSum::ZERO; products];
        let mut pads = Zeroizing::new([[0; 4]; CHUNK]);
        for (seed, leaf) in leaves {
            let generator = Generator::new(seed);
            let sums = plain.chunks_mut(CHUNK).zip(numbered.chunks_mut(CHUNK));
            for ((plain, numbered), first) in sums.zip((0_u64..).step_by(CHUNK)) {
                scalars(&generator, modulus, batch, first, &mut pads);
                for ((plain, numbered), pad) in plain.iter_mut().zip(numbered).zip(pads.iter()) {
                    plain.add(pad);
                    numbered.add_multiple(pad, leaf);
                }
            }
        }
        Self { plain, numbered }
    }
}

/// The pads of a leaf for the products from `first` on: scalars below q, each the first of its candidates. Candidate c of product j is made of the blocks
/// (c << 32) + 2 j and the one after it.
fn scalars(generator: &Generator, modulus: &Modulus, batch: u64, first: u64, pads: &mut [[u64; 4]; CHUNK]) {
    let mut blocks = [aes::Block::default(); 2 * CHUNK];
    generator.fill(batch, 2 * first, &mut blocks);
    for ((pad, blocks), product) in pads.iter_mut().zip(blocks.as_chunks::<2>().0).zip(first..) {
        let later = |candidate: u64| {
            let mut blocks = [aes::Block::default(); 2];
            generator.fill(batch, (candidate << 32) + 2 * product, &mut blocks);
            blocks.map(|block| number(&block))
        };
        *pad = modulus.accept(blocks.map(|block| number(&block))).unwrap_or_else(|| modulus.accept_later(later));
    }
}
