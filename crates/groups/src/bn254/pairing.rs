//! The optimal ate pairing.

use super::curve::Affine;
use super::{Bn254Scalar, G1, G1Element, G2, G2Element};
use crate::{Group, Pairing};
use halo2curves::bn256::{Bn256, G1Affine, G2Affine, Gt};
use halo2curves::pairing::{MillerLoopResult, MultiMillerLoop};

/// The pairing e: [`G1`] x [`G2`] -> GT of BN254.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bn254;

impl Pairing for Bn254 {
    type Scalar = Bn254Scalar;
    type G1 = G1;
    type G2 = G2;

    fn vartime_product_is_one(pairs: &[(G1Element, G2Element)]) -> bool {
        // A pair with the identity contributes a factor of one.
        let (ps, qs): (Vec<_>, Vec<_>) =
            pairs.iter().filter(|(p, q)| !G1::is_identity(p) && !G2::is_identity(q)).copied().unzip();
        let ps: Vec<G1Affine> =
            G1Element::batch_to_affine(&ps).into_iter().map(|Affine { x, y }| G1Affine { x, y }).collect();
        let qs: Vec<G2Affine> =
            G2Element::batch_to_affine(&qs).into_iter().map(|Affine { x, y }| G2Affine { x, y }).collect();
        let pairs: Vec<_> = ps.iter().zip(&qs).collect();
        Bn256::multi_miller_loop(&pairs).final_exponentiation() == Gt::identity()
    }
}
