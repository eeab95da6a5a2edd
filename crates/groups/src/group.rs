//! The traits of scalars, groups and pairings.

use core::fmt::Debug;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Neg, Sub};
use rand_core::CryptoRng;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// Why bytes from outside are not a group element or a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are too few or too many bytes.
    #[error("wrong length: expected {expected} bytes, got {got}")]
    Length {
        /// The length of an encoding, in bytes.
        expected: usize,
        /// How many bytes there were.
        got: usize,
    },
    /// The bytes are no canonical encoding: unreduced, with a bad flag, or not on the curve.
    #[error("not a canonical encoding")]
    NotCanonical,
    /// The point is on the curve but outside the subgroup of prime order.
    #[error("outside the prime-order subgroup")]
    Subgroup,
    /// The neutral element is not allowed here.
    #[error("the identity element is not allowed here")]
    Identity,
}

/// An element of the field Z_q, q the prime order of a group. Arithmetic is constant-time.
///
/// Scalars are `Copy` because most are public (challenges, responses, Lagrange coefficients); a secret one lives in a
/// [`crate::Secret`].
pub trait Scalar:
    Copy
    + Debug
    + Eq
    + ConstantTimeEq
    + Zeroize
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + Sum
{
    /// A fixed-size byte array, in the byte order of the curve's standard.
    type Encoding: AsRef<[u8]> + Copy + Send + Sync + Zeroize;
    /// The form in which long sums are cheapest: the scalar itself, unless its crate adds slowly. Constant-time, too.
    type Addend: Copy
        + AddAssign
        + Sub<Output = Self::Addend>
        + From<Self>
        + Into<Self>
        + Zeroize
        + Send
        + Sync
        + 'static;
    /// Length of the canonical encoding in bytes.
    const ENCODED_LEN: usize;
    /// The neutral element of addition.
    const ZERO: Self;
    /// The neutral element of multiplication.
    const ONE: Self;

    /// A small integer.
    fn from_u64(value: u64) -> Self;
    /// A 128-bit integer, as used for the random weights of batch verification.
    fn from_u128(value: u128) -> Self;
    /// Uniform in Z_q.
    fn random(rng: &mut (impl CryptoRng + ?Sized)) -> Self;
    /// How many uniform bytes [`Scalar::from_uniform_bytes`] takes at least, so that its bias stays below 2^-128.
    const UNIFORM_LEN: usize = 64;
    /// Reduces `bytes`, read in the curve's byte order, modulo q. The result is uniform if the bytes are and there are
    /// [`Scalar::UNIFORM_LEN`] of them or more; any number up to 128 is reduced correctly.
    fn from_uniform_bytes(bytes: &[u8]) -> Self;
    /// The multiplicative inverse in constant time; zero maps to zero.
    fn invert(&self) -> Self;
    /// Inverts all public values with one inversion (Montgomery's trick); zeros stay zero.
    fn vartime_batch_invert(values: &mut [Self]) {
        let mut product = Self::ONE;
        let mut prefixes = Vec::with_capacity(values.len());
        for value in values.iter().filter(|value| **value != Self::ZERO) {
            prefixes.push(product);
            product = product * *value;
        }
        let mut inverse = product.invert();
        for value in values.iter_mut().rev().filter(|value| **value != Self::ZERO) {
            let prefix = prefixes.pop().unwrap_or(Self::ONE);
            (*value, inverse) = (inverse * prefix, inverse * *value);
        }
    }
    /// The canonical encoding.
    fn encode(&self) -> Self::Encoding;
    /// The inverse of [`Scalar::encode`].
    ///
    /// # Errors
    /// [`DecodeError::Length`], or [`DecodeError::NotCanonical`] for a value of q or more.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError>;
}

/// A function that multiplies one element by scalars in constant time, from a table of its multiples: see [`Group::table`].
pub type Table<G> = Box<dyn Fn(&<G as Group>::Scalar) -> <G as Group>::Element + Send + Sync>;

