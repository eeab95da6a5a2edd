//! The optimal ate pairing.

use super::ffi::{self, RawPoint};
use super::point::{G1Element, G2Element};
use super::{BlsScalar, G1, G2};
use crate::{Group, Pairing};

/// The pairing e: [`G1`] x [`G2`] -> GT of BLS12-381.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bls12_381;

impl Pairing for Bls12_381 {
    type Scalar = BlsScalar;
    type G1 = G1;
    type G2 = G2;

    fn vartime_product_is_one(pairs: &[(G1Element, G2Element)]) -> bool {
        // A pair with the identity contributes a factor of one.
        let (ps, qs): (Vec<_>, Vec<_>) = pairs
            .iter()
            .filter(|(p, q)| !G1::is_identity(p) && !G2::is_identity(q))
            .map(|(p, q)| (p.raw(), q.raw()))
            .unzip();
        ffi::vartime_pairing_product_is_one(&RawPoint::batch_to_affine(&ps), &RawPoint::batch_to_affine(&qs))
    }
}
