//! What a party computes once: coefficients of interpolation between the parties' points, which are 1 to n; 0 is the secret.

use theta_groups::Scalar;

/// The coefficients c_i with f(at) = sum of c_i f(x_i), for polynomials of lower degree than there are points x_i.
pub(super) fn lagrange<S: Scalar>(points: &[u64], at: u64) -> Vec<S> {
    let difference = |a: u64, b: u64| S::from_u64(a) - S::from_u64(b);
    let product = |x: u64, from: u64| {
        points.iter().filter(|other| **other != x).fold(S::ONE, |product, other| product * difference(from, *other))
    };
    let mut denominators: Vec<S> = points.iter().map(|x| product(*x, *x)).collect();
    S::vartime_batch_invert(&mut denominators);
    points.iter().zip(denominators).map(|(x, inverse)| product(*x, at) * inverse).collect()
}

/// The sum of coefficients times values.
pub(super) fn combine<S: Scalar>(coefficients: &[S], values: impl IntoIterator<Item = S>) -> S {
    coefficients.iter().zip(values).fold(S::ZERO, |sum, (coefficient, value)| sum + *coefficient * value)
}

/// The point of the party at a position.
pub(super) fn point(position: usize) -> u64 {
    u64::try_from(position).unwrap_or(u64::MAX).saturating_add(1)
}

/// How a party deals polynomials of one degree d: the secret, which it chooses, and the shares of the d parties after it, which
/// come from seeds that it has in common with each, determine the others.
pub(super) struct Dealing<S> {
    /// d.
    pub(super) degree: usize,
    /// The dealer itself, and the parties that have to be sent their shares.
    pub(super) computed: Vec<(usize, Vec<S>)>,
}

impl<S: Scalar> Dealing<S> {
    pub(super) fn new(local: usize, n: usize, degree: usize) -> Self {
        let after = |places: usize| (local + places).checked_rem(n).unwrap_or(0);
        let mut known = vec![0];
        known.extend((1..=degree).map(|places| point(after(places))));
        let others = (degree + 1..n).map(after);
        let computed = [local].into_iter().chain(others);
        Self { degree, computed: computed.map(|position| (position, lagrange(&known, point(position)))).collect() }
    }

    /// Whether the party at `position` knows its share of `dealer`'s polynomials by itself.
    pub(super) fn is_derived(&self, dealer: usize, position: usize, n: usize) -> bool {
        let distance = (position + n - dealer).checked_rem(n).unwrap_or(0);
        (1..=self.degree).contains(&distance)
    }
}

/// All coefficients that a party needs.
pub(super) struct Coefficients<S> {
    pub(super) single: Dealing<S>,
    pub(super) double: Dealing<S>,
    /// Rows of the matrix (j^r) for parties j and r < n - t, by which random sharings are extracted from those dealt.
    pub(super) vandermonde: Vec<Vec<S>>,
    /// For openings of degree 2t by the first 2t + 1 parties.
    pub(super) products: Vec<S>,
    /// For openings of degree t by t + 1 parties from each position on.
    pub(super) from: Vec<Vec<S>>,
}

impl<S: Scalar> Coefficients<S> {
    pub(super) fn new(local: usize, n: usize, t: usize) -> Self {
        let all: Vec<u64> = (0..n).map(point).collect();
        let powers = |exponent: usize| {
            all.iter().map(|x| (0..exponent).fold(S::ONE, |power, _| power * S::from_u64(*x))).collect()
        };
        let circle =
            |start: usize| -> Vec<u64> { (start..=start + t).map(|i| point(i.checked_rem(n).unwrap_or(0))).collect() };
        let first: Vec<u64> = (0..=2 * t).map(point).collect();
        Self {
            single: Dealing::new(local, n, t),
            double: Dealing::new(local, n, 2 * t),
            vandermonde: (0..n - t).map(powers).collect(),
            products: lagrange(&first, 0),
            from: (0..n).map(|start| lagrange(&circle(start), 0)).collect(),
        }
    }
}
