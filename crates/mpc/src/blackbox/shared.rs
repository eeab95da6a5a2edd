//! Shared values: `[a]` of the papers, as one party holds it, and `<a>`.

use core::{
    fmt,
    ops::{Add, Range, Sub},
};

use theta_groups::{Scalar as _, Secret};

use super::{BlackBox, Cell, Scalar};
use crate::{Misbehaviour, Party, Stop};

/// Shared values: `[a]` for each a of a list. Linear operations are local; everything else is the black box's.
///
/// The type names the black box, so that values of one with passive and one with active security never mix. A share is
/// not `Clone`, and is wiped when it is dropped.
pub struct Shared<B: BlackBox> {
    cells: Secret<Vec<B::Cell>>,
}

impl<B: BlackBox> Shared<B> {
    /// This party's shares, in order.
    pub(crate) fn from_cells(cells: impl IntoIterator<Item = B::Cell, IntoIter: ExactSizeIterator>) -> Self {
        let cells = cells.into_iter();
        Self::from_at_most(cells.len(), cells)
    }

    /// This party's shares, in order, `most` of them at most.
    pub(crate) fn from_at_most(most: usize, cells: impl Iterator<Item = B::Cell>) -> Self {
        // Sized beforehand: a vector that grows leaves copies of its old contents behind.
        let mut sized = Secret::new(Vec::with_capacity(most));
        sized.expose_mut().extend(cells.take(most));
        Self { cells: sized }
    }

    /// This party's shares, in order.
    pub(crate) const fn cells(&self) -> &Vec<B::Cell> {
        self.cells.expose()
    }

    /// How many values there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.cells().len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.cells().is_empty()
    }

    /// The values at these places: fewer, if the list is shorter.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        Self::from_cells(self.cells().iter().skip(range.start).take(range.len()).copied())
    }

    /// The value at this place: none, if the list is shorter.
    #[must_use]
    pub fn at(&self, place: usize) -> Self {
        self.part(place..place.saturating_add(1))
    }

    /// The values for which `keep` is true, by place.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(usize) -> bool) -> Self {
        let kept = self.cells().iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, cell)| *cell);
        Self::from_at_most(self.len(), kept)
    }

    /// The first values, and the rest from `place` on.
    #[must_use]
    pub fn split(self, place: usize) -> (Self, Self) {
        (self.part(0..place), self.part(place..self.len()))
    }

    /// These values, then others.
    #[must_use]
    pub fn then(&self, others: &Self) -> Self {
        let mut cells = Secret::new(Vec::with_capacity(self.len() + others.len()));
        cells.expose_mut().extend_from_slice(self.cells());
        cells.expose_mut().extend_from_slice(others.cells());
        Self { cells }
    }

    /// The first value, so many times; nothing if there is none.
    #[must_use]
    pub fn repeated(&self, count: usize) -> Self {
        let first = self.cells().first().copied();
        Self::from_at_most(count, (0..count).map_while(|_| first))
    }

    /// The sum of all values.
    #[must_use]
    pub fn sum(&self) -> Self {
        let sum = self.cells().iter().fold(B::Cell::ZERO, |sum, cell| sum.plus(cell));
        Self::from_cells([sum])
    }

    /// All values times one public factor.
    #[must_use]
    pub fn times(&self, factor: &Scalar<B>) -> Self {
        Self::from_cells(self.cells().iter().map(|cell| cell.times(factor)))
    }

    /// Each value times the public factor at its place.
    #[must_use]
    pub fn times_each(&self, factors: &[Scalar<B>]) -> Self {
        Self::from_cells(self.cells().iter().zip(factors).map(|(cell, factor)| cell.times(factor)))
    }

    /// `<a>` = a G: the same values in the group. Local.
    #[must_use]
    pub const fn convert(self) -> SharedPoints<B> {
        SharedPoints { logarithms: self }
    }
}

impl<B: BlackBox> Add for &Shared<B> {
    type Output = Shared<B>;
    fn add(self, other: Self) -> Shared<B> {
        Shared::from_cells(self.cells().iter().zip(other.cells()).map(|(a, b)| a.plus(b)))
    }
}

impl<B: BlackBox> Sub for &Shared<B> {
    type Output = Shared<B>;
    fn sub(self, other: Self) -> Shared<B> {
        Shared::from_cells(self.cells().iter().zip(other.cells()).map(|(a, b)| a.minus(b)))
    }
}

impl<B: BlackBox> fmt::Debug for Shared<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} values of {})", self.len(), B::NAME)
    }
}

/// Shared elements of the group: `<a>` = a G for each a of a list.
///
/// A party that knows a share of a knows one of a G. The product is made when it is opened, so that public factors (and
/// Lagrange coefficients) are multiplied into the scalar, and every multiplication has the fixed base G.
pub struct SharedPoints<B: BlackBox> {
    logarithms: Shared<B>,
}

impl<B: BlackBox> SharedPoints<B> {
    /// Each element times the public factor at its place.
    #[must_use]
    pub fn times_each(&self, factors: &[Scalar<B>]) -> Self {
        Self { logarithms: self.logarithms.times_each(factors) }
    }

    pub(crate) const fn logarithms(&self) -> &Shared<B> {
        &self.logarithms
    }
}

impl<B: BlackBox> fmt::Debug for SharedPoints<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedPoints({} elements of {})", self.logarithms.len(), B::NAME)
    }
}

/// Scalars one after the other, canonical.
pub(crate) fn encode<'a, S: theta_groups::Scalar>(scalars: impl IntoIterator<Item = &'a S>) -> Vec<u8> {
    let scalars = scalars.into_iter();
    let mut bytes = Vec::with_capacity(scalars.size_hint().0 * S::ENCODED_LEN);
    for scalar in scalars {
        bytes.extend_from_slice(scalar.encode().as_ref());
    }
    bytes
}

/// The inverse of [`encode`].
pub(crate) fn decode<S: theta_groups::Scalar>(bytes: &[u8]) -> Option<Vec<S>> {
    bytes.chunks(S::ENCODED_LEN).map(|chunk| S::decode(chunk).ok()).collect()
}

/// Scalars that the party at a position sent, or blame for it.
pub(crate) fn read<S: theta_groups::Scalar>(party: &Party, from: usize, bytes: &[u8]) -> Result<Secret<Vec<S>>, Stop> {
    decode(bytes).map(Secret::new).ok_or_else(|| {
        party.blame(from, Misbehaviour::NotAScalar);
        Stop::Lost
    })
}

/// [`Scalar::ZERO`](theta_groups::Scalar::ZERO), so many times, in a vector that is wiped.
pub(crate) fn zeros<S: theta_groups::Scalar>(count: usize) -> Secret<Vec<S>> {
    Secret::new(vec![S::ZERO; count])
}

/// Whether it is zero; public.
pub(crate) fn is_zero<B: BlackBox>(scalar: &Scalar<B>) -> bool {
    *scalar == Scalar::<B>::ZERO
}
