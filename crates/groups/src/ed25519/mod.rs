//! The prime-order group of Ed25519 (RFC 8032): the points of edwards25519 that its generator generates.
//!
//! The curve has eight times as many points as the group. Decoding refuses points outside the group, except in
//! `decode_unchecked_subgroup`.

mod subgroup;

use self::subgroup::vartime_is_in_subgroup;
use crate::expand::hash_oversize_tag;
use crate::ristretto::{are_short, vartime_double_and_add};
use crate::{DecodeError, Group, RistrettoScalar, Table, bit_length, hex_debug};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, Mul, Neg, Sub};
use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsBasepointTable, EdwardsPoint};
use curve25519_dalek::scalar::Scalar as DalekScalar;
use curve25519_dalek::traits::{BasepointTable, Identity, IsIdentity, VartimeMultiscalarMul};
use sha2::Sha512;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroize;

/// The group of Ed25519, of order 2^252 + 27742317777372353535851937790883648493.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ed25519;

/// An integer modulo the order of Ed25519's group: ristretto255 has the same order.
pub type Ed25519Scalar = RistrettoScalar;

/// An element of Ed25519's group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ed25519Element(EdwardsPoint);

impl fmt::Debug for Ed25519Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex_debug(f, "Ed25519Element", self.0.compress().as_bytes())
    }
}

impl ConstantTimeEq for Ed25519Element {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl Zeroize for Ed25519Element {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl Add for Ed25519Element {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Ed25519Element {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for Ed25519Element {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Mul<Ed25519Scalar> for Ed25519Element {
    type Output = Self;
    fn mul(self, scalar: Ed25519Scalar) -> Self {
        Self(self.0 * scalar.0)
    }
}

impl Sum for Ed25519Element {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(EdwardsPoint::identity()), Add::add)
    }
}

/// Multi-scalar multiplication over the shorter of the two lists.
fn msm(scalars: impl ExactSizeIterator<Item = DalekScalar>, points: &[Ed25519Element]) -> Ed25519Element {
    let n = scalars.len().min(points.len());
    Ed25519Element(EdwardsPoint::vartime_multiscalar_mul(scalars.take(n), points.iter().take(n).map(|point| point.0)))
}

/// Parses any point of the curve as RFC 8032, section 5.1.3, does. The library itself takes two more kinds of bytes:
/// y of p or more, and x = 0 with its sign set.
fn decompress(bytes: &[u8]) -> Result<Ed25519Element, DecodeError> {
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| DecodeError::Length { expected: 32, got: bytes.len() })?;
    let [lowest, middle @ .., highest] = bytes;
    let (sign, highest) = (highest >> 7, highest & 0x7f);
    // p is 2^255 - 19: seven bits, then bytes of ones, then 0xed.
    if highest == 0x7f && middle == [0xff; 30] && lowest >= 0xed {
        return Err(DecodeError::NotCanonical);
    }
    let point = CompressedEdwardsY(bytes).decompress().ok_or(DecodeError::NotCanonical)?;
    // The points with x = 0 are those of order 1 and 2.
    if sign == 1 && (point + point).is_identity() {
        return Err(DecodeError::NotCanonical);
    }
    Ok(Ed25519Element(point))
}

impl Group for Ed25519 {
    type Scalar = Ed25519Scalar;
    type Element = Ed25519Element;
    type Encoding = [u8; 32];

    const HAS_COFACTOR: bool = true;
    const COMPARES_COMMITMENTS: bool = true;
    // The library inverts a field element for each of 256 entries.
    const TABLE_COST: u32 = 32;
    const NAME: &'static str = "ed25519";
    const ENCODED_LEN: usize = 32;

    fn identity() -> Ed25519Element {
        Ed25519Element(EdwardsPoint::identity())
    }

    fn generator() -> Ed25519Element {
        Ed25519Element(ED25519_BASEPOINT_POINT)
    }

    fn mul_base(scalar: &Ed25519Scalar) -> Ed25519Element {
        Ed25519Element(EdwardsPoint::mul_base(&scalar.0))
    }

    fn table(element: &Ed25519Element) -> Table<Self> {
        let table = Box::new(EdwardsBasepointTable::create(&element.0));
        Box::new(move |scalar| Ed25519Element(&*table * &scalar.0))
    }

    fn vartime_msm(scalars: &[Ed25519Scalar], points: &[Ed25519Element]) -> Ed25519Element {
        msm(scalars.iter().map(|scalar| scalar.0), points)
    }