/// A group of prime order q in which discrete logarithms are hard.
///
/// Operators and methods are constant-time unless their name begins with `vartime_`; those take public data only.
pub trait Group: Copy + Debug + Eq + Send + Sync + 'static {
    /// Z_q.
    type Scalar: Scalar;
    /// A group element. It is always in the prime-order group, except after [`Group::decode_unchecked_subgroup`].
    type Element: Copy
        + Debug
        + Eq
        + ConstantTimeEq
        + Zeroize
        + Send
        + Sync
        + 'static
        + Add<Output = Self::Element>
        + Sub<Output = Self::Element>
        + Neg<Output = Self::Element>
        + Mul<Self::Scalar, Output = Self::Element>
        + Sum;
    /// A fixed-size byte array; it can be made from a slice of its length, whose contents are not checked.
    type Encoding: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]> + Copy + Debug + Eq + Send + Sync + 'static;

    /// Whether the curve has points outside the group, so that decoding has to check membership, which can cost about as much as
    /// a multiplication.
    const HAS_COFACTOR: bool;
    /// Whether it takes less to compute the commitments of a proof and to compare their bytes than to decode them for a sum with those
    /// of others: where membership in the subgroup is dear to check, and multiplications are cheap.
    const COMPARES_COMMITMENTS: bool = false;
    /// How many multiplications take about as long as making a table.
    const TABLE_COST: u32;
    /// The group's name in texts and in names of suites, such as `ristretto255`.
    const NAME: &'static str;
    /// Length of an encoded element in bytes.
    const ENCODED_LEN: usize;

    /// The neutral element.
    fn identity() -> Self::Element;
    /// The standard generator g.
    fn generator() -> Self::Element;
    /// g * scalar, from precomputed tables.
    fn mul_base(scalar: &Self::Scalar) -> Self::Element;
    /// g * scalar for many scalars; faster than one by one where additions can share inversions.
    ///
    /// Constant-time for random scalars, as keys and nonces are. A batch with a scalar that was chosen to be an exception of the
    /// formulas, such as zero, may take longer.
    fn mul_base_batch(scalars: &[Self::Scalar]) -> Vec<Self::Element> {
        scalars.iter().map(Self::mul_base).collect()
    }
    /// Makes a table of a public element other than the identity, 8 to 30 KiB, with which products with secret scalars are two to
    /// three times as fast. [`crate::FixedBase`] decides when that pays.
    fn table(element: &Self::Element) -> Table<Self>;
    /// Sum of points\[i\] * scalars\[i\], for secret scalars and public points. Extra entries of the longer slice are ignored.
    fn msm(scalars: &[Self::Scalar], points: &[Self::Element]) -> Self::Element {
        scalars.iter().zip(points).map(|(scalar, point)| *point * *scalar).sum()
    }
    /// Sum of points\[i\] * scalars\[i\], for public data. Extra entries of the longer slice are ignored.
    fn vartime_msm(scalars: &[Self::Scalar], points: &[Self::Element]) -> Self::Element;
    /// As [`Group::vartime_msm`] with scalars of at most 128 bits: about half the cost, and less for shorter ones.
    fn vartime_msm_short(scalars: &[u128], points: &[Self::Element]) -> Self::Element;
    /// g * base_scalar + element * scalar, for public data: the equation of Schnorr signatures.
    fn vartime_double_mul(base_scalar: &Self::Scalar, element: &Self::Element, scalar: &Self::Scalar) -> Self::Element {
        Self::vartime_msm(&[*base_scalar, *scalar], &[Self::generator(), *element])
    }
    /// element * scalar, for public data.
    fn vartime_mul(element: &Self::Element, scalar: &Self::Scalar) -> Self::Element {
        Self::vartime_double_mul(&Self::Scalar::ZERO, element, scalar)
    }
    /// A uniform element whose discrete logarithm nobody knows: RFC 9380 `hash_to_curve` (for ristretto255
    /// `hash_to_ristretto255`, RFC 9380 appendix B) with the suite's expand_message. `message` parts are concatenated.
    fn hash_to_group(dst: &[u8], message: &[&[u8]]) -> Self::Element;
    /// The canonical encoding.
    fn encode(element: &Self::Element) -> Self::Encoding;
    /// Encodes many elements, sharing the field inversions.
    fn encode_batch(elements: &[Self::Element]) -> Vec<Self::Encoding>;
    /// Parses one element, allowing the identity.
    ///
    /// # Errors
    /// Every [`DecodeError`] but [`DecodeError::Identity`].
    fn decode_allowing_identity(bytes: &[u8]) -> Result<Self::Element, DecodeError>;

    /// Parses one element other than the identity. Almost every scheme needs this one.
    ///
    /// # Errors
    /// Any [`DecodeError`].
    fn decode(bytes: &[u8]) -> Result<Self::Element, DecodeError> {
        let element = Self::decode_allowing_identity(bytes)?;
        if Self::is_identity(&element) { Err(DecodeError::Identity) } else { Ok(element) }
    }

    /// Parses an element for optimistic combination: it is on the curve, but membership in the prime-order subgroup is not checked
    /// where that check is expensive. The result may only enter a sum that is checked itself, with [`Group::is_in_subgroup`] and
    /// then for being right, because a point of small order changes the sum. Groups with cheap checks do the full [`Group::decode`].
    ///
    /// # Errors
    /// Any [`DecodeError`].
    fn decode_unchecked_subgroup(bytes: &[u8]) -> Result<Self::Element, DecodeError> {
        Self::decode(bytes)
    }

    /// Whether the element is in the prime-order subgroup; only elements from [`Group::decode_unchecked_subgroup`]
    /// and sums of them can fail this.
    fn is_in_subgroup(_element: &Self::Element) -> bool {
        true
    }

    /// Whether this is the neutral element.
    fn is_identity(element: &Self::Element) -> bool {
        bool::from(element.ct_eq(&Self::identity()))
    }
}

/// The arguments of a pairing: an element of each group.
pub type PairOf<P> = (<<P as Pairing>::G1 as Group>::Element, <<P as Pairing>::G2 as Group>::Element);

/// Two groups of the same prime order with a pairing e: G1 x G2 -> GT (type 3: no efficient map between G1 and G2).
pub trait Pairing: Copy + Debug + Eq + Send + Sync + 'static {
    /// Z_q, shared by both groups.
    type Scalar: Scalar;
    /// The group with the shorter encoding.
    type G1: Group<Scalar = Self::Scalar>;
    /// The group with the longer encoding.
    type G2: Group<Scalar = Self::Scalar>;

    /// Whether the product of e(P_i, Q_i) is one: one multi-Miller loop, one final exponentiation. Public data only.
    fn vartime_product_is_one(pairs: &[PairOf<Self>]) -> bool;
}
