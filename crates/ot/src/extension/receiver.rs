//! The receiver of the extension.

use rand_core::CryptoRng;
use theta_groups::{Group, Secret};

use super::check::RowHash;
use super::rows::{Rows, expand};
use super::transfers::ReceivedTransfers;
use super::transpose::columns;
use super::{
    BASE, Extension, Grown, MOST_OF_A_RUN, MOST_OF_A_SETUP, advance, blocks, expect_count, length, tag, tag_of_run,
};
use crate::base::{self, Ask};
use crate::forest::{Shape, grow};
use crate::prg::{of_run, run_blocks};
use crate::{Choices, Error, Misuse, Session, words};

/// A receiver that is set up.
#[derive(Debug)]
pub struct Receiver {
    shape: Shape,
    leaves: Secret<Vec<u128>>,
    tag: [u8; 32],
    batch: u64,
    made: u64,
    /// The most transfers.
    most: u64,
}

impl Receiver {
    /// Answers a sender that begins a set-up.
    ///
    /// # Errors
    /// [`Misuse::FieldSize`]; those of [`base::send`].
    pub fn new<G: Group>(
        session: Session,
        k: u8,
        ask: &Ask,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Self, Grown), Error> {
        let shape = Shape::new(BASE, k)?;
        let (seeds, answer) = base::send::<G>(session.reversed(), BASE, ask, rng)?;
        let (leaves, opening) = grow(&session, "extension", shape, &seeds);
        let mut bytes = answer.0;
        bytes.extend_from_slice(&opening);
        let grown = Grown(bytes);
        let tag = tag::<G>(&session, shape, ask, &grown);
        Ok((Self { shape, leaves, tag, batch: 0, made: 0, most: MOST_OF_A_SETUP }, grown))
    }

    /// One for a run: with seeds of its own, which follow from this one's. Both parties name the same `run`, which must be new. Its batches have at
    /// most [`MOST_OF_A_RUN`] transfers together.
    #[must_use]
    pub fn for_run(&self, run: &[u8; 32]) -> Self {
        let leaves = of_run(&self.leaves, run_blocks(&self.tag, run));
        Self { shape: self.shape, leaves, tag: tag_of_run(&self.tag, run), batch: 0, made: 0, most: MOST_OF_A_RUN }
    }

    /// The next batch of transfers, one for each choice.
    ///
    /// # Errors
    /// [`Misuse::Count`] and [`Misuse::UsedUp`].
    pub fn extend(
        self,
        choices: Choices,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Self, Extension, ReceivedTransfers), Misuse> {
        expect_count(choices.len())?;
        let next = advance(self.made, choices.len(), self.most)?;
        let mut x = Secret::new(choices.blocks().to_vec());
        x.expose_mut().push(words::random(rng));
        let rows = self.expand(choices.len());
        let (extension, _) = self.correct(&rows, |_| x.expose(), x.expose());
        // A vector is wiped over its whole capacity when it is dropped.
        let mut columns = Secret::new(columns(rows.rows.expose(), x.expose().len()));
        columns.expose_mut().truncate(choices.len());
        let transfers = ReceivedTransfers { columns, choices, first: self.made, tag: self.tag };
        Ok((Self { batch: self.batch + 1, made: next, ..self }, extension, transfers))
    }

    pub(super) fn expand(&self, transfers: usize) -> Rows {
        expand(self.shape, self.leaves.expose(), false, self.batch, blocks(transfers))
    }

    /// The message: corrections of the trees' sums to `x_of` each tree, which is one and the same `x` unless a test cheats; then R x,
    /// and R t of each row.
    pub(super) fn correct<'a>(
        &self,
        rows: &Rows,
        x_of: impl Fn(usize) -> &'a [u128],
        x: &[u128],
    ) -> (Extension, RowHash) {
        let mut bytes = Vec::with_capacity(length(self.shape, 128 * x.len()));
        for (index, sum) in rows.sums.expose().chunks_exact(x.len()).enumerate() {
            sum.iter().zip(x_of(index)).for_each(|(sum, x)| bytes.extend_from_slice(&(sum ^ x).to_le_bytes()));
        }
        let hash = RowHash::new(&self.tag, self.batch, &bytes);
        words::put(&[hash.of(x)], &mut bytes);
        for row in rows.rows.expose().chunks_exact(x.len()) {
            words::put(&[hash.of(row)], &mut bytes);
        }
        (Extension(bytes), hash)
    }

    #[cfg(test)]
    pub(super) const fn of_leaves(shape: Shape, leaves: Secret<Vec<u128>>, tag: [u8; 32]) -> Self {
        Self { shape, leaves, tag, batch: 0, made: 0, most: MOST_OF_A_SETUP }
    }
}