    fn vartime_msm_short(scalars: &[u128], points: &[Ed25519Element]) -> Ed25519Element {
        let n = scalars.len().min(points.len());
        let bits = bit_length(scalars.iter().take(n));
        if are_short(bits, n) {
            vartime_double_and_add::<Self>(bits, scalars, points)
        } else {
            msm(scalars.iter().map(|&scalar| DalekScalar::from(scalar)), points)
        }
    }

    fn vartime_double_mul(
        base_scalar: &Ed25519Scalar,
        element: &Ed25519Element,
        scalar: &Ed25519Scalar,
    ) -> Ed25519Element {
        Ed25519Element(EdwardsPoint::vartime_double_scalar_mul_basepoint(&scalar.0, &element.0, &base_scalar.0))
    }

    /// The suite edwards25519_XMD:SHA-512_ELL2_RO_ of RFC 9380.
    fn hash_to_group(dst: &[u8], message: &[&[u8]]) -> Ed25519Element {
        // The library takes tags of 1 to 255 bytes only. The RFC forbids empty ones; here they are hashed like long
        // ones rather than stop the program.
        let hashed;
        let dst = if (1..=255).contains(&dst.len()) {
            dst
        } else {
            hashed = hash_oversize_tag::<Sha512>(dst);
            &hashed
        };
        Ed25519Element(EdwardsPoint::hash_to_curve::<Sha512>(message, &[dst]))
    }

    fn encode(element: &Ed25519Element) -> [u8; 32] {
        element.0.compress().to_bytes()
    }

    fn encode_batch(elements: &[Ed25519Element]) -> Vec<[u8; 32]> {
        let points: Vec<_> = elements.iter().map(|element| element.0).collect();
        EdwardsPoint::compress_batch_alloc(&points).iter().map(CompressedEdwardsY::to_bytes).collect()
    }

    fn decode_allowing_identity(bytes: &[u8]) -> Result<Ed25519Element, DecodeError> {
        let element = decompress(bytes)?;
        if Self::is_in_subgroup(&element) { Ok(element) } else { Err(DecodeError::Subgroup) }
    }

    fn decode_unchecked_subgroup(bytes: &[u8]) -> Result<Ed25519Element, DecodeError> {
        let element = decompress(bytes)?;
        if Self::is_identity(&element) { Err(DecodeError::Identity) } else { Ok(element) }
    }

    /// See `subgroup`: a third of the time of a multiplication by the order.
    fn is_in_subgroup(element: &Ed25519Element) -> bool {
        // Adding the point (i, 0) of order four turns (x, y) into (i y, i x): so the library shows the other coordinate.
        let [_, _, quarter, ..] = EIGHT_TORSION;
        let [y, ix] = EdwardsPoint::compress_batch(&[element.0, element.0 + quarter]).map(|compressed| {
            let mut bytes = compressed.to_bytes();
            let [.., highest] = &mut bytes;
            *highest &= 0x7f;
            bytes
        });
        vartime_is_in_subgroup(&y, &ix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scalar;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    /// Points of all eight cosets of the group; multiplying by the order gives the expected answers.
    #[test]
    fn points_of_the_subgroup_are_told_from_all_others() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut elements = vec![Ed25519::identity(), Ed25519::generator(), -Ed25519::generator()];
        elements.extend((0..200).map(|_| Ed25519::mul_base(&Ed25519Scalar::random(&mut rng))));
        elements.extend((1..50).map(|i| Ed25519::mul_base(&Ed25519Scalar::from_u64(i))));
        for element in elements {
            for (i, torsion) in EIGHT_TORSION.into_iter().enumerate() {
                let point = Ed25519Element(element.0 + torsion);
                assert_eq!(Ed25519::is_in_subgroup(&point), i == 0, "{point:?}, torsion {i}");
                assert_eq!(point.0.is_torsion_free(), i == 0);
            }
        }
    }

    /// Random points of the curve, most of them outside the group.
    #[test]
    fn random_points_are_judged_as_by_the_order() {
        let mut found = [0, 0];
        for y in 0..2000_u64 {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&y.to_le_bytes());
            if let Ok(point) = decompress(&bytes) {
                let inside = point.0.is_torsion_free();
                assert_eq!(Ed25519::is_in_subgroup(&point), inside, "y = {y}");
                found[usize::from(inside)] += 1;
            }
        }
        assert!(found[0] > 700 && found[1] > 80, "{found:?}");
    }
}
