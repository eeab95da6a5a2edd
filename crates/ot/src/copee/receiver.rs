//! P_B, who has the fixed factor.

use subtle::ConstantTimeEq;
use theta_groups::{Scalar, Secret};
use zeroize::Zeroizing;

use super::{BITS, Opening, Sum, Sums, expect_count};
use crate::base::ReceivedSeeds;
use crate::error::expect_len;
use crate::forest::{Shape, Tree, puncture};
use crate::reduce::Modulus;
use crate::wide::Wide;
use crate::{Choices, Error, Misbehaviour, Misuse, Session};

/// P_B after the set-up.
#[derive(Debug)]
pub struct Receiver {
    shape: Shape,
    /// The bits of Delta.
    bits: Choices,
    leaves: Secret<Vec<u128>>,
    batch: u64,
}

impl Receiver {
    /// Sets up for the fixed factor `delta`, with whose bits ([`Choices::of_scalars`]) the 256 random OTs were made.
    ///
    /// # Errors
    /// [`Misuse::FieldSize`], [`Misuse::Transfers`] and [`Misuse::Choices`]; [`Misbehaviour::Length`] and [`Misbehaviour::Trees`].
    pub fn new<S: Scalar>(
        session: &Session,
        k: u8,
        delta: &Secret<S>,
        received: ReceivedSeeds,
        opening: &Opening,
    ) -> Result<Self, Error> {
        let shape = Shape::new(BITS, k)?;
        if received.choices.len() != BITS {
            return Err(Misuse::Transfers { got: received.choices.len(), needed: BITS }.into());
        }
        let bits = Choices::of_scalars(core::slice::from_ref(delta.expose()));
        if !bool::from(bits.blocks().ct_eq(received.choices.blocks())) {
            return Err(Misuse::Choices.into());
        }
        let leaves = puncture(session, "copee", shape, &received, &opening.0)?;
        Ok(Self { shape, bits: received.choices, leaves, batch: 0 })
    }

    /// P_B's summands q, of a number of products that the parties have agreed on; `corrections` are the bytes of [`Corrections`](super::Corrections).
    ///
    /// # Errors
    /// [`Misuse::Count`]; [`Misbehaviour::Length`] and [`Misbehaviour::Scalar`].
    pub fn extend<S: Scalar>(
        self,
        products: usize,
        corrections: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<(Self, Secret<Vec<S>>), Error> {
        expect_count(products)?;
        let corrections = corrections.as_ref();
        expect_len(corrections, 32 * self.shape.trees().len() * products)?;
        let modulus = Modulus::of::<S>();
        let mut corrections = corrections.as_chunks().0.iter().enumerate();
        // P_B's summand of a digit is the sum over leaves of (digit - number) pad, plus digit times correction.
        let mut positive = Zeroizing::new(vec![Sum::ZERO; products]);
        let mut negative = Zeroizing::new(vec![Sum::ZERO; products]);
        for (tree, leaves) in self.shape.split(self.leaves.expose()).rev() {
            let digit = self.digit(tree);
            // The first leaf is the missing one.
            let known = leaves.iter().copied().zip(0..).skip(1).map(|(seed, y)| (seed, y ^ digit));
            let mut sums = Sums::new(&modulus, known, self.batch, products);
            for (plain, (index, correction)) in sums.plain.iter_mut().zip(corrections.by_ref()) {
                let correction = modulus.decode(correction).ok_or(Misbehaviour::Scalar { index })?;
                plain.add(&correction);
            }
            for (positive, plain) in positive.iter_mut().zip(&sums.plain) {
                positive.double(tree.depth);
                positive.add_multiple(plain.words(), digit);
            }
            for (negative, numbered) in negative.iter_mut().zip(&sums.numbered) {
                negative.double(tree.depth);
                negative.add(numbered.words());
            }
        }
        let summand = |(positive, negative): (&Sum, &Sum)| Wide::reduce::<S>(positive) - Wide::reduce::<S>(negative);
        let summands = Secret::new(positive.iter().zip(negative.iter()).map(summand).collect());
        Ok((Self { batch: self.batch + 1, ..self }, summands))
    }

    /// The digit of a tree.
    fn digit(&self, tree: Tree) -> u64 {
        let bits = self.bits.iter().skip(tree.first_bit).take(tree.depth as usize);
        bits.zip(0..).fold(0, |digit, (bit, place)| digit | u64::from(bit.unwrap_u8()) << place)
    }
}
