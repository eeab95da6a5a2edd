//! Hashing to the groups: RFC 9380 with the Shallue-van de Woestijne map.

use super::curve::{Affine, Curve, Point};
use super::field::Field;
use halo2curves::bn256::Fq;

/// c1 to c4 of RFC 9380, section 6.6.1, for Z = 1 and A = 0.
pub(super) struct Svdw<F> {
    c1: F,
    c2: F,
    c3: F,
    c4: F,
}

impl<F: Field> Svdw<F> {
    /// The constants of the curve with this B.
    pub(super) fn new(b: F) -> Self {
        let integer = |value: u64| F::from_base(Fq::from_raw([value, 0, 0, 0]));
        let c1 = F::ONE + b;
        let c3 = (-(c1 * integer(3))).sqrt().1;
        Self {
            c1,
            c2: -(integer(2).invert()),
            c3: c3.select(-c3, c3.sgn0()),
            c4: -(c1 * integer(4) * integer(3).invert()),
        }
    }

    /// Maps two field elements to points: section 6.6.1, with one inversion for both.
    fn map<C: Curve<Coordinate = F>>(&self, [u, v]: [F; 2]) -> [Affine<C>; 2] {
        let denominator = |u: F| {
            let t = u.square() * self.c1;
            let product = (F::ONE - t) * (F::ONE + t);
            // inv0 of a zero is zero: the factor is cleared after the shared inversion.
            (product.select(F::ONE, product.is_zero()), product.is_zero())
        };
        let ((d, d_is_zero), (e, e_is_zero)) = (denominator(u), denominator(v));
        let inverse = (d * e).invert();
        [
            self.map_one(u, (inverse * e).select(F::ZERO, d_is_zero)),
            self.map_one(v, (inverse * d).select(F::ZERO, e_is_zero)),
        ]
    }

    /// Maps one field element, given inv0((1 - u^2 c1)(1 + u^2 c1)).
    fn map_one<C: Curve<Coordinate = F>>(&self, u: F, inverse: F) -> Affine<C> {
        let curve = |x: F| x.square() * x + C::B;
        let t1 = u.square() * self.c1;
        let t2 = F::ONE + t1;
        let t4 = u * (F::ONE - t1) * inverse * self.c3;
        let (x1, x2) = (self.c2 - t4, self.c2 + t4);
        let (first, second) = (curve(x1).is_square(), curve(x2).is_square());
        let x3 = (t2.square() * inverse).square() * self.c4 + F::ONE;
        let x = x3.select(x2, second).select(x1, first);
        let y = curve(x).sqrt().1;
        Affine { x, y: y.select(-y, u.sgn0() ^ y.sgn0()) }
    }

    /// Section 3, `hash_to_curve`, from `uniform` bytes and without clearing the cofactor.
    pub(super) fn hash<C: Curve<Coordinate = F>>(&self, uniform: &[u8]) -> Point<C> {
        let (u, v) = uniform.split_at(uniform.len() / 2);
        let [p, q] = self.map([F::from_uniform(u), F::from_uniform(v)]);
        p.to_point().plus_affine(&q)
    }
}
