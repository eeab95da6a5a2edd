//! ristretto255 (RFC 9496): the prime-order group behind Ed25519, without its cofactor.

use crate::addend::{Addend, Words};
use crate::expand::expand_message_xmd;
use crate::{DecodeError, Group, Scalar, Table, bit_length, hex_debug};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Neg, Sub};
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar as DalekScalar;
use curve25519_dalek::traits::{Identity, VartimeMultiscalarMul};
use rand_core::CryptoRng;
use sha2::Sha512;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroize;

/// The group ristretto255 of order 2^252 + 27742317777372353535851937790883648493.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ristretto255;

/// An integer modulo the order of ristretto255, which is also that of Ed25519's group. Encoded in 32 little-endian
/// bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RistrettoScalar(pub(crate) DalekScalar);

/// Reduces a little-endian integer of any length modulo the group's order.
fn reduce_le(bytes: &[u8]) -> DalekScalar {
    // The library reduces 64 bytes at once; longer integers are reduced block by block, the highest first.
    let shift = DalekScalar::from_bytes_mod_order_wide(&[0xff; 64]) + DalekScalar::ONE;
    bytes.chunks(64).rev().fold(DalekScalar::ZERO, |high, block| {
        let mut wide = zeroize::Zeroizing::new([0; 64]);
        wide.iter_mut().zip(block).for_each(|(to, from)| *to = *from);
        high * shift + DalekScalar::from_bytes_mod_order_wide(&wide)
    })
}

/// An element of ristretto255.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RistrettoElement(RistrettoPoint);

impl fmt::Debug for RistrettoScalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex_debug(f, "RistrettoScalar", self.0.as_bytes())
    }
}

impl fmt::Debug for RistrettoElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex_debug(f, "RistrettoElement", self.0.compress().as_bytes())
    }
}

impl ConstantTimeEq for RistrettoScalar {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl ConstantTimeEq for RistrettoElement {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl Zeroize for RistrettoScalar {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl Zeroize for RistrettoElement {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl Add for RistrettoScalar {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for RistrettoScalar {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul for RistrettoScalar {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

impl Neg for RistrettoScalar {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl AddAssign for RistrettoScalar {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sum for RistrettoScalar {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// The words are the canonical integer.
impl Words for RistrettoScalar {
    /// 2^252 + 27742317777372353535851937790883648493.
    const ORDER: [u64; 4] = [0x5812_631a_5cf5_d3ed, 0x14de_f9de_a2f7_9cd6, 0, 0x1000_0000_0000_0000];

    fn to_words(self) -> [u64; 4] {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(self.0.as_bytes().as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        words
    }

    fn from_words(words: [u64; 4]) -> Self {
        let mut bytes = [0; 32];
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        let scalar = Self(DalekScalar::from_bytes_mod_order(bytes));
        bytes.zeroize();
        scalar
    }
}

impl From<Addend<Self>> for RistrettoScalar {
    fn from(addend: Addend<Self>) -> Self {
        addend.to_scalar()
    }
}

impl Scalar for RistrettoScalar {
    type Encoding = [u8; 32];
    type Addend = Addend<Self>;
    const ENCODED_LEN: usize = 32;
    const ZERO: Self = Self(DalekScalar::ZERO);
    const ONE: Self = Self(DalekScalar::ONE);

    fn from_u64(value: u64) -> Self {
        Self(DalekScalar::from(value))
    }

    fn from_u128(value: u128) -> Self {
        Self(DalekScalar::from(value))
    }

    fn random(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        Self(DalekScalar::random(rng))
    }

    /// Little-endian, as RFC 8032 reads its hashes.
    fn from_uniform_bytes(bytes: &[u8]) -> Self {
        Self(reduce_le(bytes))
    }

    fn invert(&self) -> Self {
        // Fermat's exponentiation: zero maps to zero.
        Self(self.0.invert())
    }

    fn encode(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let bytes = bytes.try_into().map_err(|_| DecodeError::Length { expected: 32, got: bytes.len() })?;
        Option::from(DalekScalar::from_canonical_bytes(bytes)).map(Self).ok_or(DecodeError::NotCanonical)
    }
}

impl Add for RistrettoElement {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for RistrettoElement {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for RistrettoElement {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Mul<RistrettoScalar> for RistrettoElement {
    type Output = Self;
    fn mul(self, scalar: RistrettoScalar) -> Self {
        Self(self.0 * scalar.0)
    }
}

impl Sum for RistrettoElement {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(RistrettoPoint::identity()), Add::add)
    }
}

/// Multi-scalar multiplication over the shorter of the two lists.
fn msm(scalars: impl ExactSizeIterator<Item = DalekScalar>, points: &[RistrettoElement]) -> RistrettoElement {
    let n = scalars.len().min(points.len());
    RistrettoElement(RistrettoPoint::vartime_multiscalar_mul(
        scalars.take(n),
        points.iter().take(n).map(|point| point.0),
    ))
}

/// Multi-scalar multiplication by double-and-add, for short scalars in any group; for public data.
pub(crate) fn vartime_double_and_add<G: Group>(bits: usize, scalars: &[u128], points: &[G::Element]) -> G::Element {
    let mut sum = G::identity();
    for bit in (0..bits).rev() {
        sum = sum + sum;
        for (scalar, point) in scalars.iter().zip(points) {
            if scalar >> bit & 1 == 1 {
                sum = sum + *point;
            }
        }
    }
    sum
}

/// Whether double-and-add beats the library's multi-scalar multiplication, which always makes 256 doublings, for `n` scalars of
/// `bits` bits (measured).
pub(crate) const fn are_short(bits: usize, n: usize) -> bool {
    bits * (n + 2) < 200 + 20 * n
}

impl Group for Ristretto255 {
    type Scalar = RistrettoScalar;
    type Element = RistrettoElement;
    type Encoding = [u8; 32];

