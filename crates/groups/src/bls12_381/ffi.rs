//! Every call to `blst`, each behind a safe function of the same meaning. `unsafe` is here and in `modular/ffi.rs`, nowhere else.
//!
//! Three rules make all the calls sound, and each block says which it leans on:
//! - **whole**: pointers come from references to values of the exact type that the C side reads or writes;
//! - **sized**: pointers to bytes come with a length checked against, or fixed by, the Rust type;
//! - **listed**: blst walks `&[pointer, null]` as one contiguous array, so the slice behind the pointer holds at least
//!   as many entries as the count passed, and is not empty.

#![allow(unsafe_code, reason = "all calls to the C library blst; reviewed as a whole")]

use crate::DecodeError;
use crate::comb::{self, Coordinate, ENTRIES};
use blst::{
    BLST_ERROR, blst_fp, blst_fp2, blst_fp12, blst_fr, blst_p1, blst_p1_affine, blst_p2, blst_p2_affine, blst_scalar,
};
use core::{fmt, ptr};
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroize;

/// Bits of the group order.
pub(super) const ORDER_BITS: usize = 255;

/// Integers modulo the group order, in Montgomery form inside.
pub(super) mod fr {
    use super::{blst_fr, blst_scalar};

    pub(in super::super) fn from_limbs(limbs: [u64; 4]) -> blst_fr {
        let mut out = blst_fr::default();
        // SAFETY: whole; the input is four limbs.
        unsafe { blst::blst_fr_from_uint64(&raw mut out, limbs.as_ptr()) };
        out
    }

    pub(in super::super) fn add(a: &blst_fr, b: &blst_fr) -> blst_fr {
        let mut out = blst_fr::default();
        // SAFETY: whole.
        unsafe { blst::blst_fr_add(&raw mut out, a, b) };
        out
    }

    pub(in super::super) fn sub(a: &blst_fr, b: &blst_fr) -> blst_fr {
        let mut out = blst_fr::default();
        // SAFETY: whole.
        unsafe { blst::blst_fr_sub(&raw mut out, a, b) };
        out
    }

    pub(in super::super) fn mul(a: &blst_fr, b: &blst_fr) -> blst_fr {
        let mut out = blst_fr::default();
        // SAFETY: whole.
        unsafe { blst::blst_fr_mul(&raw mut out, a, b) };
        out
    }

    /// Zero maps to zero. Constant-time.
    pub(in super::super) fn invert(a: &blst_fr) -> blst_fr {
        let mut out = blst_fr::default();
        // SAFETY: whole.
        unsafe { blst::blst_fr_inverse(&raw mut out, a) };
        out
    }

    /// The canonical little-endian integer.
    pub(in super::super) fn to_scalar(a: &blst_fr) -> blst_scalar {
        let mut out = blst_scalar::default();
        // SAFETY: whole.
        unsafe { blst::blst_scalar_from_fr(&raw mut out, a) };
        out
    }

    /// `None` unless the little-endian integer is below the order.
    pub(in super::super) fn from_scalar(scalar: &blst_scalar) -> Option<blst_fr> {
        let mut out = blst_fr::default();
        // SAFETY: whole, both calls.
        unsafe {
            if !blst::blst_scalar_fr_check(scalar) {
                return None;
            }
            blst::blst_fr_from_scalar(&raw mut out, scalar);
        }
        Some(out)
    }

    /// Reduces a big-endian integer of any length.
    pub(in super::super) fn reduce_be(bytes: &[u8]) -> blst_fr {
        let mut scalar = blst_scalar::default();
        let mut out = blst_fr::default();
        // SAFETY: whole; sized by the slice. The returned flag only tells zero from the rest.
        unsafe {
            blst::blst_scalar_from_be_bytes(&raw mut scalar, bytes.as_ptr(), bytes.len());
            blst::blst_fr_from_scalar(&raw mut out, &raw const scalar);
        }
        out
    }
}

