//! The figures of the evaluation literature, by their definitions.
//!
//! Percentiles are by nearest rank: the p-th of m values is that on place ceil(p m / 100) in their order. A request that failed, or of which a
//! node has no result, took infinitely long: leaving it out would flatter. A percentile that falls on such a one is not given.

/// Of values in ascending order, the one on place ceil(numerator m / denominator).
fn rank(sorted: &[f64], numerator: usize, denominator: usize) -> Option<f64> {
    let place = sorted.len().checked_mul(numerator)?.div_ceil(denominator.max(1));
    sorted.get(place.max(1) - 1).copied().filter(|value| value.is_finite())
}

/// Values in any order, among which are infinite ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted(Vec<f64>);

impl FromIterator<f64> for Sorted {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

impl Sorted {
    /// The p-th percentile, p from 1 to 100.
    pub(super) fn percentile(&self, p: usize) -> Option<f64> {
        rank(&self.0, p, 100)
    }

    /// The least.
    pub(super) fn least(&self) -> Option<f64> {
        self.0.first().copied().filter(|value| value.is_finite())
    }

    /// The mean of those that are finite.
    pub(super) fn mean(&self) -> Option<f64> {
        let finite: Vec<f64> = self.0.iter().copied().filter(|value| value.is_finite()).collect();
        let count = u32::try_from(finite.len()).ok().filter(|count| *count > 0)?;
        Some(finite.iter().sum::<f64>() / f64::from(count))
    }
}

/// Latencies over the nodes of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OverNodes {
    /// L_theta: when the k-th of n nodes has its result (theta = 100 k / n); the median over requests.
    pub(super) l_theta: Option<f64>,
    /// L95: when 95 in 100 nodes have it; the median over requests.
    pub(super) l95: Option<f64>,
    /// The same percentiles over all latencies of all requests at all nodes in one heap.
    pub(super) pooled_l_theta: Option<f64>,
    /// See there.
    pub(super) pooled_l95: Option<f64>,
}

impl OverNodes {
    /// `requests` has for each the latencies of the nodes that are known to have a result, of n; k are needed.
    pub(super) fn of(requests: &[Vec<f64>], k: usize, n: usize) -> Self {
        let whole = |request: &Vec<f64>| -> Sorted {
            let missing = n.saturating_sub(request.len());
            request.iter().copied().chain(std::iter::repeat_n(f64::INFINITY, missing)).collect()
        };
        let requests: Vec<Sorted> = requests.iter().map(whole).collect();
        let over = |numerator, denominator| {
            let each = requests.iter().map(|nodes| rank(&nodes.0, numerator, denominator).unwrap_or(f64::INFINITY));
            each.collect::<Sorted>().percentile(50)
        };
        let pooled: Sorted = requests.iter().flat_map(|nodes| nodes.0.iter().copied()).collect();
        Self {
            l_theta: over(k, n),
            l95: over(95, 100),
            pooled_l_theta: rank(&pooled.0, k, n),
            pooled_l95: rank(&pooled.0, 95, 100),
        }
    }

    /// (L95 - L_theta) / L_theta: how much longer the last nodes take than those that are needed.
    pub(super) fn residual_delay(&self) -> Option<f64> {
        let (theta, l95) = (self.l_theta.filter(|theta| *theta > 0.0)?, self.l95?);
        Some((l95 - theta) / theta)
    }

    /// L_theta / L95: 1 if all nodes are equally fast.
    pub(super) fn fairness(&self) -> Option<f64> {
        Some(self.l_theta? / self.l95.filter(|l95| *l95 > 0.0)?)
    }
}

/// Four significant digits: more say nothing, and make tables unreadable.
pub(super) fn tidy(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let unit = 10_f64.powf(3.0 - value.abs().log10().floor());
    (value * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let values: Sorted = (1..=20).rev().map(f64::from).collect();
        assert_eq!([1, 5, 50, 95, 99, 100].map(|p| values.percentile(p).unwrap()), [1.0, 1.0, 10.0, 19.0, 20.0, 20.0]);
        assert_eq!(Sorted::default().percentile(50), None);
        let one: Sorted = [7.0].into_iter().collect();
        assert_eq!(
            (one.percentile(1), one.percentile(100), one.mean(), one.least()),
            (Some(7.0), Some(7.0), Some(7.0), Some(7.0))
        );
    }

    #[test]
    fn failed_requests_are_slower_than_all_others() {
        let values: Sorted = (1..=90).map(f64::from).chain([f64::INFINITY; 10]).collect();
        assert_eq!((values.percentile(50), values.percentile(90)), (Some(50.0), Some(90.0)));
        assert_eq!((values.percentile(95), values.percentile(91)), (None, None));
        assert_eq!(values.mean(), Some(45.5));
    }

    #[test]
    fn l_theta_is_when_the_last_needed_node_is_done() {
        // Node i takes i ms, in any order: of 20 nodes any 7 are needed.
        let request: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        let figures = OverNodes::of(&vec![request; 5], 7, 20);
        assert_eq!((figures.l_theta, figures.l95), (Some(7.0), Some(19.0)));
        assert_eq!((figures.pooled_l_theta, figures.pooled_l95), (Some(7.0), Some(19.0)));
        assert_eq!(figures.residual_delay(), Some(12.0 / 7.0));
        assert_eq!(figures.fairness(), Some(7.0 / 19.0));
    }

    #[test]
    fn equal_nodes_are_fair_however_requests_differ() {
        // Requests take 1 to 100 ms, each the same at all nodes: by request all is fair, in one heap it seems not to be.
        let requests: Vec<Vec<f64>> = (1..=100).map(|time| vec![f64::from(time); 7]).collect();
        let figures = OverNodes::of(&requests, 3, 7);
        assert_eq!((figures.fairness(), figures.residual_delay()), (Some(1.0), Some(0.0)));
        assert_eq!((figures.pooled_l_theta, figures.pooled_l95), (Some(43.0), Some(95.0)));
    }

    #[test]
    fn a_node_without_a_result_is_the_last() {
        // One of 31 is missing: 95 in 100 are 30 nodes. Two: there is no L95.
        let of = |present: u32| OverNodes::of(&[(1..=present).map(f64::from).collect()], 11, 31);
        assert_eq!((of(31).l95, of(30).l95, of(29).l95), (Some(30.0), Some(30.0), None));
        assert_eq!((of(29).l_theta, of(10).l_theta), (Some(11.0), None));
        assert_eq!((of(29).fairness(), of(29).residual_delay()), (None, None));
        assert_eq!(OverNodes::of(&[], 3, 7), OverNodes::default());
    }

    #[test]
    fn published_pairs_fit_the_definitions() {
        // Residual delay r and fairness f are of the same two latencies, so that f = 1 / (1 + r), whatever these are.
        for (residual, fairness) in [(2.76, 0.27), (1.07, 0.48), (0.99, 0.50), (0.95, 0.51), (0.26, 0.79), (3.29, 0.23)]
        {
            let figures = OverNodes { l_theta: Some(10.0), l95: Some(10.0 * (1.0 + residual)), ..OverNodes::default() };
            assert!((figures.residual_delay().unwrap() - residual).abs() < 1e-9);
            assert!((figures.fairness().unwrap() - fairness).abs() < 0.005);
        }
    }

    #[test]
    fn figures_have_four_digits() {
        assert_eq!([1234.56, 0.000_123_456, 0.0, 99_999.0].map(tidy), [1235.0, 0.000_123_5, 0.0, 100_000.0]);
    }
}
