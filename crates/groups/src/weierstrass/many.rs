//! Products of the generator with many scalars: a comb whose entries are affine, so that its sums share their inversions.
//!
//! Elements by themselves have combs in the library's complete projective coordinates: 14 multiplications an addition against six here.

use super::Field;
use super::jacobian::Shape;
use crate::comb::{self, Affine, Comb, CombPoint, CoordinatePoint, ENTRIES, Size};
use subtle::Choice;

/// Up to here the products are made one by one. Measured on P-256.
const ALONE: usize = 8;

/// An element whose coordinates can be had and set.
pub(crate) trait WithCoordinates: CombPoint<Entry = Self> {
    /// The shape of its curve.
    type Shape: Shape<Field: comb::Coordinate + Send + Sync>;

    /// (X/Z, Y/Z).
    fn to_projective(&self) -> [Coordinate<Self>; 3];
    /// The point of these coordinates, or the identity if there is none.
    fn from_affine(x: Coordinate<Self>, y: Coordinate<Self>) -> Self;
}

type Coordinate<E> = <<E as WithCoordinates>::Shape as Shape>::Field;

/// An element as the comb of many products sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summand<E>(pub(crate) E);

impl<E: WithCoordinates> CombPoint for Summand<E> {
    type Scalar = E::Scalar;
    type Entry = Affine<Coordinate<E>>;
    const ORDER_BITS: usize = E::ORDER_BITS;

    fn identity() -> Self {
        Self(E::identity())
    }

    fn double(&self) -> Self {
        Self(self.0.double())
    }

    fn plus(&self, other: &Self) -> Self {
        Self(self.0.plus(&other.0))
    }

    fn negated(&self) -> Self {
        Self(self.0.negated())
    }

    fn to_entries(points: &[Self]) -> Vec<Self::Entry> {
        let points: Vec<[Coordinate<E>; 3]> = points.iter().map(|point| point.0.to_projective()).collect();
        let mut inverses: Vec<Coordinate<E>> = points.iter().map(|[_, _, z]| *z).collect();
        Field::vartime_batch_invert(&mut inverses);
        let affine =
            |([x, y, _], inverse): (&[Coordinate<E>; 3], Coordinate<E>)| Affine { x: *x * inverse, y: *y * inverse };
        points.iter().zip(inverses).map(affine).collect()
    }

    fn select(row: &[Self::Entry; ENTRIES], index: u8, negative: Choice) -> Self::Entry {
        let mut selected = Affine { x: Field::ZERO, y: Field::ZERO };
        for (entry, mask) in row.iter().zip(comb::masks(index)) {
            // The library's masks are half as long.
            let mask = u32::try_from(mask >> 32).unwrap_or(0);
            Field::set_if(&mut selected.x, &entry.x, mask);
            Field::set_if(&mut selected.y, &entry.y, mask);
        }
        let opposite = -selected.y;
        Field::set_if(&mut selected.y, &opposite, u32::from(negative.unwrap_u8()).wrapping_neg());
        selected
    }

    fn plus_entry(&self, entry: &Self::Entry) -> Self {
        Self(self.0.plus(&E::from_affine(entry.x, entry.y)))
    }

    fn little_endian(scalar: &E::Scalar) -> <E::Scalar as crate::Scalar>::Encoding {
        E::little_endian(scalar)
    }
}

impl<E: WithCoordinates> CoordinatePoint for Summand<E> {
    type Coordinate = Coordinate<E>;

    fn coordinates(entry: &Self::Entry) -> Affine<Coordinate<E>> {
        *entry
    }

    fn from_coordinates(point: &Affine<Coordinate<E>>) -> Self {
        Self(E::from_affine(point.x, point.y))
    }

    fn tangent(x: &Coordinate<E>) -> Coordinate<E> {
        let a = if E::Shape::A_IS_MINUS_3 { <Coordinate<E> as Field>::ONE.triple() } else { Field::ZERO };
        x.square().triple() - a
    }
}

/// The comb of a point for many products.
pub(crate) fn comb<E: WithCoordinates>(point: E) -> Comb<Summand<E>> {
    Comb::new(&Summand(point), Size::Batch)
}

/// The products with all scalars; few of them by `alone`. For secret scalars, as [`Comb::multiply_all`].
pub(crate) fn multiply_all<E: WithCoordinates>(
    comb: impl FnOnce() -> &'static Comb<Summand<E>>,
    scalars: &[E::Scalar],
    alone: impl Fn(&E::Scalar) -> E,
) -> Vec<E> {
    if scalars.len() <= ALONE {
        return scalars.iter().map(alone).collect();
    }
    comb().multiply_all(scalars).into_iter().map(|Summand(product)| product).collect()
}
