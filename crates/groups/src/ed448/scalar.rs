//! The field of scalars of Ed448's group.

use crate::{DecodeError, Scalar, hex_debug};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Neg, Sub};
use crrl::ed448::Scalar as CrrlScalar;
use rand_core::CryptoRng;
use subtle::{Choice, ConstantTimeEq};
use zeroize::{DefaultIsZeroes, Zeroizing};

/// An integer modulo the order of Ed448's group. Encoded in 57 little-endian bytes, the last of them zero, as RFC 8032
/// has it in signatures.
#[derive(Clone, Copy)]
pub struct Ed448Scalar(pub(super) CrrlScalar);

impl Ed448Scalar {
    /// Bits of the order.
    pub(super) const BITS: usize = 446;
}

impl fmt::Debug for Ed448Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex_debug(f, "Ed448Scalar", &self.encode())
    }
}

impl ConstantTimeEq for Ed448Scalar {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.equals(other.0).ct_eq(&u32::MAX)
    }
}

impl PartialEq for Ed448Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for Ed448Scalar {}

/// Zero.
impl Default for Ed448Scalar {
    fn default() -> Self {
        Self::ZERO
    }
}

impl DefaultIsZeroes for Ed448Scalar {}

impl Add for Ed448Scalar {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Ed448Scalar {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul for Ed448Scalar {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

impl Neg for Ed448Scalar {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl AddAssign for Ed448Scalar {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sum for Ed448Scalar {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl Scalar for Ed448Scalar {
    type Encoding = [u8; 57];
    type Addend = Self;
    const ENCODED_LEN: usize = 57;
    const ZERO: Self = Self(CrrlScalar::ZERO);
    const ONE: Self = Self(CrrlScalar::ONE);
    const UNIFORM_LEN: usize = 84;

    fn from_u64(value: u64) -> Self {
        Self(CrrlScalar::from_u64(value))
    }

    fn from_u128(value: u128) -> Self {
        Self(CrrlScalar::from_u128(value))
    }

    fn random(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut bytes = Zeroizing::new([0; Self::UNIFORM_LEN]);
        rng.fill_bytes(&mut *bytes);
        Self::from_uniform_bytes(&*bytes)
    }

    /// Little-endian, as RFC 8032 reads its hashes.
    fn from_uniform_bytes(bytes: &[u8]) -> Self {
        Self(CrrlScalar::decode_reduce(bytes))
    }

    fn invert(&self) -> Self {
        Self(self.0.invert())
    }

    fn encode(&self) -> [u8; 57] {
        let mut bytes = [0; 57];
        bytes.iter_mut().zip(self.0.encode()).for_each(|(to, from)| *to = from);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let bytes: [u8; 57] = bytes.try_into().map_err(|_| DecodeError::Length { expected: 57, got: bytes.len() })?;
        match bytes {
            [integer @ .., 0] => CrrlScalar::decode(&integer).map(Self).ok_or(DecodeError::NotCanonical),
            _ => Err(DecodeError::NotCanonical),
        }
    }
}
