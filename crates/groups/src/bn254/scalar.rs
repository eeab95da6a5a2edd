//! The field of scalars that both groups share.

use super::field::{limbs_be, power};
use crate::{DecodeError, Scalar, hex_debug};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Neg, Sub};
use halo2curves::bn256::Fr;
use halo2curves::ff::PrimeField;
use rand_core::CryptoRng;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroize;

/// An integer modulo the order of the groups of BN254,
/// 0x30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001. Encoded in 32 big-endian bytes, as the EVM
/// writes integers.
#[derive(Clone, Copy)]
pub struct Bn254Scalar(Fr);

/// The order minus two.
const ORDER_MINUS_2: [u64; 4] =
    [0x43e1_f593_efff_ffff, 0x2833_e848_79b9_7091, 0xb850_45b6_8181_585d, 0x3064_4e72_e131_a029];

impl Bn254Scalar {
    pub(super) const fn from_raw(limbs: [u64; 4]) -> Self {
        Self(Fr::from_raw(limbs))
    }

    /// The canonical little-endian integer.
    pub(super) fn to_little_endian(self) -> [u8; 32] {
        *self.0.to_repr().inner()
    }
}

impl fmt::Debug for Bn254Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex_debug(f, "Bn254Scalar", &self.encode())
    }
}

impl ConstantTimeEq for Bn254Scalar {
    fn ct_eq(&self, other: &Self) -> Choice {
        // Montgomery residues are kept fully reduced, so equal values have equal limbs.
        self.0.0.ct_eq(&other.0.0)
    }
}

impl PartialEq for Bn254Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for Bn254Scalar {}

impl Zeroize for Bn254Scalar {
    fn zeroize(&mut self) {
        self.0.0.zeroize();
    }
}

impl Add for Bn254Scalar {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Bn254Scalar {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul for Bn254Scalar {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

impl Neg for Bn254Scalar {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl AddAssign for Bn254Scalar {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Bn254Scalar {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl Scalar for Bn254Scalar {
    type Encoding = [u8; 32];
    type Addend = Self;
    const ENCODED_LEN: usize = 32;
    const ZERO: Self = Self(Fr::zero());
    const ONE: Self = Self(Fr::one());

    fn from_u64(value: u64) -> Self {
        Self::from_raw([value, 0, 0, 0])
    }

    fn from_u128(value: u128) -> Self {
        let (low, high) = (value & u128::from(u64::MAX), value >> 64);
        // Both halves fit u64 by construction.
        Self::from_raw([u64::try_from(low).unwrap_or(0), u64::try_from(high).unwrap_or(0), 0, 0])
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
        const TWO_TO_128: Bn254Scalar = Bn254Scalar::from_raw([0, 0, 1, 0]);
        let shift = TWO_TO_128 * TWO_TO_128;
        let (first, rest) = bytes.split_at(bytes.len() % 32);
        // Digits need not be reduced: multiplying into Montgomery form takes any 256 bits.
        rest.chunks(32)
            .fold(Self::from_raw(limbs_be(first)), |sum, digit| sum * shift + Self::from_raw(limbs_be(digit)))
    }

    fn invert(&self) -> Self {
        // Fermat: the crate's own inversion takes variable time.
        Self(power(self.0, &ORDER_MINUS_2, Fr::one()))
    }

    fn encode(&self) -> [u8; 32] {
        let mut bytes = self.to_little_endian();
        bytes.reverse();
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut bytes: [u8; 32] =
            bytes.try_into().map_err(|_| DecodeError::Length { expected: Self::ENCODED_LEN, got: bytes.len() })?;
        bytes.reverse();
        Option::from(Fr::from_repr(bytes.into())).map(Self).ok_or(DecodeError::NotCanonical)
    }
}
