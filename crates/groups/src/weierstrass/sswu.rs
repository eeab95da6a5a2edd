//! Hashing to a curve y^2 = x^3 + A x + B by the simplified map of Shallue, van de Woestijne and Ulas: RFC 9380,
//! section 6.6.2, for a prime field of size 3 modulo 4. The time depends on the length of the message alone.

use super::Field;
use crate::expand::expand_message_xmd;
use sha2::Sha256;

/// The curve of the map, with the map's constant.
pub(crate) struct Sswu<F> {
    pub(crate) a: F,
    pub(crate) b: F,
    /// Z: not a square, such that g(B / (Z A)) is a square.
    pub(crate) z: F,
}

/// Bytes for one field element: L of RFC 9380, section 5.1, for 256-bit primes and 128 bits of security.
const L: usize = 48;

/// RFC 9380, section 5.2, `hash_to_field` with count = 2.
pub(crate) fn hash_to_field<F: Field>(dst: &[u8], message: &[&[u8]]) -> [F; 2] {
    let mut uniform = expand_message_xmd::<Sha256, { 2 * L }>(dst, message);
    // Reversed, the second element's little-endian bytes come first.
    uniform.reverse();
    let (second, first) = uniform.split_at(L);
    [F::reduce_le(first), F::reduce_le(second)]
}

impl<F: Field> Sswu<F> {
    /// A point (x, y) of the curve from any field element.
    pub(crate) fn map(&self, u: F) -> (F, F) {
        let zuu = self.z * u.square();
        let tail = zuu.square() + zuu;
        let regular = -self.b * (tail + F::ONE) * (self.a * tail).invert();
        let x1 = regular.select(self.b * (self.z * self.a).invert(), tail.is_zero());
        let g1 = (x1.square() + self.a) * x1 + self.b;
        // g(x2) with x2 = Z u^2 x1 is (Z u^2)^3 g(x1); exactly one of both is a square, or both are zero.
        let g2 = zuu * zuu.square() * g1;
        let second = !g1.is_square();
        let x = x1.select(zuu * x1, second);
        let y = g1.select(g2, second).sqrt();
        (x, y.select(-y, y.is_odd() != u.is_odd()))
    }
}

/// A rational map from one curve to another: x' = x_num(x) / x_den(x), y' = y y_num(x) / y_den(x); coefficients from
/// the lowest on.
pub(crate) struct Isogeny<F: 'static> {
    pub(crate) x_num: &'static [F],
    pub(crate) x_den: &'static [F],
    pub(crate) y_num: &'static [F],
    pub(crate) y_den: &'static [F],
}

impl<F: Field> Isogeny<F> {
    /// Homogeneous coordinates of the image; all zeros of a denominator go to the identity (RFC 9380, section 6.6.3).
    pub(crate) fn map(&self, (x, y): (F, F)) -> (F, F, F) {
        let evaluate = |coefficients: &[F]| coefficients.iter().rev().fold(F::ZERO, |sum, c| sum * x + *c);
        let (x_den, y_den) = (evaluate(self.x_den), evaluate(self.y_den));
        (evaluate(self.x_num) * y_den, y * evaluate(self.y_num) * x_den, x_den * y_den)
    }
}
