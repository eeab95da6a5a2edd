//! P_A, who has the x.

use theta_groups::{Scalar, Secret};
use zeroize::Zeroizing;

use super::{BITS, Corrections, DigitSum, Opening, Sum, Sums, expect_count};
use crate::base::SentSeeds;
use crate::forest::{Shape, grow};
use crate::reduce::Modulus;
use crate::wide::Wide;
use crate::{Misuse, Session, words};

/// P_A after the set-up.
#[derive(Debug)]
pub struct Sender {
    shape: Shape,
    leaves: Secret<Vec<u128>>,
    batch: u64,
}

impl Sender {
    /// Sets up from 256 random OTs, which P_A sent, with digits of k bits.
    ///
    /// # Errors
    /// [`Misuse::FieldSize`] and [`Misuse::Transfers`].
    pub fn new(session: &Session, k: u8, seeds: &SentSeeds) -> Result<(Self, Opening), Misuse> {
        let shape = Shape::new(BITS, k)?;
        if seeds.len() != BITS {
            return Err(Misuse::Transfers { got: seeds.len(), needed: BITS });
        }
        let (leaves, opening) = grow(session, "copee", shape, seeds);
        Ok((Self { shape, leaves, batch: 0 }, Opening(opening)))
    }

    /// P_A's summands t of the products of these x with Delta.
    ///
    /// # Errors
    /// [`Misuse::Count`].
    pub fn extend<S: Scalar>(self, factors: &[S]) -> Result<(Self, Corrections, Secret<Vec<S>>), Misuse> {
        let factors = Zeroizing::new(factors.iter().map(words::of_scalar).collect::<Vec<_>>());
        self.extend_with(factors.len(), |_| factors.as_slice())
    }

    /// `factors_of` each tree is one and the same unless a test cheats.
    pub(super) fn extend_with<'a, S: Scalar>(
        self,
        products: usize,
        factors_of: impl Fn(usize) -> &'a [[u64; 4]],
    ) -> Result<(Self, Corrections, Secret<Vec<S>>), Misuse> {
        expect_count(products)?;
        let modulus = Modulus::of::<S>();
        let multiple = multiple_above_sums(*modulus.order());
        let mut bytes = vec![0; 32 * self.shape.trees().len() * products];
        let mut corrections = bytes.as_chunks_mut().0.iter_mut();
        let mut sums = Zeroizing::new(vec![Sum::ZERO; products]);
        for (tree, leaves) in self.shape.split(self.leaves.expose()).rev() {
            let digit = Sums::new(&modulus, leaves.iter().copied().zip(0..), self.batch, products);
            let plain = digit.plain.iter().zip(factors_of(tree.index));
            for ((plain, factor), bytes) in plain.zip(corrections.by_ref()) {
                let mut correction = multiple;
                correction.add(factor);
                correction.subtract(plain.words());
                modulus.encode(&modulus.remainder(&correction), bytes);
            }
            for (sum, numbered) in sums.iter_mut().zip(&digit.numbered) {
                sum.double(tree.depth);
                sum.add(numbered.words());
            }
        }
        let summands = Secret::new(sums.iter().map(Wide::reduce).collect());
        Ok((Self { batch: self.batch + 1, ..self }, Corrections(bytes), summands))
    }
}

/// A multiple of q above every sum of up to 2^8 pads, and below 2^265.
fn multiple_above_sums([a, b, c, d]: [u64; 4]) -> DigitSum {
    let mut multiple = Wide([a, b, c, d, 0]);
    multiple.double(8);
    multiple
}
