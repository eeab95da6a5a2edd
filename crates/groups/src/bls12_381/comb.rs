//! blst's points as the comb for fixed points needs them.

use super::BlsScalar;
use super::ffi::{ORDER_BITS, RawPoint};
use crate::comb::{Affine, CombPoint, CoordinatePoint, ENTRIES, masks};
use subtle::Choice;

impl<P: RawPoint> CombPoint for P {
    type Scalar = BlsScalar;
    type Entry = P::Affine;
    const ORDER_BITS: usize = ORDER_BITS;

    fn identity() -> Self {
        Self::default()
    }

    fn double(&self) -> Self {
        RawPoint::double(self)
    }

    fn plus(&self, other: &Self) -> Self {
        self.add(other)
    }

    fn negated(&self) -> Self {
        self.negate()
    }

    fn to_entries(points: &[Self]) -> Vec<P::Affine> {
        P::batch_to_affine(points)
    }

    fn select(row: &[P::Affine; ENTRIES], index: u8, negative: Choice) -> P::Affine {
        P::negate_affine_if(&P::select(row, &masks(index)), negative)
    }

    fn plus_entry(&self, entry: &P::Affine) -> Self {
        self.add_affine(entry)
    }

    fn little_endian(scalar: &BlsScalar) -> [u8; 32] {
        // The library's integer wipes itself.
        scalar.to_little_endian().b
    }
}

impl<P: RawPoint> CoordinatePoint for P {
    type Coordinate = P::Coordinate;

    fn coordinates(entry: &P::Affine) -> Affine<P::Coordinate> {
        P::coordinates(entry)
    }

    fn from_coordinates(point: &Affine<P::Coordinate>) -> Self {
        P::from_coordinates(point)
    }
}