    const HAS_COFACTOR: bool = false;
    // The library inverts a field element for each of 256 entries.
    const TABLE_COST: u32 = 32;
    const NAME: &'static str = "ristretto255";
    const ENCODED_LEN: usize = 32;

    fn identity() -> RistrettoElement {
        RistrettoElement(RistrettoPoint::identity())
    }

    fn generator() -> RistrettoElement {
        RistrettoElement(RISTRETTO_BASEPOINT_POINT)
    }

    fn mul_base(scalar: &RistrettoScalar) -> RistrettoElement {
        RistrettoElement(RistrettoPoint::mul_base(&scalar.0))
    }

    fn table(element: &RistrettoElement) -> Table<Self> {
        let table = Box::new(RistrettoBasepointTable::create(&element.0));
        Box::new(move |scalar| RistrettoElement(&*table * &scalar.0))
    }

    fn vartime_msm(scalars: &[RistrettoScalar], points: &[RistrettoElement]) -> RistrettoElement {
        msm(scalars.iter().map(|scalar| scalar.0), points)
    }

    fn vartime_msm_short(scalars: &[u128], points: &[RistrettoElement]) -> RistrettoElement {
        let n = scalars.len().min(points.len());
        let bits = bit_length(scalars.iter().take(n));
        if are_short(bits, n) {
            vartime_double_and_add::<Self>(bits, scalars, points)
        } else {
            msm(scalars.iter().map(|&scalar| DalekScalar::from(scalar)), points)
        }
    }

    fn vartime_double_mul(
        base_scalar: &RistrettoScalar,
        element: &RistrettoElement,
        scalar: &RistrettoScalar,
    ) -> RistrettoElement {
        RistrettoElement(RistrettoPoint::vartime_double_scalar_mul_basepoint(&scalar.0, &element.0, &base_scalar.0))
    }

    fn hash_to_group(dst: &[u8], message: &[&[u8]]) -> RistrettoElement {
        RistrettoElement(RistrettoPoint::from_uniform_bytes(&expand_message_xmd::<Sha512, 64>(dst, message)))
    }

    fn encode(element: &RistrettoElement) -> [u8; 32] {
        element.0.compress().to_bytes()
    }

    /// Encodes one by one: the library's batch encoding gives doubled elements, and halving first costs more than it saves.
    fn encode_batch(elements: &[RistrettoElement]) -> Vec<[u8; 32]> {
        elements.iter().map(Self::encode).collect()
    }

    fn decode_allowing_identity(bytes: &[u8]) -> Result<RistrettoElement, DecodeError> {
        let bytes = bytes.try_into().map_err(|_| DecodeError::Length { expected: 32, got: bytes.len() })?;
        CompressedRistretto(bytes).decompress().map(RistrettoElement).ok_or(DecodeError::NotCanonical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../../vectors/rfc9496/ristretto255.json")).unwrap()
    }

    fn bytes(value: &Value) -> Vec<u8> {
        hex::decode(value.as_str().unwrap()).unwrap()
    }

    #[test]
    fn multiples_of_the_generator_match_rfc_9496() {
        let file = vectors();
        let multiples = file["multiples_of_the_generator"].as_array().unwrap();
        assert_eq!(multiples.len(), 16);
        for (i, expected) in multiples.iter().enumerate() {
            let element = Ristretto255::mul_base(&RistrettoScalar::from_u64(i as u64));
            assert_eq!(Ristretto255::encode(&element).as_slice(), bytes(expected));
            assert_eq!(Ristretto255::decode_allowing_identity(&bytes(expected)), Ok(element));
        }
    }

    #[test]
    fn bad_encodings_of_rfc_9496_are_refused() {
        let file = vectors();
        let mut count = 0;
        for group in file["bad_encodings"].as_array().unwrap() {
            for encoding in group["encodings"].as_array().unwrap() {
                count += 1;
                assert_eq!(
                    Ristretto255::decode(&bytes(encoding)),
                    Err(DecodeError::NotCanonical),
                    "{}",
                    group["reason"]
                );
            }
        }
        assert_eq!(count, 29);
    }

    #[test]
    fn one_way_map_matches_rfc_9496() {
        let file = vectors();
        let maps = file["one_way_map"].as_array().unwrap();
        assert_eq!(maps.len(), 7);
        for map in maps {
            let uniform: [u8; 64] = bytes(&map["uniform_bytes"]).try_into().unwrap();
            let element = RistrettoElement(RistrettoPoint::from_uniform_bytes(&uniform));
            assert_eq!(Ristretto255::encode(&element).as_slice(), bytes(&map["element"]));
        }
    }

    /// RFC 9497 (oblivious pseudo-random functions), appendix A.1.1.1: its blinded element is a hash to ristretto255
    /// times a given scalar, which checks the expansion and the map together.
    #[test]
    fn hash_matches_rfc_9497() {
        let dst = b"HashToGroup-OPRFV1-\x00-ristretto255-SHA512";
        let blind = hex::decode("64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706").unwrap();
        let blinded = Ristretto255::hash_to_group(dst, &[&[0]]) * RistrettoScalar::decode(&blind).unwrap();
        assert_eq!(
            hex::encode(Ristretto255::encode(&blinded)),
            "609a0ae68c15a3cf6903766461307e5c8bb2f95e7e6550e1ffa2dc99e412803c"
        );
    }
}
