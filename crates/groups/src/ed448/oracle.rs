//! An independent implementation of the curve to test against: the library's own points.

use super::encoding;
use super::point::{MINUS_D, Point};
use crrl::ed448::{Point as Theirs, Scalar};
use crrl::field::GF448;

/// The library's point.
pub(super) fn theirs(point: &Point) -> Theirs {
    Theirs::decode(&encoding::encode(point)).unwrap()
}

/// Our point, with Z other than one.
pub(super) fn ours(point: &Theirs) -> Point {
    let Point { x, y, .. } = encoding::decode(&point.encode()).unwrap();
    let z = GF448::from_u32(0x1234_5678).square() + x;
    Point { x: x * z, y: y * z, z, t: x * z, u: y }
}

/// Whether the coordinates are those of a point of the curve.
pub(super) fn is_on_curve(Point { x, y, z, t, u }: &Point) -> bool {
    let t = t * u;
    let equation = (x.square() + y.square()).equals(z.square() - t.square().mul_small(MINUS_D));
    equation & (x * y).equals(z * t) & !z.iszero() == u32::MAX
}

/// The points of order 1, 2, and 4.
pub(super) fn small_order() -> [Point; 4] {
    let (zero, one) = (GF448::ZERO, GF448::ONE);
    [(zero, one), (zero, -one), (one, zero), (-one, zero)].map(|(x, y)| Point::from_affine(x, y))
}

/// Scalars at the edges and others, as the library has them.
pub(super) fn scalars() -> Vec<Scalar> {
    let powers = (0..450).step_by(31).map(|i| (0..i).fold(Scalar::ONE, |power, _| power + power));
    let small = (0..40).flat_map(|i| [Scalar::from_u64(i), -Scalar::from_u64(i)]);
    let large = (0..20).map(|i| Scalar::decode_reduce(&[i * 13 + 1; 100]));
    let mut scalars: Vec<_> = small.chain(powers.flat_map(|power| [power, power - Scalar::ONE, -power])).collect();
    scalars.extend(large.flat_map(|scalar| [scalar, scalar.square()]));
    scalars
}

/// Points of the group, their sums with points of small order, and points from all of the curve: more than a hundred.
pub(super) fn points() -> Vec<Point> {
    let multiples = [0, 1, 2, 3, 4, 5, 1 << 40, u64::MAX].map(|i| Theirs::BASE * Scalar::from_u64(i));
    let random = (0..10).map(|i| Theirs::BASE * Scalar::decode_reduce(&[i + 1; 80]));
    let group: Vec<Theirs> = multiples.into_iter().chain(random).flat_map(|point| [point, -point]).collect();
    let low = small_order().map(|point| theirs(&point));
    let mut points: Vec<Point> = group.iter().flat_map(|point| low.map(|low| ours(&(point + low)))).collect();
    points.extend(group.iter().filter_map(|point| encoding::decode(&point.encode()).ok()));
    points.extend((2..60).filter_map(|y| {
        let mut encoding = [0; 57];
        encoding[0] = y;
        Theirs::decode(&encoding).map(|point| ours(&point))
    }));
    points.extend(small_order());
    points
}
