//! The bits with which a receiver chooses.

use rand_core::CryptoRng;
use subtle::Choice;
use theta_groups::{Scalar, Secret};

use crate::words;

/// Secret bits, in blocks of 128: bit i is bit i mod 128 of block i / 128. Bits after the last are zero.
#[derive(Debug)]
pub struct Choices {
    blocks: Secret<Vec<u128>>,
    len: usize,
}

impl Choices {
    /// `len` random bits.
    pub fn random(len: usize, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut blocks = Secret::new(vec![0; len.div_ceil(128)]);
        for block in blocks.expose_mut() {
            *block = words::random(rng);
        }
        if let Some(last) = blocks.expose_mut().last_mut()
            && !len.is_multiple_of(128)
        {
            *last &= (1 << (len % 128)) - 1;
        }
        Self { blocks, len }
    }

    /// The bits of each byte, the lowest first.
    #[must_use]
    pub fn from_le_bytes(bytes: &[u8]) -> Self {
        let block = |chunk: &[u8]| chunk.iter().rev().fold(0, |block: u128, byte| block << 8 | u128::from(*byte));
        Self { blocks: Secret::new(bytes.chunks(16).map(block).collect()), len: 8 * bytes.len() }
    }

    /// The 256 bits of each scalar, the lowest first: the choices with which a scalar enters a product.
    #[must_use]
    pub fn of_scalars<S: Scalar>(scalars: &[S]) -> Self {
        let mut blocks = Secret::new(Vec::with_capacity(2 * scalars.len()));
        for scalar in scalars {
            let [a, b, c, d] = words::of_scalar(scalar);
            blocks.expose_mut().extend([words::join(a, b), words::join(c, d)]);
        }
        Self { blocks, len: 256 * scalars.len() }
    }

    /// How many bits there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bits, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = Choice> {
        let bits = |block: &u128| {
            let block = *block;
            (0..128).map(move |bit| words::bit(block, bit))
        };
        self.blocks.expose().iter().flat_map(bits).take(self.len)
    }

    /// The bit at a place; zero after the last.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> Choice {
        let block = self.blocks.expose().get(index / 128).copied().unwrap_or_default();
        words::bit(block, u32::try_from(index % 128).unwrap_or(0))
    }

    /// All blocks.
    pub(crate) fn blocks(&self) -> &[u128] {
        self.blocks.expose()
    }
}

impl Choices {
    /// Takes out the first choices, a multiple of 128 of them and no more than there are.
    pub(crate) fn take(&mut self, choices: usize) -> Self {
        let (these, rest) = self.blocks.expose().split_at_checked(choices / 128).unwrap_or_default();
        let (these, rest) = (Secret::new(these.to_vec()), Secret::new(rest.to_vec()));
        self.blocks = rest;
        self.len = self.len.saturating_sub(choices);
        Self { blocks: these, len: choices }
    }
}
