//! What a party computes once: coefficients of interpolation between the parties' points, which are their share indices; 0 is the secret.

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

/// How a party deals polynomials of one degree d: the secret, which it chooses, and the shares of the d parties after it, which
/// come from seeds that it has in common with each, determine the others.
pub(super) struct Dealing<S> {
    /// d.
    pub(super) degree: usize,
    /// The dealer itself, and the parties that have to be sent their shares.
    pub(super) computed: Vec<(usize, Vec<S>)>,
}

impl<S: Scalar> Dealing<S> {
    pub(super) fn new(local: usize, points: &[u64], degree: usize) -> Self {
        let n = points.len();
        let after = |places: usize| (local + places).checked_rem(n).unwrap_or(0);
        let point = |position: usize| points.get(position).copied().unwrap_or(0);
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
    /// What the shares of the first t + 1 parties say of the share of each later one.
    pub(super) later: Vec<Vec<S>>,
}

impl<S: Scalar> Coefficients<S> {
    /// For polynomials of degree t at these points.
    pub(super) fn new(local: usize, points: &[u64], t: usize) -> Self {
        let n = points.len();
        let point = |position: usize| points.get(position).copied().unwrap_or(0);
        let powers = |exponent: usize| {
            points.iter().map(|x| (0..exponent).fold(S::ONE, |power, _| power * S::from_u64(*x))).collect()
        };
        let circle =
            |start: usize| -> Vec<u64> { (start..=start + t).map(|i| point(i.checked_rem(n).unwrap_or(0))).collect() };
        let first = |count: usize| -> Vec<u64> { points.iter().copied().take(count).collect() };
        Self {
            single: Dealing::new(local, points, t),
            double: Dealing::new(local, points, 2 * t),
            vandermonde: (0..n - t).map(powers).collect(),
            products: lagrange(&first(2 * t + 1), 0),
            from: (0..n).map(|start| lagrange(&circle(start), 0)).collect(),
            later: points.iter().skip(t + 1).map(|x| lagrange(&first(t + 1), *x)).collect(),
        }
    }

    /// f(0) of a polynomial of degree t from all parties' shares; `None` if no such polynomial has these values.
    pub(super) fn open(&self, shares: &[S]) -> Option<S> {
        let at_zero = self.from.first()?;
        let (first, later) = shares.split_at_checked(at_zero.len())?;
        let fits = |(row, share): (&Vec<S>, &S)| combine(row, first.iter().copied()) == *share;
        let all = later.len() == self.later.len() && self.later.iter().zip(later).all(fits);
        all.then(|| combine(at_zero, first.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use theta_groups::P256Scalar as S;

    #[test]
    fn shares_give_the_secret_or_nothing() {
        let f = |x: u64| S::from_u64(7 + 5 * x + 3 * x * x);
        for points in [[1, 2, 3, 4, 5], [2, 3, 5, 7, 11]] {
            let mut values: Vec<S> = points.into_iter().map(f).collect();
            assert_eq!(Coefficients::new(0, &points, 2).open(&values), Some(S::from_u64(7)));
            assert_eq!(Coefficients::new(0, &points, 1).open(&values), None);
            values[4] = S::ONE;
            assert_eq!(Coefficients::new(0, &points, 2).open(&values), None);
            assert_eq!(Coefficients::new(0, &points, 2).open(&values[..4]), None);
        }
    }
}
