//! Products of one fixed point with many scalars. Sums stay affine, and the additions for all scalars share one inversion
//! (Montgomery's trick). An addition then takes five multiplications and a square instead of eleven multiplications and more.

use super::{Comb, CombPoint};
use subtle::Choice;
use zeroize::{Zeroizing, optimization_barrier};

/// The field of the coordinates of a curve, in constant time.
pub(crate) trait Coordinate: Copy + 'static {
    const ZERO: Self;
    const ONE: Self;
    fn plus(&self, other: &Self) -> Self;
    fn minus(&self, other: &Self) -> Self;
    fn times(&self, other: &Self) -> Self;
    fn squared(&self) -> Self;
    /// The inverse; zero maps to zero.
    fn inverse(&self) -> Self;
    fn vanishes(&self) -> Choice;
}

/// A point on a curve y^2 = x^3 + a x + b, with access to its coordinates.
pub(crate) trait CoordinatePoint: CombPoint {
    type Coordinate: Coordinate;

    fn coordinates(entry: &Self::Entry) -> Affine<Self::Coordinate>;
    fn from_coordinates(point: &Affine<Self::Coordinate>) -> Self;
    /// 3 x^2 + a, which by 2 y is the slope of the tangent. Here for a = 0.
    fn tangent(x: &Self::Coordinate) -> Self::Coordinate {
        let square = x.squared();
        square.plus(&square).plus(&square)
    }
}

/// A point (x, y) other than the identity.
#[derive(Clone, Copy)]
pub(crate) struct Affine<F> {
    pub(crate) x: F,
    pub(crate) y: F,
}

impl<F: Coordinate> Affine<F> {
    const NOTHING: Self = Self { x: F::ZERO, y: F::ZERO };

    /// The mirrored third point of the line of this slope through this point and one at `x`: the end of addition and doubling.
    fn along(&self, slope: &F, x: &F) -> Self {
        let third = slope.squared().minus(&self.x).minus(x);
        Self { x: third, y: slope.times(&self.x.minus(&third)).minus(&self.y) }
    }
}

/// Two equal or opposite points, or a point of order two, for which the formulas do not hold.
struct Exception;

/// The sums for all scalars so far, what is added to them next, and space for the inversion. All of it is secret.
struct Sums<F: Coordinate> {
    sums: Vec<Affine<F>>,
    addends: Vec<Affine<F>>,
    prefixes: Vec<F>,
}

impl<F: Coordinate> Drop for Sums<F> {
    fn drop(&mut self) {
        self.sums.fill(Affine::NOTHING);
        self.addends.fill(Affine::NOTHING);
        self.prefixes.fill(F::ZERO);
        optimization_barrier(&self.sums);
        optimization_barrier(&self.addends);
        optimization_barrier(&self.prefixes);
    }
}

impl<F: Coordinate> Sums<F> {
    fn new(first: impl ExactSizeIterator<Item = Affine<F>>) -> Self {
        let count = first.len();
        // Sized beforehand: a vector that grows leaves copies of its old contents behind.
        let mut sums = Vec::with_capacity(count);
        sums.extend(first);
        Self { sums, addends: vec![Affine::NOTHING; count], prefixes: vec![F::ZERO; count] }
    }

    /// Inverts the denominators of all slopes at once, then gives each sum and its addend their inverse.
    fn each(
        &mut self,
        denominator: impl Fn(&Affine<F>, &Affine<F>) -> F,
        slope: impl Fn(&Affine<F>, &Affine<F>, &F) -> F,
    ) -> Result<(), Exception> {
        let mut product = F::ONE;
        for ((sum, addend), prefix) in self.sums.iter().zip(&self.addends).zip(&mut self.prefixes) {
            *prefix = product;
            product = product.times(&denominator(sum, addend));
        }
        // For random scalars this is as likely as guessing one of them; nothing else branches on secrets.
        if bool::from(product.vanishes()) {
            return Err(Exception);
        }
        let mut inverse = product.inverse();
        for ((sum, addend), prefix) in self.sums.iter_mut().zip(&self.addends).zip(&self.prefixes).rev() {
            let own = inverse.times(prefix);
            inverse = inverse.times(&denominator(sum, addend));
            *sum = sum.along(&slope(sum, addend, &own), &addend.x);
        }
        Ok(())
    }

    fn double(&mut self, tangent: impl Fn(&F) -> F) -> Result<(), Exception> {
        self.addends.copy_from_slice(&self.sums);
        self.each(|sum, _| sum.y.plus(&sum.y), |sum, _, inverse| tangent(&sum.x).times(inverse))
    }

