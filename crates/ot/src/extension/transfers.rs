//! What a batch gives.

use subtle::Choice;
use theta_groups::Secret;

use crate::base::{ReceivedSeeds, SentSeeds};
use crate::hash::{AT_ONCE, Breaker};
use crate::reduce::Modulus;
use crate::{Choices, Misuse};

/// The sender's part of a batch: q of each transfer, and Delta.
#[derive(Debug)]
pub struct SentTransfers {
    pub(super) columns: Secret<Vec<u128>>,
    pub(super) delta: Secret<u128>,
    /// The number of the first transfer in its set-up.
    pub(super) first: u64,
    pub(super) tag: [u8; 32],
}

/// The receiver's part of a batch: t of each transfer, and its choices. With x a choice, t = q + x Delta.
#[derive(Debug)]
pub struct ReceivedTransfers {
    pub(super) columns: Secret<Vec<u128>>,
    pub(super) choices: Choices,
    pub(super) first: u64,
    pub(super) tag: [u8; 32],
}

/// Divides what a batch gave; only whole blocks of choices can be divided.
fn split_columns(columns: &mut Secret<Vec<u128>>, needed: usize) -> Result<Secret<Vec<u128>>, Misuse> {
    let got = columns.expose().len();
    if needed > got || !needed.is_multiple_of(128) {
        return Err(Misuse::Transfers { got, needed });
    }
    let rest = Secret::new(columns.expose().get(needed..).unwrap_or_default().to_vec());
    let mut these = core::mem::replace(columns, rest);
    // A vector is wiped over its whole capacity when it is dropped.
    these.expose_mut().truncate(needed);
    Ok(these)
}

impl SentTransfers {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.expose().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes out the first transfers, a multiple of 128 of them.
    ///
    /// # Errors
    /// [`Misuse::Transfers`].
    pub fn take(&mut self, transfers: usize) -> Result<Self, Misuse> {
        let columns = split_columns(&mut self.columns, transfers)?;
        let first = self.first;
        self.first += transfers as u64;
        Ok(Self { columns, delta: Secret::new(*self.delta.expose()), first, tag: self.tag })
    }

    /// Random OTs of one block: both pads of each transfer.
    #[must_use]
    pub fn into_seeds(self) -> SentSeeds {
        let mut seeds = Secret::new(Vec::with_capacity(self.len()));
        self.hashed([0], Breaker::pads, |_, [zero], [one]| seeds.expose_mut().push([zero, one]));
        SentSeeds(seeds)
    }

    /// A scalar for each choice of each transfer, below q and in words: of H(q, i) and H(q + Delta, i). Each transfer is used once.
    #[inline]
    pub(crate) fn scalars(self, modulus: &Modulus, take: impl FnMut(usize, [u64; 4], [u64; 4])) {
        self.hashed([0; 4], |breaker, inputs, first, out| breaker.scalars(modulus, inputs, first, out), take);
    }

    /// What `hash` gives for the inputs of both choices of each transfer.
    #[inline]
    fn hashed<T: Copy + zeroize::Zeroize>(
        self,
        zero: T,
        hash: impl Fn(&Breaker, &[u128], u64, &mut [T; AT_ONCE]),
        mut take: impl FnMut(usize, T, T),
    ) {
        let breaker = Breaker::new(&self.tag);
        let (mut zeros, mut ones) =
            (zeroize::Zeroizing::new([zero; AT_ONCE]), zeroize::Zeroizing::new([zero; AT_ONCE]));
        let mut others = zeroize::Zeroizing::new([0; AT_ONCE]);
        for (chunk, start) in self.columns.expose().chunks(AT_ONCE).zip((0_usize..).step_by(AT_ONCE)) {
            let first = self.first + start as u64;
            hash(&breaker, chunk, first, &mut zeros);
            others.iter_mut().zip(chunk).for_each(|(other, column)| *other = column ^ self.delta.expose());
            hash(&breaker, others.get(..chunk.len()).unwrap_or_default(), first, &mut ones);
            let pairs = zeros.iter().zip(ones.iter()).take(chunk.len());
            (start..).zip(pairs).for_each(|(index, (zero, one))| take(index, *zero, *one));
        }
    }

    /// q of each transfer, and Delta: what the papers' correlation is about.
    #[cfg(test)]
    pub(crate) fn expose(&self) -> (&[u128], u128) {
        (self.columns.expose(), *self.delta.expose())
    }
}

impl ReceivedTransfers {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.expose().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The choices.
    #[must_use]
    pub const fn choices(&self) -> &Choices {
        &self.choices
    }

    /// Takes out the first transfers, a multiple of 128 of them.
    ///
    /// # Errors
    /// [`Misuse::Transfers`].
    pub fn take(&mut self, transfers: usize) -> Result<Self, Misuse> {
        let columns = split_columns(&mut self.columns, transfers)?;
        let first = self.first;
        self.first += transfers as u64;
        Ok(Self { columns, choices: self.choices.take(transfers), first, tag: self.tag })
    }

    /// Random OTs of one block: the chosen pad of each transfer.
    #[must_use]
    pub fn into_seeds(self) -> ReceivedSeeds {
        let mut seeds = Secret::new(Vec::with_capacity(self.len()));
        self.hashed([0], Breaker::pads, |_, [seed]| seeds.expose_mut().push(seed));
        ReceivedSeeds { choices: self.choices, seeds }
    }

    /// A scalar of each transfer, below q and in words: of H(t, i); after its choice. Each transfer is used once.
    #[inline]
    pub(crate) fn scalars(self, modulus: &Modulus, mut take: impl FnMut(usize, Choice, [u64; 4])) {
        self.hashed(
            [0; 4],
            |breaker, inputs, first, out| breaker.scalars(modulus, inputs, first, out),
            |index, scalar| take(index, self.choices.at(index), scalar),
        );
    }

    /// What `hash` gives for each transfer's input.
    #[inline]
    fn hashed<T: Copy + zeroize::Zeroize>(
        &self,
        zero: T,
        hash: impl Fn(&Breaker, &[u128], u64, &mut [T; AT_ONCE]),
        mut take: impl FnMut(usize, T),
    ) {
        let breaker = Breaker::new(&self.tag);
        let mut pads = zeroize::Zeroizing::new([zero; AT_ONCE]);
        for (chunk, start) in self.columns.expose().chunks(AT_ONCE).zip((0_usize..).step_by(AT_ONCE)) {
            hash(&breaker, chunk, self.first + start as u64, &mut pads);
            (start..).zip(pads.iter().take(chunk.len())).for_each(|(index, pads)| take(index, *pads));
        }
    }

    /// t of each transfer.
    #[cfg(test)]
    pub(crate) fn expose(&self) -> &[u128] {
        self.columns.expose()
    }
}
