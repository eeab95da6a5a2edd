//! The common parts of P-256 and secp256k1: prime order, 256 bits, SEC1 encodings. The macro [`group`] wraps crrl's curve.

pub(crate) mod jacobian;
pub(crate) mod many;
pub(crate) mod sswu;

use core::ops::{Add, Mul, Neg, Sub};

/// The field of the coordinates, of a prime size that is 3 modulo 4.
pub(crate) trait Field:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;

    fn double(self) -> Self;
    fn triple(self) -> Self;
    fn square(self) -> Self;
    /// The inverse; zero maps to zero.
    fn invert(self) -> Self;
    /// Inverts all with one inversion (Montgomery's trick); zeros stay zero. The library's own function is slower: it is
    /// constant-time and inverts once for every 200 values.
    fn vartime_batch_invert(values: &mut [Self]) {
        let mut product = Self::ONE;
        let mut prefixes = Vec::with_capacity(values.len());
        for value in values.iter().filter(|value| !value.is_zero()) {
            prefixes.push(product);
            product = product * *value;
        }
        let mut inverse = product.invert();
        for (value, prefix) in values.iter_mut().filter(|value| !value.is_zero()).rev().zip(prefixes.into_iter().rev())
        {
            (*value, inverse) = (inverse * prefix, inverse * *value);
        }
    }
    /// Whether there is a root.
    fn is_square(self) -> bool;
    /// The even root of a square.
    fn sqrt(self) -> Self;
    fn is_zero(self) -> bool;
    /// `sgn0` of RFC 9380, section 4.1.
    fn is_odd(self) -> bool;
    /// `other` if `choice`, otherwise `self`, in constant time.
    fn select(self, other: Self, choice: bool) -> Self;
    /// Becomes `other` where the mask is all ones, and stays where it is zero, in constant time.
    fn set_if(&mut self, other: &Self, mask: u32);
    /// Reduces a little-endian integer of any length.
    fn reduce_le(bytes: &[u8]) -> Self;
}

/// Implements [`Field`] for a type of crrl.
macro_rules! field {
    ($field:ty) => {
        impl $crate::weierstrass::Field for $field {
            const ZERO: Self = <$field>::ZERO;
            const ONE: Self = <$field>::ONE;

            #[inline]
            fn double(self) -> Self {
                self.mul2()
            }
            #[inline]
            fn triple(self) -> Self {
                self.mul3()
            }
            #[inline]
            fn square(self) -> Self {
                <$field>::square(self)
            }
            fn invert(self) -> Self {
                <$field>::ONE / self
            }
            fn is_square(self) -> bool {
                self.legendre() >= 0
            }
            fn sqrt(self) -> Self {
                <$field>::sqrt(self).0
            }
            #[inline]
            fn is_zero(self) -> bool {
                self.iszero() != 0
            }
            fn is_odd(self) -> bool {
                let [lowest, ..] = self.encode();
                lowest & 1 == 1
            }
            fn select(self, other: Self, choice: bool) -> Self {
                <$field>::select(&self, &other, u32::from(choice).wrapping_neg())
            }
            #[inline]
            fn set_if(&mut self, other: &Self, mask: u32) {
                self.set_cond(other, mask);
            }
            fn reduce_le(bytes: &[u8]) -> Self {
                <$field>::decode_reduce(bytes)
            }
        }

        impl $crate::comb::Coordinate for $field {
            const ZERO: Self = <$field>::ZERO;
            const ONE: Self = <$field>::ONE;

            #[inline]
            fn plus(&self, other: &Self) -> Self {
                *self + *other
            }
            #[inline]
            fn minus(&self, other: &Self) -> Self {
                *self - *other
            }
            #[inline]
            fn times(&self, other: &Self) -> Self {
                *self * *other
            }
            #[inline]
            fn squared(&self) -> Self {
                <$field>::square(*self)
            }
            fn inverse(&self) -> Self {
                <$field>::ONE / *self
            }
            fn vanishes(&self) -> subtle::Choice {
                subtle::Choice::from(u8::try_from(self.iszero() & 1).unwrap_or(0))
            }
        }
    };
}