    fn add(&mut self, addends: impl Iterator<Item = Affine<F>>) -> Result<(), Exception> {
        self.addends.iter_mut().zip(addends).for_each(|(to, from)| *to = from);
        self.each(|sum, addend| addend.x.minus(&sum.x), |sum, addend, inverse| addend.y.minus(&sum.y).times(inverse))
    }
}

impl<P: CoordinatePoint> Comb<P> {
    /// The products with all scalars, in as little as half the time of computing each alone.
    ///
    /// Constant-time for random scalars and for others that no attacker chooses. The formulas have exceptions, which one scalar in
    /// 2^240 meets, zero among them; the products are then computed one by one, which takes longer.
    pub(crate) fn multiply_all(&self, scalars: &[P::Scalar]) -> Vec<P> {
        /// Enough scalars to make the inversion cheap, and few enough for a processor's fastest cache.
        const AT_ONCE: usize = 64;
        let together = |some: &[P::Scalar]| {
            self.multiply_together(some).unwrap_or_else(|Exception| some.iter().map(|one| self.multiply(one)).collect())
        };
        let parts = scalars.len().div_ceil(AT_ONCE).max(1);
        scalars.chunks(scalars.len().div_ceil(parts).max(1)).flat_map(together).collect()
    }

    fn multiply_together(&self, scalars: &[P::Scalar]) -> Result<Vec<P>, Exception> {
        let mut bits = Zeroizing::new(Vec::with_capacity(scalars.len()));
        bits.extend(scalars.iter().map(|scalar| self.recoding.bits::<P>(scalar)));
        let entries =
            |row, position| bits.iter().map(move |bits| P::coordinates(&self.entry(row, position, bits.as_ref())));
        let positions = (0..self.spacing).rev();
        let mut steps = positions.flat_map(|position| self.rows.iter().enumerate().map(move |row| (row, position)));
        // A sum cannot begin with the identity, which is on no line.
        let Some((row, position)) = steps.next() else { return Err(Exception) };
        let mut sums = Sums::new(entries(row, position));
        for (row, position) in steps {
            if row.0 == 0 {
                sums.double(P::tangent)?;
            }
            sums.add(entries(row, position))?;
        }
        Ok(sums.sums.iter().map(P::from_coordinates).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Comb, Size};
    use super::{CoordinatePoint, Exception};
    use crate::bls12_381::{self, BlsScalar};
    use crate::bn254::{self, Bn254Scalar};
    use crate::weierstrass::many::Summand;
    use crate::{Group, Scalar};
    use crate::{P256, P256Element, P256Scalar, Secp256k1, Secp256k1Element, Secp256k1Scalar};
    use blst::{blst_p1, blst_p2};
    use core::fmt::Debug;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    /// Products are right for all sizes of tables, also where a scalar, such as zero, meets an exception.
    fn products_of_many<P: CoordinatePoint<Scalar = S> + PartialEq + Debug, S: Scalar>(generator: &P) {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for size in [Size::Small, Size::Large, Size::Batch] {
            let comb = Comb::new(generator, size);
            let one_by_one = |scalars: &[S]| scalars.iter().map(|scalar| comb.multiply(scalar)).collect::<Vec<P>>();
            for count in [1, 2, 63, 64, 65, 130] {
                let mut scalars: Vec<S> = (0..count).map(|_| S::random(&mut rng)).collect();
                assert_eq!(comb.multiply_all(&scalars), one_by_one(&scalars));
                let Ok(together) = comb.multiply_together(&scalars) else { panic!("random scalars are no exception") };
                assert_eq!(together, one_by_one(&scalars));
                scalars[count / 2] = S::ZERO;
                assert!(matches!(comb.multiply_together(&scalars), Err(Exception)));
                assert_eq!(comb.multiply_all(&scalars), one_by_one(&scalars));
            }
            assert!(comb.multiply_all(&[]).is_empty());
        }
    }

    #[test]
    fn bls12_381() {
        products_of_many::<blst_p1, BlsScalar>(&bls12_381::G1::generator().raw());
        products_of_many::<blst_p2, BlsScalar>(&bls12_381::G2::generator().raw());
    }

    #[test]
    fn with_a() {
        products_of_many::<Summand<P256Element>, P256Scalar>(&Summand(P256::generator()));
        products_of_many::<Summand<Secp256k1Element>, Secp256k1Scalar>(&Summand(Secp256k1::generator()));
    }

    #[test]
    fn bn254() {
        products_of_many::<_, Bn254Scalar>(&bn254::G1::generator());
        products_of_many::<_, Bn254Scalar>(&bn254::G2::generator());
    }
}