macro_rules! coordinate {
    (
        $field:ty, zero: $zero:expr, one: $one:expr, limbs: $(($($limbs:tt)+))+,
        $add:ident, $sub:ident, $mul:ident, $sqr:ident, $inverse:ident
    ) => {
        impl Coordinate for $field {
            const ZERO: Self = $zero;
            const ONE: Self = $one;

            fn plus(&self, other: &Self) -> Self {
                let mut out = Self::default();
                // SAFETY: whole.
                unsafe { blst::$add(&raw mut out, self, other) };
                out
            }

            fn minus(&self, other: &Self) -> Self {
                let mut out = Self::default();
                // SAFETY: whole.
                unsafe { blst::$sub(&raw mut out, self, other) };
                out
            }

            fn times(&self, other: &Self) -> Self {
                let mut out = Self::default();
                // SAFETY: whole.
                unsafe { blst::$mul(&raw mut out, self, other) };
                out
            }

            fn squared(&self) -> Self {
                let mut out = Self::default();
                // SAFETY: whole.
                unsafe { blst::$sqr(&raw mut out, self) };
                out
            }

            fn inverse(&self) -> Self {
                let mut out = Self::default();
                // SAFETY: whole.
                unsafe { blst::$inverse(&raw mut out, self) };
                out
            }

            fn vanishes(&self) -> Choice {
                let mut all = 0;
                $(for limb in &self.$($limbs)+ {
                    all |= limb;
                })+
                all.ct_eq(&0)
            }
        }
    };
}

const ZERO: blst_fp = blst_fp { l: [0; 6] };
/// 2^384 modulo p: one in Montgomery form.
const ONE: blst_fp = blst_fp {
    l: [
        0x7609_0000_0002_fffd,
        0xebf4_000b_c40c_0002,
        0x5f48_9857_53c7_58ba,
        0x77ce_5853_7052_5745,
        0x5c07_1a97_a256_ec6d,
        0x15f6_5ec3_fa80_e493,
    ],
};

coordinate!(
    blst_fp, zero: ZERO, one: ONE, limbs: (l),
    blst_fp_add, blst_fp_sub, blst_fp_mul, blst_fp_sqr, blst_fp_inverse
);

coordinate!(
    blst_fp2, zero: blst_fp2 { fp: [ZERO; 2] }, one: blst_fp2 { fp: [ONE, ZERO] }, limbs: (fp[0].l) (fp[1].l),
    blst_fp2_add, blst_fp2_sub, blst_fp2_mul, blst_fp2_sqr, blst_fp2_inverse
);

/// Which of blst's two multi-scalar multiplications to use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Method {
    /// Tables of 2^(window-1) multiples of every point, then interleaved windows.
    Windowed(usize),
    /// Buckets; blst chooses their number.
    Pippenger,
}