/// Wraps a curve of crrl as a [`crate::Group`]. `Point`, `CrrlScalar`, `Coordinate`, `Shape` and a function `hash` must be in
/// scope.
macro_rules! group {
    ($group:ident, $element:ident, $scalar:ident, $name:literal) => {
        /// An integer modulo the order of the group. Encoded in 32 big-endian bytes.
        #[derive(Clone, Copy)]
        pub struct $scalar(CrrlScalar);

        /// An element of the group, in projective coordinates.
        #[derive(Clone, Copy)]
        pub struct $element(Point);

        impl $group {
            /// The element as SEC1 writes it without compression (section 2.3.3): 4, x, y. `None` for the identity.
            #[must_use]
            pub fn encode_uncompressed(element: &$element) -> Option<[u8; 65]> {
                (!Self::is_identity(element)).then(|| element.0.encode_uncompressed())
            }
        }

        /// One or zero from crrl's masks, which have all bits equal.
        fn choice(mask: u32) -> Choice {
            Choice::from(u8::try_from(mask & 1).unwrap_or(0))
        }

        impl fmt::Debug for $scalar {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex_debug(f, stringify!($scalar), &self.encode())
            }
        }

        impl fmt::Debug for $element {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex_debug(f, stringify!($element), &self.0.encode_compressed())
            }
        }

        impl ConstantTimeEq for $scalar {
            fn ct_eq(&self, other: &Self) -> Choice {
                choice(self.0.equals(other.0))
            }
        }

        impl ConstantTimeEq for $element {
            fn ct_eq(&self, other: &Self) -> Choice {
                choice(self.0.equals(other.0))
            }
        }

        impl PartialEq for $scalar {
            fn eq(&self, other: &Self) -> bool {
                self.ct_eq(other).into()
            }
        }

        impl Eq for $scalar {}

        impl PartialEq for $element {
            fn eq(&self, other: &Self) -> bool {
                self.ct_eq(other).into()
            }
        }

        impl Eq for $element {}

        impl Default for $scalar {
            /// Zero, which wiping leaves.
            fn default() -> Self {
                Self::ZERO
            }
        }

        impl Default for $element {
            /// The identity, which wiping leaves.
            fn default() -> Self {
                Self(Point::NEUTRAL)
            }
        }

        impl DefaultIsZeroes for $scalar {}
        impl DefaultIsZeroes for $element {}

        impl Add for $scalar {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for $scalar {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl Mul for $scalar {
            type Output = Self;
            fn mul(self, other: Self) -> Self {
                Self(self.0 * other.0)
            }
        }

        impl Neg for $scalar {
            type Output = Self;
            fn neg(self) -> Self {
                Self(-self.0)
            }
        }

        impl AddAssign for $scalar {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Sum for $scalar {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self::ZERO, Add::add)
            }
        }

        impl Scalar for $scalar {
            type Encoding = [u8; 32];
            type Addend = Self;
            const ENCODED_LEN: usize = 32;
            const ZERO: Self = Self(CrrlScalar::ZERO);
            const ONE: Self = Self(CrrlScalar::ONE);

            fn from_u64(value: u64) -> Self {
                Self(CrrlScalar::from_u64(value))
            }

            fn from_u128(value: u128) -> Self {
                Self(CrrlScalar::from_u128(value))
            }

            fn random(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
                let mut bytes = Zeroizing::new([0; 64]);
                rng.fill_bytes(bytes.as_mut());
                Self(CrrlScalar::decode_reduce(bytes.as_ref()))
            }

            /// Big-endian, as RFC 9380 and SEC1 read their hashes.
            fn from_uniform_bytes(bytes: &[u8]) -> Self {
                let reversed = Zeroizing::new(bytes.iter().rev().copied().collect::<Vec<u8>>());
                Self(CrrlScalar::decode_reduce(&reversed))
            }

            fn invert(&self) -> Self {
                // The library's division by zero is zero.
                Self(CrrlScalar::ONE / self.0)
            }

            fn encode(&self) -> [u8; 32] {
                let mut bytes = self.0.encode();
                bytes.reverse();
                bytes
            }

            fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
                let mut bytes: Zeroizing<[u8; 32]> = Zeroizing::new(
                    bytes.try_into().map_err(|_| DecodeError::Length { expected: 32, got: bytes.len() })?,
                );
                bytes.reverse();
                let (scalar, canonical) = CrrlScalar::decode32(bytes.as_ref());
                if canonical == 0 { Err(DecodeError::NotCanonical) } else { Ok(Self(scalar)) }
            }
        }

        impl Add for $element {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for $element {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl Neg for $element {
            type Output = Self;
            fn neg(self) -> Self {
                Self(-self.0)
            }
        }

        impl Mul<$scalar> for $element {
            type Output = Self;
            /// In constant time. The library's own product is not, as it is compiled: whether a digit is zero decides what is read of its tables.
            fn mul(self, scalar: $scalar) -> Self {
                multiples().sum(&[scalar], &[self])
            }
        }

        impl Sum for $element {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self::default(), Add::add)
            }
        }

        /// What makes multiples of any elements in constant time.
        fn multiples() -> &'static Multiples<$element> {
            static MULTIPLES: OnceLock<Multiples<$element>> = OnceLock::new();
            MULTIPLES.get_or_init(Multiples::new)
        }

        /// Points in the coordinates in which variable-time sums are cheapest.
        fn jacobian(points: &[$element]) -> Vec<Jacobian<Shape>> {
            let convert = |point: &$element| {
                let (x, y, z) = point.0.to_projective();
                Jacobian::from_projective(x, y, z)
            };
            points.iter().map(convert).collect()
        }

        /// Converts back. The library checks the curve's equation, which every sum fulfils.
        fn element(sum: Jacobian<Shape>) -> $element {
            let (x, y, z) = sum.to_projective();
            $element(Point::from_projective(x, y, z).unwrap_or(Point::NEUTRAL))
        }

        impl CombPoint for $element {
            type Scalar = $scalar;
            type Entry = Self;
            const ORDER_BITS: usize = 256;

            fn identity() -> Self {
                Self(Point::NEUTRAL)
            }

            fn double(&self) -> Self {
                Self(self.0.double())
            }

            fn plus(&self, other: &Self) -> Self {
                *self + *other
            }

            fn negated(&self) -> Self {
                -*self
            }

            fn doubled(&self, times: usize) -> Self {
                Self(self.0.xdouble(u32::try_from(times).unwrap_or(0)))
            }

            /// The library does not offer its mixed additions, which save little.
            fn to_entries(points: &[Self]) -> Vec<Self> {
                points.to_vec()
            }

            fn select(row: &[Self; ENTRIES], index: u8, negative: Choice) -> Self {
                let mut selected = Point::NEUTRAL;
                for (entry, mask) in row.iter().zip(comb::masks(index)) {
                    // The library's masks are half as long.
                    selected.set_cond(&entry.0, u32::try_from(mask >> 32).unwrap_or(0));
                }
                selected.set_condneg(u32::from(negative.unwrap_u8()).wrapping_neg());
                Self(selected)
            }

            fn plus_entry(&self, entry: &Self) -> Self {
                *self + *entry
            }

            fn little_endian(scalar: &$scalar) -> [u8; 32] {
                scalar.0.encode()
            }
        }

        impl WithCoordinates for $element {
            type Shape = Shape;

            fn to_projective(&self) -> [Coordinate; 3] {
                let (x, y, z) = self.0.to_projective();
                [x, y, z]
            }

            fn from_affine(x: Coordinate, y: Coordinate) -> Self {
                Self(Point::from_affine(x, y).unwrap_or(Point::NEUTRAL))
            }
        }

        /// Secret scalars are multiplied by code of ours, the library's being the other implementation.
        #[test]
        fn products_are_those_of_the_library() {
            let other = $element(Point::BASE * $scalar::from_u64(7).invert().0);
            for scalar in &comb::tests::scalars::<$scalar>() {
                assert_eq!($group::mul_base(scalar), $element(Point::mulgen(&scalar.0)), "{scalar:?}");
                assert_eq!(other * *scalar, $element(other.0 * scalar.0), "{scalar:?}");
                assert!($group::is_identity(&($group::identity() * *scalar)));
            }
        }

        impl Group for $group {
            type Scalar = $scalar;
            type Element = $element;
            type Encoding = [u8; 33];

            const HAS_COFACTOR: bool = false;
            const TABLE_COST: u32 = 3;
            const NAME: &'static str = $name;
            const ENCODED_LEN: usize = 33;

            fn identity() -> $element {
                $element(Point::NEUTRAL)
            }

            fn generator() -> $element {
                $element(Point::BASE)
            }

            /// By a comb, for the reason of products with other elements.
            fn mul_base(scalar: &$scalar) -> $element {
                static COMB: OnceLock<Comb<$element>> = OnceLock::new();
                COMB.get_or_init(|| Comb::new(&Self::generator(), comb::Size::Large)).multiply(scalar)
            }

            fn mul_base_batch(scalars: &[$scalar]) -> Vec<$element> {
                static COMB: OnceLock<Comb<Summand<$element>>> = OnceLock::new();
                many::multiply_all(|| COMB.get_or_init(|| many::comb(Self::generator())), scalars, Self::mul_base)
            }

            fn table(element: &$element) -> Table<Self> {
                let comb = Comb::new(element, comb::Size::Small);
                Box::new(move |scalar| comb.multiply(scalar))
            }

            fn msm(scalars: &[$scalar], points: &[$element]) -> $element {
                multiples().sum(scalars, points)
            }

            fn vartime_msm(scalars: &[$scalar], points: &[$element]) -> $element {
                let scalars: Vec<[u8; 32]> = scalars.iter().map(|scalar| scalar.0.encode()).collect();
                element(msm::vartime_msm(&scalars, &jacobian(points)))
            }

            fn vartime_msm_short(scalars: &[u128], points: &[$element]) -> $element {
                element(msm::vartime_msm_short(scalars, &jacobian(points)))
            }

            fn vartime_double_mul(base_scalar: &$scalar, element: &$element, scalar: &$scalar) -> $element {
                $element(element.0.mul_add_mulgen_vartime(&scalar.0, &base_scalar.0))
            }

            /// By the library, whose products are faster than ours and not constant-time, as they are compiled.
            fn vartime_mul(element: &$element, scalar: &$scalar) -> $element {
                $element(element.0 * scalar.0)
            }

            fn hash_to_group(dst: &[u8], message: &[&[u8]]) -> $element {
                $element(hash(dst, message))
            }

            /// SEC1, section 2.3.3, compressed; the identity, which has no encoding of this length, as 33 zeros.
            fn encode(element: &$element) -> [u8; 33] {
                element.0.encode_compressed()
            }

            fn encode_batch(elements: &[$element]) -> Vec<[u8; 33]> {
                let coordinates: Vec<_> = elements.iter().map(|element| element.0.to_projective()).collect();
                let mut inverses: Vec<Coordinate> = coordinates.iter().map(|(_, _, z)| *z).collect();
                Coordinate::batch_invert(&mut inverses);
                let encode = |((x, y, z), inverse): (&(Coordinate, Coordinate, Coordinate), Coordinate)| {
                    let (mut x, [y, ..]) = ((*x * inverse).encode(), (*y * inverse).encode());
                    x.reverse();
                    let mut bytes = [0; 33];
                    let (sign, rest) = bytes.split_at_mut(1);
                    sign.fill((2 | y & 1) * (1 - choice(z.iszero()).unwrap_u8()));
                    rest.copy_from_slice(&x);
                    bytes
                };
                coordinates.iter().zip(inverses).map(encode).collect()
            }

            fn decode_allowing_identity(bytes: &[u8]) -> Result<$element, DecodeError> {
                if bytes.len() != Self::ENCODED_LEN {
                    return Err(DecodeError::Length { expected: Self::ENCODED_LEN, got: bytes.len() });
                }
                if bytes.iter().all(|byte| *byte == 0) {
                    return Ok(Self::identity());
                }
                // At this length the library accepts compressed points only, with reduced coordinates.
                Point::decode(bytes).map($element).ok_or(DecodeError::NotCanonical)
            }
        }
    };
}

pub(crate) use {field, group};
