//! The groups G1 and G2.

use super::Bn254Scalar;
use super::curve::{Affine, Curve, Point};
use super::encoding::{compress, uncompress, write_uncompressed};
use super::field::Field;
use super::hash::Svdw;
use super::mul;
use crate::comb::{Comb, Size};
use crate::expand::expand_message_xmd;
use crate::{DecodeError, Group, Table, msm};
use halo2curves::bn256::{Fq, Fq2};
use sha2::Sha256;
use std::sync::OnceLock;

/// The group of points on the curve itself, which are all of prime order: short encodings (32 bytes), fast arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G1;

/// The group of points of prime order on the twist: long encodings (64 bytes), about three times slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G2;

/// An element of [`G1`].
pub type G1Element = Point<G1>;

/// An element of [`G2`].
pub type G2Element = Point<G2>;

/// The number of products from which sharing an inversion pays; an inversion takes as long as 400 multiplications here.
const BATCH_FROM: usize = 48;

/// The integer x that defines the curve: its order is 36 x^4 + 36 x^3 + 18 x^2 + 6 x + 1.
const SEED: u64 = 4_965_661_367_192_848_881;

/// A cube root of unity: beta of G1. On the twist it belongs to the other eigenvalue, and its square to this one.
const BETA: [u64; 4] = [0xe4bd_44e5_607c_fd48, 0xc28f_069f_bb96_6e3d, 0x5e6d_d9e7_e0ac_ccb0, 0x3064_4e72_e131_a029];

const fn fq2(c0: [u64; 4], c1: [u64; 4]) -> Fq2 {
    Fq2::new(Fq::from_raw(c0), Fq::from_raw(c1))
}

impl Curve for G1 {
    type Coordinate = Fq;
    const ELEMENT_NAME: &'static str = "G1Element";
    const GENERATOR: (Fq, Fq) = (Fq::one(), Fq::from_raw([2, 0, 0, 0]));
    const B: Fq = Fq::from_raw([3, 0, 0, 0]);
    const BETA: Fq = Fq::from_raw(BETA);

    fn times_3b(t: Fq) -> Fq {
        t.double().double().double() + t
    }
}

impl Curve for G2 {
    type Coordinate = Fq2;
    const ELEMENT_NAME: &'static str = "G2Element";
    const GENERATOR: (Fq2, Fq2) = (
        fq2(
            [0x46de_bd5c_d992_f6ed, 0x6743_22d4_f75e_dadd, 0x426a_0066_5e5c_4479, 0x1800_deef_121f_1e76],
            [0x97e4_85b7_aef3_12c2, 0xf1aa_4933_35a9_e712, 0x7260_bfb7_31fb_5d25, 0x198e_9393_920d_483a],
        ),
        fq2(
            [0x4ce6_cc01_66fa_7daa, 0xe3d1_e769_0c43_d37b, 0x4aab_7180_8dcb_408f, 0x12c8_5ea5_db8c_6deb],
            [0x55ac_dadc_d122_975b, 0xbc4b_3133_70b3_8ef3, 0xec9e_99ad_690c_3395, 0x0906_89d0_585f_f075],
        ),
    );
    /// 3 / (9 + i).
    const B: Fq2 = fq2(
        [0x3267_e6dc_24a1_38e5, 0xb5b4_c5e5_59db_efa3, 0x81be_1899_1be0_6ac3, 0x2b14_9d40_ceb8_aaae],
        [0xe4a2_bd06_85c3_15d2, 0xa74f_a084_e52d_1852, 0xcd2c_afad_eed8_fdf4, 0x0097_13b0_3af0_fed4],
    );
    const BETA: Fq = Fq::square(&Fq::from_raw(BETA));

    fn times_3b(t: Fq2) -> Fq2 {
        const B3: Fq2 = fq2(
            [0x1ef6_9c66_bce9_b021, 0xf21b_7c8d_3cb0_39cf, 0x1499_be5e_509e_8f8f, 0x2075_3adc_a9c6_bfb8],
            [0xade8_3713_9149_4176, 0xf5ee_e18e_af87_48f8, 0x6786_0f09_cc8a_f9dd, 0x01c5_3b10_b0d2_fc7e],
        );
        t * B3
    }
}

/// The twist's map to the curve, Frobenius, and back: (x, y) to (conjugate of x times (9 + i)^((p-1)/3), conjugate of
/// y times (9 + i)^((p-1)/2)). In the prime-order group it multiplies by p.
fn frobenius(point: &G2Element) -> G2Element {
    const X: Fq2 = fq2(
        [0x99e3_9557_176f_553d, 0xb78c_c310_c2c3_330c, 0x4c0b_ec3c_f559_b143, 0x2fb3_4798_4f79_11f7],
        [0x1665_d51c_640f_cba2, 0x32ae_2a1d_0b7c_9dce, 0x4ba4_cc8b_d75a_0794, 0x16c9_e550_61eb_ae20],
    );
    const Y: Fq2 = fq2(
        [0xdc54_0146_71a0_135a, 0xdbaa_e0ed_a9c9_5998, 0xdc5e_c698_b6e2_f9b9, 0x063c_f305_489a_f5dc],
        [0x82d3_7f63_2623_b0e3, 0x2180_7dc9_8fa2_5bd2, 0x0704_b5a7_ec79_6f2b, 0x07c0_3cbc_ac41_049a],
    );
    let conjugate = |a: Fq2| Fq2::new(*a.c0(), -*a.c1());
    Point { x: conjugate(point.x) * X, y: conjugate(point.y) * Y, z: conjugate(point.z) }
}

