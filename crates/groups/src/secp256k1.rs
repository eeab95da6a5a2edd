//! secp256k1 (SEC2), the curve of Bitcoin: hashing by the suite `secp256k1_XMD:SHA-256_SSWU_RO_`.

use crate::comb::{self, Comb, CombPoint, ENTRIES, Multiples};
use crate::msm;
use crate::weierstrass::jacobian::{self, Jacobian};
use crate::weierstrass::many::{self, Summand, WithCoordinates};
use crate::weierstrass::sswu::{Isogeny, Sswu, hash_to_field};
use crate::weierstrass::{field, group};
use crate::{DecodeError, Group, Scalar, Table, hex_debug};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Neg, Sub};
use crrl::field::GFsecp256k1 as Coordinate;
use crrl::secp256k1::{Point, Scalar as CrrlScalar};
use rand_core::CryptoRng;
use std::sync::OnceLock;
use subtle::{Choice, ConstantTimeEq};
use zeroize::{DefaultIsZeroes, Zeroizing};

/// The group secp256k1, of prime order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secp256k1;

field!(Coordinate);
group!(Secp256k1, Secp256k1Element, Secp256k1Scalar, "secp256k1");

/// y^2 = x^3 + 7.
#[derive(Clone, Copy)]
pub(crate) struct Shape;

impl jacobian::Shape for Shape {
    type Field = Coordinate;
    const A_IS_MINUS_3: bool = false;
}

/// RFC 9380, section 8.7: a curve from which a 3-isogeny leads to secp256k1, Z = -11.
fn sswu() -> Sswu<Coordinate> {
    Sswu {
        a: Coordinate::w64be(
            0x3f87_31ab_dd66_1adc,
            0xa08a_5558_f0f5_d272,
            0xe953_d363_cb6f_0e5d,
            0x4054_47c0_1a44_4533,
        ),
        b: Coordinate::from_i32(1771),
        z: Coordinate::from_i32(-11),
    }
}

/// RFC 9380, appendix E.1.
const ISOGENY: Isogeny<Coordinate> = Isogeny {
    x_num: &[
        Coordinate::w64be(0x8e38_e38e_38e3_8e38, 0xe38e_38e3_8e38_e38e, 0x38e3_8e38_e38e_38e3, 0x8e38_e38d_aaaa_a8c7),
        Coordinate::w64be(0x07d3_d4c8_0bc3_21d5, 0xb9f3_15ce_a7fd_44c5, 0xd595_d2fc_0bf6_3b92, 0xdfff_1044_f17c_6581),
        Coordinate::w64be(0x534c_328d_23f2_34e6, 0xe2a4_13de_ca25_caec, 0xe450_6144_037c_4031, 0x4ecb_d0b5_3d9d_d262),
        Coordinate::w64be(0x8e38_e38e_38e3_8e38, 0xe38e_38e3_8e38_e38e, 0x38e3_8e38_e38e_38e3, 0x8e38_e38d_aaaa_a88c),
    ],
    x_den: &[
        Coordinate::w64be(0xd357_7119_3d94_918a, 0x9ca3_4ccb_b7b6_40dd, 0x86cd_4095_42f8_487d, 0x9fe6_b745_781e_b49b),
        Coordinate::w64be(0xedad_c6f6_4383_dc1d, 0xf7c4_b2d5_1b54_2254, 0x06d3_6b64_1f5e_41bb, 0xc52a_5661_2a8c_6d14),
        Coordinate::w64be(0x0000_0000_0000_0000, 0x0000_0000_0000_0000, 0x0000_0000_0000_0000, 0x0000_0000_0000_0001),
    ],
    y_num: &[
        Coordinate::w64be(0x4bda_12f6_84bd_a12f, 0x684b_da12_f684_bda1, 0x2f68_4bda_12f6_84bd, 0xa12f_684b_8e38_e23c),
        Coordinate::w64be(0xc75e_0c32_d5cb_7c0f, 0xa9d0_a54b_12a0_a6d5, 0x647a_b046_d686_da6f, 0xdffc_90fc_201d_71a3),
        Coordinate::w64be(0x29a6_1946_91f9_1a73, 0x7152_09ef_6512_e576, 0x7228_30a2_01be_2018, 0xa765_e85a_9ece_e931),
        Coordinate::w64be(0x2f68_4bda_12f6_84bd, 0xa12f_684b_da12_f684, 0xbda1_2f68_4bda_12f6, 0x84bd_a12f_38e3_8d84),
    ],
    y_den: &[
        Coordinate::w64be(0xffff_ffff_ffff_ffff, 0xffff_ffff_ffff_ffff, 0xffff_ffff_ffff_ffff, 0xffff_fffe_ffff_f93b),
        Coordinate::w64be(0x7a06_534b_b8bd_b49f, 0xd5e9_e663_2722_c298, 0x9467_c1bf_c8e8_d978, 0xdfb4_25d2_685c_2573),
        Coordinate::w64be(0x6484_aa71_6545_ca2c, 0xf3a7_0c3f_a8fe_337e, 0x0a3d_2116_2f0d_6299, 0xa7bf_8192_bfd2_a76f),
        Coordinate::w64be(0x0000_0000_0000_0000, 0x0000_0000_0000_0000, 0x0000_0000_0000_0000, 0x0000_0000_0000_0001),
    ],
};

fn hash(dst: &[u8], message: &[&[u8]]) -> Point {
    let map = sswu();
    // The map's results are on the curve.
    let point = |u| {
        let (x, y, z) = ISOGENY.map(map.map(u));
        Point::from_projective(x, y, z).unwrap_or(Point::NEUTRAL)
    };
    let [first, second] = hash_to_field::<Coordinate>(dst, message);
    point(first) + point(second)
}
