//! P-256 (secp256r1 of SEC2, FIPS 186-5): hashing by the suite `P256_XMD:SHA-256_SSWU_RO_`.

use crate::comb::{self, Comb, CombPoint, ENTRIES, Multiples};
use crate::msm;
use crate::weierstrass::jacobian::{self, Jacobian};
use crate::weierstrass::many::{self, Summand, WithCoordinates};
use crate::weierstrass::sswu::{Sswu, hash_to_field};
use crate::weierstrass::{field, group};
use crate::{DecodeError, Group, Scalar, Table, hex_debug};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Neg, Sub};
use crrl::field::GFp256 as Coordinate;
use crrl::p256::{Point, Scalar as CrrlScalar};
use rand_core::CryptoRng;
use std::sync::OnceLock;
use subtle::{Choice, ConstantTimeEq};
use zeroize::{DefaultIsZeroes, Zeroizing};

/// The group P-256, of prime order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P256;

field!(Coordinate);
group!(P256, P256Element, P256Scalar, "p256");

/// y^2 = x^3 - 3 x + b.
#[derive(Clone, Copy)]
pub(crate) struct Shape;

impl jacobian::Shape for Shape {
    type Field = Coordinate;
    const A_IS_MINUS_3: bool = true;
}

/// RFC 9380, section 8.2: the curve itself, Z = -10.
fn sswu() -> Sswu<Coordinate> {
    Sswu {
        a: Coordinate::from_i32(-3),
        b: Coordinate::w64be(
            0x5ac6_35d8_aa3a_93e7,
            0xb3eb_bd55_7698_86bc,
            0x651d_06b0_cc53_b0f6,
            0x3bce_3c3e_27d2_604b,
        ),
        z: Coordinate::from_i32(-10),
    }
}

fn hash(dst: &[u8], message: &[&[u8]]) -> Point {
    let map = sswu();
    // The map's results are on the curve.
    let point = |u| {
        let (x, y) = map.map(u);
        Point::from_affine(x, y).unwrap_or(Point::NEUTRAL)
    };
    let [first, second] = hash_to_field::<Coordinate>(dst, message);
    point(first) + point(second)
}
