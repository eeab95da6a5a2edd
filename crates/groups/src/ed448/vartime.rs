//! Sums of products of public points, in variable time.

use super::Ed448Scalar;
use super::point::{Addend, Affine, Point};
use crate::Scalar;
use crate::msm::{Costs, VartimePoint, non_adjacent_form};
use crrl::field::GF448;
use std::sync::OnceLock;

/// -1 / d.
const INVERSE: GF448 = GF448::w64be([
    0xd78b_4bdc_7f0d_af19,
    0xf24f_38c2_9373_a2cc,
    0xad46_1572_42a5_0f37,
    0x809b_1da3_412a_12e7,
    0x9ccc_9c81_264c_fe9a,
    0xd080_9970_58fb_61c4,
    0x243c_c32d_baa1_56b8,
]);

/// The number of points from which a shared inversion pays.
const INVERT_FROM: usize = 50;

/// A point to be added: affine if that needs no inversion or the inversion pays.
#[derive(Clone, Copy)]
pub(super) enum Term {
    Affine(Affine),
    Projective(Addend),
}

impl Term {
    fn new(point: &Point) -> Self {
        let addend = point.to_addend();
        if addend.z.equals(GF448::ONE) != 0 { Self::Affine(addend.affine) } else { Self::Projective(addend) }
    }

    fn to_point(self) -> Point {
        match self {
            Self::Affine(Affine { x, y, .. }) => Point::from_affine(x, y),
            Self::Projective(Addend { affine: Affine { x, y, minus_dt }, z }) => {
                Point { x, y, z, t: minus_dt, u: INVERSE }
            }
        }
    }
}

impl Point {
    fn add_term(&mut self, term: &Term) {
        match term {
            Term::Affine(affine) => self.add_affine_assign(affine),
            Term::Projective(addend) => self.add_addend_assign(addend),
        }
    }
}

impl VartimePoint for Point {
    type Affine = Term;
    // Measured.
    const COSTS: Costs = Costs { in_batch: 10, double: 7, add: 10, entry: 16 };

    fn identity() -> Self {
        Self::NEUTRAL
    }

    fn double(&self) -> Self {
        let mut double = *self;
        double.double_assign();
        double
    }

    fn add(&self, other: &Self) -> Self {
        let mut sum = *self;
        sum.add_assign(other);
        sum
    }

    fn add_affine(&self, other: &Term) -> Self {
        self.add_all(&[*other])
    }

    fn add_all(&self, others: &[Term]) -> Self {
        let mut sum = *self;
        others.iter().for_each(|other| sum.add_term(other));
        sum
    }

    fn negate_affine(term: &Term) -> Term {
        let negate = |affine: &Affine| Affine { x: -affine.x, y: affine.y, minus_dt: -affine.minus_dt };
        match term {
            Term::Affine(affine) => Term::Affine(negate(affine)),
            Term::Projective(Addend { affine, z }) => Term::Projective(Addend { affine: negate(affine), z: *z }),
        }
    }

    fn batch_to_affine(points: &[Self]) -> Vec<Term> {
        if points.len() < INVERT_FROM {
            return points.iter().map(Term::new).collect();
        }
        Self::batch_coordinates(points).map(|(x, y)| Term::Affine(Affine::new(x, y))).collect()
    }

    /// The sums are not affine: they are entries of tables, which are used too seldom to pay for the multiplications.
    fn batch_add(left: &[Term], right: &[Term]) -> Vec<Term> {
        let sum = |(left, right): (&Term, &Term)| {
            let mut sum = left.to_point();
            sum.add_term(right);
            Term::new(&sum)
        };
        left.iter().zip(right).map(sum).collect()
    }
}

/// Width of the generator's digits, whose odd multiples are made once.
const GENERATOR_WIDTH: usize = 8;
/// Width of another point's digits.
const WIDTH: usize = 5;

/// P, 3 P, 5 P, ... as many as digits of that width need.
fn odd_multiples(point: &Point, width: usize) -> Vec<Point> {
    let (mut multiple, mut twice) = (*point, *point);
    twice.double_assign();
    let twice = twice.to_addend();
    let mut multiples = vec![multiple];
    for _ in 1..1 << (width - 2) {
        multiple.add_addend_assign(&twice);
        multiples.push(multiple);
    }
    multiples
}