/// A point in Jacobian coordinates on the curve or its twist; blst's functions on it, made safe.
///
/// All but the names beginning with `vartime_` are constant-time.
pub(crate) trait RawPoint: Copy + Default + Eq + fmt::Debug + Send + Sync + 'static {
    /// A point in affine coordinates; all zeros for infinity.
    type Affine: Copy + Default + Send + Sync + 'static;
    /// The field of the coordinates.
    type Coordinate: Coordinate;
    /// The numbers of points from which buckets beat tables: for scalars of more than 128 bits, and for shorter ones.
    const BUCKETS_FROM: (usize, usize);
    /// The compressed encoding.
    type Bytes: AsRef<[u8]> + Copy + Eq + fmt::Debug + Send + Sync + 'static;

    fn generator() -> Self;
    fn double(&self) -> Self;
    fn add(&self, other: &Self) -> Self;
    fn add_affine(&self, other: &Self::Affine) -> Self;
    fn negate(&self) -> Self;
    fn negate_affine_if(affine: &Self::Affine, choice: Choice) -> Self::Affine;
    /// The entry that has the mask.
    fn select(row: &[Self::Affine; ENTRIES], masks: &[u64; ENTRIES]) -> Self::Affine;
    /// Only for points in the prime-order subgroup: uses the curve's endomorphism.
    fn mul(&self, scalar: &blst_scalar) -> Self;
    fn is_infinity(&self) -> bool;
    fn is_in_subgroup(&self) -> bool;
    fn wipe(&mut self);
    fn from_affine(affine: &Self::Affine) -> Self;
    fn coordinates(affine: &Self::Affine) -> comb::Affine<Self::Coordinate>;
    /// Of a point on the curve.
    fn from_coordinates(affine: &comb::Affine<Self::Coordinate>) -> Self;
    fn to_affine(&self) -> Self::Affine;
    /// One field inversion for all.
    fn batch_to_affine(points: &[Self]) -> Vec<Self::Affine>;
    fn compress(affine: &Self::Affine) -> Self::Bytes;
    /// Checks length, canonical form and the curve's equation, not the subgroup.
    fn uncompress(bytes: &[u8]) -> Result<Self::Affine, DecodeError>;
    /// RFC 9380, random-oracle encoding, of the concatenation of both message parts.
    fn hash(dst: &[u8], prefix: &[u8], message: &[u8]) -> Self;
    /// Sum of points\[i\] * scalars\[i\]. The scalars lie one after the other, little-endian, each in as many bytes
    /// as `bits` need; a point without a scalar, or the other way round, is left out.
    fn vartime_msm(points: &[Self::Affine], scalars: &[u8], bits: usize, method: Method) -> Self;
}