/// Multiplies by a multiple of the cofactor (Fuentes-Castaneda, Knapp and Rodriguez-Henriquez, SAC 2011, section 6.1).
fn clear_cofactor(point: &G2Element) -> G2Element {
    let xp = point.vartime_times(SEED);
    let first = frobenius(&(xp.double() + xp));
    let second = frobenius(&frobenius(&xp));
    let third = frobenius(&frobenius(&frobenius(point)));
    xp + first + second + third
}

/// Whether (x + 1) P + psi(x P) + psi^2(x P) = psi^3(2 x P), with psi the endomorphism above, which holds for no other
/// points of the twist (Dai, Lin, Zhao and Zhou, "Fast subgroup membership testings on pairing-friendly curves", 2022).
fn is_in_g2(point: &G2Element) -> bool {
    let xp = point.vartime_times(SEED);
    let first = frobenius(&xp);
    let second = frobenius(&first);
    let third = frobenius(&second);
    xp + *point + first + second == third.double()
}

impl G1 {
    /// The affine coordinates as the precompiled contracts of EIP-196 take and return them: x and y in 32 big-endian
    /// bytes each, all zeros for the identity.
    #[must_use]
    pub fn encode_uncompressed_evm(element: &G1Element) -> [u8; 64] {
        let mut bytes = [0; 64];
        write_uncompressed(element, &mut bytes);
        bytes
    }
}

impl G2 {
    /// The affine coordinates as the precompiled contract of EIP-197 takes them: x and y, each the imaginary part before
    /// the real one, in 32 big-endian bytes each, all zeros for the identity.
    #[must_use]
    pub fn encode_uncompressed_evm(element: &G2Element) -> [u8; 128] {
        let mut bytes = [0; 128];
        write_uncompressed(element, &mut bytes);
        bytes
    }
}

macro_rules! group {
    ($group:ident, $element:ident, $len:literal, $uniform:literal, $name:literal, cofactor: $cofactor:literal, $clear:expr, $in_subgroup:expr) => {
        impl Group for $group {
            type Scalar = Bn254Scalar;
            type Element = $element;
            type Encoding = [u8; $len];

            const HAS_COFACTOR: bool = $cofactor;
            const TABLE_COST: u32 = 3;
            const NAME: &'static str = $name;
            const ENCODED_LEN: usize = $len;

            fn identity() -> $element {
                Point::IDENTITY
            }

            fn generator() -> $element {
                Point::GENERATOR
            }

            fn mul_base(scalar: &Bn254Scalar) -> $element {
                static COMB: OnceLock<Comb<$element>> = OnceLock::new();
                COMB.get_or_init(|| Comb::new(&Point::GENERATOR, Size::Large)).multiply(scalar)
            }

            fn mul_base_batch(scalars: &[Bn254Scalar]) -> Vec<$element> {
                static COMB: OnceLock<Comb<$element>> = OnceLock::new();
                if scalars.len() < BATCH_FROM {
                    return scalars.iter().map(Self::mul_base).collect();
                }
                COMB.get_or_init(|| Comb::new(&Point::GENERATOR, Size::Batch)).multiply_all(scalars)
            }

            fn table(element: &$element) -> Table<Self> {
                let comb = Comb::new(element, Size::Small);
                Box::new(move |scalar| comb.multiply(scalar))
            }

            fn vartime_msm(scalars: &[Bn254Scalar], points: &[$element]) -> $element {
                mul::vartime_msm(scalars, points)
            }

            fn vartime_msm_short(scalars: &[u128], points: &[$element]) -> $element {
                msm::vartime_msm_short(scalars, points)
            }

            fn hash_to_group(dst: &[u8], message: &[&[u8]]) -> $element {
                static MAP: OnceLock<Svdw<<$group as Curve>::Coordinate>> = OnceLock::new();
                let uniform = expand_message_xmd::<Sha256, $uniform>(dst, message);
                let point = MAP.get_or_init(|| Svdw::new($group::B)).hash(&uniform);
                $clear(&point)
            }

            fn encode(element: &$element) -> [u8; $len] {
                let mut bytes = [0; $len];
                compress(&element.to_affine(), &mut bytes);
                bytes
            }

            fn encode_batch(elements: &[$element]) -> Vec<[u8; $len]> {
                let encode = |affine: &Affine<$group>| {
                    let mut bytes = [0; $len];
                    compress(affine, &mut bytes);
                    bytes
                };
                Point::batch_to_affine(elements).iter().map(encode).collect()
            }

            fn decode_allowing_identity(bytes: &[u8]) -> Result<$element, DecodeError> {
                let element = uncompress::<$group, $len>(bytes)?.to_point();
                if Self::is_in_subgroup(&element) { Ok(element) } else { Err(DecodeError::Subgroup) }
            }

            fn decode_unchecked_subgroup(bytes: &[u8]) -> Result<$element, DecodeError> {
                let element = uncompress::<$group, $len>(bytes)?.to_point();
                if Self::is_identity(&element) { Err(DecodeError::Identity) } else { Ok(element) }
            }

            fn is_in_subgroup(element: &$element) -> bool {
                $in_subgroup(element)
            }

            fn is_identity(element: &$element) -> bool {
                element.is_identity().into()
            }
        }
    };
}

group!(G1, G1Element, 32, 96, "bn254-g1", cofactor: false, |point: &G1Element| *point, |_: &G1Element| true);
group!(G2, G2Element, 64, 192, "bn254-g2", cofactor: true, clear_cofactor, is_in_g2);