/// Adds the multiple by a digit.
fn add_digit(sum: &mut Point, table: &[Term], digit: i8) {
    match table.get(usize::from(digit.unsigned_abs() / 2)) {
        Some(term) if digit > 0 => sum.add_term(term),
        Some(term) if digit < 0 => sum.add_term(&Point::negate_affine(term)),
        _ => {}
    }
}

/// The generator times one scalar plus a point times another, sharing the doublings.
pub(super) fn double_mul(base_scalar: &Ed448Scalar, point: &Point, scalar: &Ed448Scalar) -> Point {
    static GENERATOR: OnceLock<Vec<Term>> = OnceLock::new();
    let generator = GENERATOR.get_or_init(|| {
        let multiples = odd_multiples(&Point::GENERATOR, GENERATOR_WIDTH);
        Point::batch_coordinates(&multiples).map(|(x, y)| Term::Affine(Affine::new(x, y))).collect()
    });
    let table: Vec<Term> = odd_multiples(point, WIDTH).iter().map(Term::new).collect();
    let base_digits = non_adjacent_form(&base_scalar.encode(), Ed448Scalar::BITS, GENERATOR_WIDTH);
    let digits = non_adjacent_form(&scalar.encode(), Ed448Scalar::BITS, WIDTH);
    let mut sum = Point::NEUTRAL;
    for (base_digit, digit) in base_digits.into_iter().zip(digits).rev() {
        sum.double_assign();
        add_digit(&mut sum, generator, base_digit);
        add_digit(&mut sum, &table, digit);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::super::point::MINUS_D;
    use super::*;
    use crate::msm;
    use crrl::ed448::{Point as Theirs, Scalar as TheirScalar};

    fn equal(ours: &Point, theirs: Theirs) -> bool {
        assert!(oracle::is_on_curve(ours));
        oracle::theirs(ours).equals(theirs) == u32::MAX
    }

    #[test]
    fn the_inverse_of_minus_d_is_one() {
        assert_eq!(INVERSE.mul_small(MINUS_D).equals(GF448::ONE), u32::MAX);
    }

    /// With repeated and opposite points, points outside the group, and zeros, by either method of summing up.
    #[test]
    fn sums_of_products_are_the_library_s() {
        let (points, scalars) = (oracle::points(), oracle::scalars());
        for n in (0..40).chain([60, 150, 300]) {
            let points: Vec<Point> = points.iter().cycle().skip(n).step_by(5).take(n).copied().collect();
            let scalars: Vec<_> = scalars.iter().cycle().skip(n * n).step_by(3).take(n).collect();
            let terms = points.iter().zip(&scalars);
            let expected = terms.fold(Theirs::NEUTRAL, |sum, (point, scalar)| sum + oracle::theirs(point) * **scalar);
            let encoded: Vec<_> = scalars.iter().map(|scalar| scalar.encode()).collect();
            assert!(equal(&msm::vartime_msm(&encoded, &points), expected), "{n}");
            let short: Vec<u128> = (1..).map(|i: u128| i << (i * 5 % 120)).take(n).collect();
            let terms = points.iter().zip(&short);
            let product = |point, scalar| oracle::theirs(point) * TheirScalar::from_u128(scalar);
            let expected = terms.fold(Theirs::NEUTRAL, |sum, (point, scalar)| sum + product(point, *scalar));
            assert!(equal(&msm::vartime_msm_short(&short, &points), expected), "{n}");
        }
    }

    #[test]
    fn double_products_are_the_library_s() {
        let (scalars, mut i) = (oracle::scalars(), 0);
        for point in oracle::points().iter().step_by(11) {
            for base_scalar in scalars.iter().step_by(3) {
                let scalar = scalars[i % scalars.len()];
                i += 7;
                let product = double_mul(&Ed448Scalar(*base_scalar), point, &Ed448Scalar(scalar));
                assert!(equal(&product, oracle::theirs(point).mul_add_mulgen_vartime(&scalar, base_scalar)));
            }
        }
    }

    #[test]
    fn every_form_of_a_point_is_the_point() {
        let points = oracle::points();
        for at_once in [1, points.len()] {
            let terms = points.chunks(at_once).flat_map(Point::batch_to_affine);
            for (point, term) in points.iter().zip(terms) {
                let theirs = oracle::theirs(point);
                assert!(equal(&term.to_point(), theirs));
                assert!(equal(&Point::negate_affine(&term).to_point(), -theirs));
                let [sum] = Point::batch_add(&[term], &[term]).try_into().ok().unwrap();
                assert!(equal(&sum.to_point(), theirs.double()));
            }
        }
    }
}
