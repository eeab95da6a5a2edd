//! Encodings of points: gnark-crypto's compressed form, and the uncompressed one of the EVM.

use super::curve::{Affine, Curve, Point};
use super::field::Field;
use crate::DecodeError;
use subtle::{Choice, ConditionallySelectable};

/// The two bits that no coordinate uses.
const MASK: u8 = 0b1100_0000;
const IDENTITY: u8 = 0b0100_0000;
const SMALLER: u8 = 0b1000_0000;
const LARGER: u8 = 0b1100_0000;

/// Writes the compressed point, as many bytes as a coordinate has, in constant time.
pub(super) fn compress<C: Curve>(point: &Affine<C>, out: &mut [u8]) {
    // The identity's x is zero.
    point.x.write(out);
    let flags = u8::conditional_select(&SMALLER, &LARGER, point.y.is_larger_of_two());
    let flags = u8::conditional_select(&flags, &IDENTITY, point.is_identity());
    if let Some(first) = out.first_mut() {
        *first |= flags;
    }
}

/// Parses `N` bytes; the point is on the curve, not always of prime order. For public data.
pub(super) fn uncompress<C: Curve, const N: usize>(bytes: &[u8]) -> Result<Affine<C>, DecodeError> {
    let mut bytes: [u8; N] = bytes.try_into().map_err(|_| DecodeError::Length { expected: N, got: bytes.len() })?;
    let flags = bytes.first_mut().map_or(0, |first| {
        let flags = *first & MASK;
        *first &= !MASK;
        flags
    });
    let x = C::Coordinate::read(&bytes).ok_or(DecodeError::NotCanonical)?;
    match flags {
        IDENTITY if bool::from(x.is_zero()) => Ok(Point::IDENTITY.to_affine()),
        SMALLER | LARGER => {
            let (exists, y) = (x.square() * x + C::B).sqrt();
            // No point has y = 0: both orders are odd.
            let y = y.select(-y, y.is_larger_of_two() ^ Choice::from(u8::from(flags == LARGER)));
            if bool::from(exists) { Ok(Affine { x, y }) } else { Err(DecodeError::NotCanonical) }
        }
        _ => Err(DecodeError::NotCanonical),
    }
}

/// Both coordinates; all zeros for the identity.
pub(super) fn write_uncompressed<C: Curve>(point: &Point<C>, out: &mut [u8]) {
    let affine = point.to_affine();
    let (x, y) = out.split_at_mut(C::Coordinate::ENCODED_LEN);
    affine.x.write(x);
    affine.y.select(C::Coordinate::ZERO, affine.is_identity()).write(y);
}