macro_rules! raw_point {
    (
        $point:ty, $affine:ident, $coordinate:ty, $len:literal, buckets: $buckets:expr, wipe: |$wiped:ident| $wipe:block,
        limbs: $(($($limbs:tt)+))+, $add_affine:ident, $cneg_coordinate:ident,
        $in_subgroup:ident, $double:ident, $generator:ident, $add:ident, $cneg:ident, $mult:ident, $is_inf:ident, $from_affine:ident,
        $to_affine:ident, $to_affines:ident, $compress:ident, $uncompress:ident, $hash:ident, $wbits_sizeof:ident,
        $wbits_precompute:ident, $wbits_scratch:ident, $wbits_mult:ident, $pippenger_scratch:ident, $pippenger:ident
    ) => {
        impl RawPoint for $point {
            type Affine = $affine;
            type Coordinate = $coordinate;
            type Bytes = [u8; $len];
            const BUCKETS_FROM: (usize, usize) = $buckets;

            fn generator() -> Self {
                // SAFETY: blst returns a pointer to a static constant of this type.
                unsafe { *blst::$generator() }
            }

            fn double(&self) -> Self {
                let mut out = Self::default();
                // SAFETY: whole.
                unsafe { blst::$double(&raw mut out, self) };
                out
            }

            fn add(&self, other: &Self) -> Self {
                let mut out = Self::default();
                // SAFETY: whole.
                unsafe { blst::$add(&raw mut out, self, other) };
                out
            }

            fn add_affine(&self, other: &Self::Affine) -> Self {
                let mut out = Self::default();
                // SAFETY: whole.
                unsafe { blst::$add_affine(&raw mut out, self, other) };
                out
            }

            fn negate(&self) -> Self {
                let mut out = *self;
                // SAFETY: whole.
                unsafe { blst::$cneg(&raw mut out, true) };
                out
            }

            fn negate_affine_if(affine: &Self::Affine, choice: Choice) -> Self::Affine {
                let mut out = *affine;
                // SAFETY: whole.
                unsafe { blst::$cneg_coordinate(&raw mut out.y, &raw const affine.y, choice.into()) };
                out
            }

            fn select(row: &[Self::Affine; ENTRIES], masks: &[u64; ENTRIES]) -> Self::Affine {
                let mut selected = Self::Affine::default();
                $(selected.$($limbs)+.l = comb::select_words(row, masks, |entry| &entry.$($limbs)+.l);)+
                selected
            }

            fn mul(&self, scalar: &blst_scalar) -> Self {
                let mut out = Self::default();
                // SAFETY: whole; sized: the scalar has 256 bits.
                unsafe { blst::$mult(&raw mut out, self, scalar.b.as_ptr(), ORDER_BITS) };
                out
            }

            fn is_infinity(&self) -> bool {
                // SAFETY: whole.
                unsafe { blst::$is_inf(self) }
            }

            fn is_in_subgroup(&self) -> bool {
                // SAFETY: whole.
                unsafe { blst::$in_subgroup(self) }
            }

            fn wipe(&mut self) {
                let $wiped = self;
                $wipe
            }

            fn from_affine(affine: &Self::Affine) -> Self {
                let mut out = Self::default();
                // SAFETY: whole.
                unsafe { blst::$from_affine(&raw mut out, affine) };
                out
            }

            fn coordinates(affine: &Self::Affine) -> comb::Affine<$coordinate> {
                comb::Affine { x: affine.x, y: affine.y }
            }

            fn from_coordinates(affine: &comb::Affine<$coordinate>) -> Self {
                Self::from_affine(&$affine { x: affine.x, y: affine.y })
            }

            fn to_affine(&self) -> Self::Affine {
                let mut out = <$affine>::default();
                // SAFETY: whole.
                unsafe { blst::$to_affine(&raw mut out, self) };
                out
            }

            fn batch_to_affine(points: &[Self]) -> Vec<Self::Affine> {
                let mut out = vec![<$affine>::default(); points.len()];
                if !points.is_empty() {
                    let list = [points.as_ptr(), ptr::null()];
                    // SAFETY: listed; the output has as many entries as the input.
                    unsafe { blst::$to_affines(out.as_mut_ptr(), list.as_ptr(), points.len()) };
                }
                out
            }

            fn compress(affine: &Self::Affine) -> Self::Bytes {
                let mut out = [0; $len];
                // SAFETY: whole; sized: blst writes exactly this many bytes.
                unsafe { blst::$compress(out.as_mut_ptr(), affine) };
                out
            }

            fn uncompress(bytes: &[u8]) -> Result<Self::Affine, DecodeError> {
                if bytes.len() != $len {
                    return Err(DecodeError::Length { expected: $len, got: bytes.len() });
                }
                let mut out = <$affine>::default();
                // SAFETY: whole; sized: the length was just checked and blst reads exactly that many bytes.
                match unsafe { blst::$uncompress(&raw mut out, bytes.as_ptr()) } {
                    BLST_ERROR::BLST_SUCCESS => Ok(out),
                    _ => Err(DecodeError::NotCanonical),
                }
            }

            fn hash(dst: &[u8], prefix: &[u8], message: &[u8]) -> Self {
                let mut out = Self::default();
                // SAFETY: whole; sized by the three slices.
                unsafe {
                    blst::$hash(
                        &raw mut out,
                        message.as_ptr(),
                        message.len(),
                        dst.as_ptr(),
                        dst.len(),
                        prefix.as_ptr(),
                        prefix.len(),
                    );
                }
                out
            }

            fn vartime_msm(points: &[Self::Affine], scalars: &[u8], bits: usize, method: Method) -> Self {
                let mut out = Self::default();
                let n = points.len().min(scalars.len().checked_div(bits.div_ceil(8)).unwrap_or(0));
                if n == 0 {
                    return out;
                }
                let points = [points.as_ptr(), ptr::null()];
                let scalars = [scalars.as_ptr(), ptr::null()];
                match method {
                    Method::Windowed(window) => {
                        let window = window.clamp(2, 8);
                        // SAFETY: listed; the table and the scratch space have the sizes that blst asks for, in its
                        // own units, rounded up.
                        unsafe {
                            let entries = blst::$wbits_sizeof(window, n).div_ceil(size_of::<$affine>());
                            let mut table = vec![<$affine>::default(); entries];
                            blst::$wbits_precompute(table.as_mut_ptr(), window, points.as_ptr(), n);
                            let mut scratch = vec![0_u64; blst::$wbits_scratch(n).div_ceil(8)];
                            blst::$wbits_mult(
                                &raw mut out,
                                table.as_ptr(),
                                window,
                                n,
                                scalars.as_ptr(),
                                bits,
                                scratch.as_mut_ptr(),
                            );
                        }
                    }
                    Method::Pippenger => {
                        // SAFETY: listed; the scratch space has the size that blst asks for, rounded up.
                        unsafe {
                            let mut scratch = vec![0_u64; blst::$pippenger_scratch(n).div_ceil(8)];
                            blst::$pippenger(
                                &raw mut out,
                                points.as_ptr(),
                                n,
                                scalars.as_ptr(),
                                bits,
                                scratch.as_mut_ptr(),
                            );
                        }
                    }
                }
                out
            }
        }
    };
}

