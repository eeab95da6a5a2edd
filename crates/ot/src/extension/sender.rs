//! The sender of the extension.

use rand_core::CryptoRng;
use theta_groups::{Group, Secret};

use super::check::RowHash;
use super::rows::expand;
use super::transfers::SentTransfers;
use super::transpose::columns;
use super::{BASE, Grown, MOST_OF_A_RUN, MOST_OF_A_SETUP, advance, blocks, expect_count, length, tag, tag_of_run};
use crate::base::{self, Answer, Ask};
use crate::error::expect_len;
use crate::forest::{Shape, puncture};
use crate::prg::{of_run, run_blocks};
use crate::{Choices, Error, Misbehaviour, Misuse, Session, words};

/// A sender that waits for the receiver's part of the set-up.
#[derive(Debug)]
pub struct Setup<G: Group> {
    session: Session,
    shape: Shape,
    base: base::Receiver<G>,
    ask: Ask,
}

/// A sender that is set up.
#[derive(Debug)]
pub struct Sender {
    shape: Shape,
    delta: Secret<u128>,
    leaves: Secret<Vec<u128>>,
    tag: [u8; 32],
    batch: u64,
    made: u64,
    /// The most transfers.
    most: u64,
}

impl<G: Group> Setup<G> {
    /// Begins a set-up: draws Delta and asks for the base OTs.
    ///
    /// # Errors
    /// [`Misuse::FieldSize`].
    pub fn new(session: Session, k: u8, rng: &mut (impl CryptoRng + ?Sized)) -> Result<(Self, Ask), Misuse> {
        let shape = Shape::new(BASE, k)?;
        let delta = Choices::random(BASE, rng);
        let (base, ask) = base::Receiver::new(session.reversed(), delta, rng)?;
        Ok((Self { session, shape, base, ask: ask.clone() }, ask))
    }

    /// Ends it.
    ///
    /// # Errors
    /// [`Misbehaviour::Length`], [`Misbehaviour::Element`] and [`Misbehaviour::Trees`].
    pub fn finish(self, grown: &Grown) -> Result<Sender, Error> {
        let Self { session, shape, base, ask } = self;
        expect_len(&grown.0, Answer::length::<G>(BASE) + shape.opening_len())?;
        let (answer, opening) = grown.0.split_at(Answer::length::<G>(BASE));
        let received = base.finish(&Answer(answer.to_vec()))?;
        let leaves = puncture(&session, "extension", shape, &received, opening)?;
        let tag = tag::<G>(&session, shape, &ask, grown);
        let delta = Secret::new(received.choices.blocks().first().copied().unwrap_or_default());
        Ok(Sender { shape, delta, leaves, tag, batch: 0, made: 0, most: MOST_OF_A_SETUP })
    }
}

impl Sender {
    /// One for a run: with seeds of its own, which follow from this one's, and the same Delta. Both parties name the same `run`, which must be new. Its batches have at
    /// most [`MOST_OF_A_RUN`] transfers together.
    #[must_use]
    pub fn for_run(&self, run: &[u8; 32]) -> Self {
        let leaves = of_run(&self.leaves, run_blocks(&self.tag, run));
        let delta = Secret::new(*self.delta.expose());
        Self {
            shape: self.shape,
            delta,
            leaves,
            tag: tag_of_run(&self.tag, run),
            batch: 0,
            made: 0,
            most: MOST_OF_A_RUN,
        }
    }

    /// Takes the next batch, an [`Extension`](super::Extension)'s bytes, of a number of transfers that the parties have agreed on.
    ///
    /// # Errors
    /// [`Misuse::Count`] and [`Misuse::UsedUp`]; [`Misbehaviour::Length`] and [`Misbehaviour::Correlation`].
    pub fn extend(
        self,
        transfers: usize,
        extension: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<(Self, SentTransfers), Error> {
        let extension = extension.as_ref();
        expect_count(transfers)?;
        let next = advance(self.made, transfers, self.most)?;
        expect_len(extension, length(self.shape, transfers))?;
        let blocks = blocks(transfers);
        let (corrections, values) = extension.split_at(16 * self.shape.trees().len() * blocks);
        let mut rows = expand(self.shape, self.leaves.expose(), true, self.batch, blocks).rows;
        self.correct(rows.expose_mut(), corrections, blocks);
        self.check(rows.expose(), corrections, values, blocks)?;
        // A vector is wiped over its whole capacity when it is dropped.
        let mut columns = Secret::new(columns(rows.expose(), blocks));
        columns.expose_mut().truncate(transfers);
        let delta = Secret::new(*self.delta.expose());
        let transfers = SentTransfers { columns, delta, first: self.made, tag: self.tag };
        Ok((Self { batch: self.batch + 1, made: next, ..self }, transfers))
    }

    /// Adds each tree's correction to its rows where the bit of Delta is 1: q = t + x Delta.
    fn correct(&self, rows: &mut [u128], corrections: &[u8], blocks: usize) {
        let mut rows = rows.chunks_exact_mut(blocks).zip(0..);
        for (tree, correction) in self.shape.trees().zip(corrections.chunks_exact(16 * blocks)) {
            for (row, bit) in rows.by_ref().take(tree.depth as usize) {
                let mask = words::mask(words::bit(*self.delta.expose(), bit));
                row.iter_mut().zip(words::blocks(correction)).for_each(|(q, c)| *q ^= c & mask);
            }
        }
    }

    /// R q = R t + (R x) Delta for all rows; which one fails shows nowhere.
    fn check(&self, rows: &[u128], corrections: &[u8], values: &[u8], blocks: usize) -> Result<(), Misbehaviour> {
        let hash = RowHash::new(&self.tag, self.batch, corrections);
        let mut values = words::blocks(values);
        let of_x = values.next().unwrap_or_default();
        let difference = rows.chunks_exact(blocks).zip(values).zip(0..).fold(0, |difference, ((row, of_t), bit)| {
            let mask = words::mask(words::bit(*self.delta.expose(), bit));
            difference | (hash.of(row) ^ of_t ^ of_x & mask)
        });
        if difference == 0 { Ok(()) } else { Err(Misbehaviour::Correlation) }
    }

    #[cfg(test)]
    pub(super) const fn of_leaves(shape: Shape, delta: u128, leaves: Secret<Vec<u128>>, tag: [u8; 32]) -> Self {
        Self { shape, delta: Secret::new(delta), leaves, tag, batch: 0, made: 0, most: MOST_OF_A_SETUP }
    }
}
