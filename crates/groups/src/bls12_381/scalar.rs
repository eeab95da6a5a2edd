//! The field of scalars that both groups share.

use super::ffi::fr;
use crate::addend::{Addend, Words};
use crate::{DecodeError, Scalar, hex_debug};
use blst::{blst_fr, blst_scalar};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Neg, Sub};
use rand_core::CryptoRng;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroize;

/// An integer modulo the order of the groups of BLS12-381,
/// 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001. Encoded in 32 big-endian bytes, as the IETF
/// draft encodes secret keys.
#[derive(Clone, Copy)]
pub struct BlsScalar(blst_fr);

impl BlsScalar {
    /// The canonical little-endian integer: what blst's multiplications take.
    pub(super) fn to_little_endian(self) -> blst_scalar {
        fr::to_scalar(&self.0)
    }
}

impl fmt::Debug for BlsScalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex_debug(f, "BlsScalar", &self.encode())
    }
}

impl ConstantTimeEq for BlsScalar {
    fn ct_eq(&self, other: &Self) -> Choice {
        // blst keeps its Montgomery residues fully reduced, so equal values have equal limbs.
        self.0.l.ct_eq(&other.0.l)
    }
}

impl PartialEq for BlsScalar {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for BlsScalar {}

impl Zeroize for BlsScalar {
    fn zeroize(&mut self) {
        self.0.l.zeroize();
    }
}

impl Add for BlsScalar {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(fr::add(&self.0, &other.0))
    }
}

impl Sub for BlsScalar {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(fr::sub(&self.0, &other.0))
    }
}

impl Mul for BlsScalar {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(fr::mul(&self.0, &other.0))
    }
}

impl Neg for BlsScalar {
    type Output = Self;
    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

impl AddAssign for BlsScalar {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for BlsScalar {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// The words are blst's own form, Montgomery residues.
impl Words for BlsScalar {
    const ORDER: [u64; 4] =
        [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

    fn to_words(self) -> [u64; 4] {
        self.0.l
    }

    fn from_words(words: [u64; 4]) -> Self {
        Self(blst_fr { l: words })
    }
}

impl From<Addend<Self>> for BlsScalar {
    fn from(addend: Addend<Self>) -> Self {
        addend.to_scalar()
    }
}

impl Scalar for BlsScalar {
    type Encoding = [u8; 32];
    type Addend = Addend<Self>;
    const ENCODED_LEN: usize = 32;
    const ZERO: Self = Self(blst_fr { l: [0; 4] });
    // 2^256 modulo the order: one in Montgomery form.
    const ONE: Self = Self(blst_fr {
        l: [0x0000_0001_ffff_fffe, 0x5884_b7fa_0003_4802, 0x998c_4fef_ecbc_4ff5, 0x1824_b159_acc5_056f],
    });

    fn from_u64(value: u64) -> Self {
        Self(fr::from_limbs([value, 0, 0, 0]))
    }

    fn from_u128(value: u128) -> Self {
        let (low, high) = (value & u128::from(u64::MAX), value >> 64);
        // Both halves fit u64 by construction.
        Self(fr::from_limbs([u64::try_from(low).unwrap_or(0), u64::try_from(high).unwrap_or(0), 0, 0]))
    }

    fn random(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut bytes = [0; 64];
        rng.fill_bytes(&mut bytes);
        let scalar = Self::from_uniform_bytes(&bytes);
        bytes.zeroize();
        scalar
    }

    /// Big-endian, as RFC 9380 reads its hashes.
    fn from_uniform_bytes(bytes: &[u8]) -> Self {
        Self(fr::reduce_be(bytes))
    }

    fn invert(&self) -> Self {
        Self(fr::invert(&self.0))
    }

    fn encode(&self) -> [u8; 32] {
        let mut bytes = self.to_little_endian().b;
        bytes.reverse();
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut scalar = blst_scalar {
            b: bytes.try_into().map_err(|_| DecodeError::Length { expected: Self::ENCODED_LEN, got: bytes.len() })?,
        };
        scalar.b.reverse();
        fr::from_scalar(&scalar).map(Self).ok_or(DecodeError::NotCanonical)
    }
}