raw_point!(
    blst_p1, blst_p1_affine, blst_fp, 48, buckets: (32, 32),
    wipe: |point| { for coordinate in [&mut point.x, &mut point.y, &mut point.z] { coordinate.l.zeroize(); } },
    limbs: (x) (y), blst_p1_add_or_double_affine, blst_fp_cneg,
    blst_p1_in_g1, blst_p1_double, blst_p1_generator, blst_p1_add_or_double, blst_p1_cneg, blst_p1_mult, blst_p1_is_inf,
    blst_p1_from_affine, blst_p1_to_affine, blst_p1s_to_affine, blst_p1_affine_compress, blst_p1_uncompress,
    blst_hash_to_g1, blst_p1s_mult_wbits_precompute_sizeof, blst_p1s_mult_wbits_precompute,
    blst_p1s_mult_wbits_scratch_sizeof, blst_p1s_mult_wbits, blst_p1s_mult_pippenger_scratch_sizeof,
    blst_p1s_mult_pippenger
);

raw_point!(
    blst_p2, blst_p2_affine, blst_fp2, 96, buckets: (80, 36),
    wipe: |point| {
        for coordinate in [&mut point.x, &mut point.y, &mut point.z] {
            for part in &mut coordinate.fp {
                part.l.zeroize();
            }
        }
    },
    limbs: (x.fp[0]) (x.fp[1]) (y.fp[0]) (y.fp[1]), blst_p2_add_or_double_affine, blst_fp2_cneg,
    blst_p2_in_g2, blst_p2_double, blst_p2_generator, blst_p2_add_or_double, blst_p2_cneg, blst_p2_mult, blst_p2_is_inf,
    blst_p2_from_affine, blst_p2_to_affine, blst_p2s_to_affine, blst_p2_affine_compress, blst_p2_uncompress,
    blst_hash_to_g2, blst_p2s_mult_wbits_precompute_sizeof, blst_p2s_mult_wbits_precompute,
    blst_p2s_mult_wbits_scratch_sizeof, blst_p2s_mult_wbits, blst_p2s_mult_pippenger_scratch_sizeof,
    blst_p2s_mult_pippenger
);

/// Whether the product of the pairings of P\[i\] and Q\[i\] is one, over the shorter list. No point may be infinity:
/// its pairing is one and the caller leaves it out.
pub(super) fn vartime_pairing_product_is_one(ps: &[blst_p1_affine], qs: &[blst_p2_affine]) -> bool {
    let n = ps.len().min(qs.len());
    if n == 0 {
        return true;
    }
    let mut product = blst_fp12::default();
    let mut unity = blst_fp12::default();
    let (ps, qs) = ([ps.as_ptr(), ptr::null()], [qs.as_ptr(), ptr::null()]);
    // SAFETY: listed; whole.
    unsafe {
        blst::blst_miller_loop_n(&raw mut product, qs.as_ptr(), ps.as_ptr(), n);
        blst::blst_final_exp(&raw mut unity, &raw const product);
        blst::blst_fp12_is_one(&raw const unity)
    }
}
