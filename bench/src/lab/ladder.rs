//! Capacity: which rate is measured next, and what the rates that were measured say.

use std::time::Duration;

use super::row::Row;

/// Below this fraction of the offered rate a group is saturated.
const KEPT: f64 = 0.9;
/// With more failures than this fraction, too.
const FAILED: f64 = 0.01;
/// Where the first rate is too much, rates are halved so often at most.
const HALVED: i32 = 6;

/// Rates are doubled from the first until the group is saturated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ladder {
    /// Requests a second of the first step.
    pub(super) first: f64,
    /// No step has more.
    pub(super) most: f64,
    /// Nobody uses a group whose latency (95 in 100) is over this; also the end of the ladder.
    pub(super) limit: Duration,
    /// How many steps are made between the last rate that was borne and the first that was not.
    pub(super) refine: u8,
}

impl Default for Ladder {
    fn default() -> Self {
        Self { first: 1.0, most: 1.0, limit: Duration::from_secs(1), refine: 0 }
    }
}

/// One rate and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// Requests a second that were sent.
    pub(super) rate: f64,
    /// Good answers a second.
    pub(super) throughput: f64,
    /// Latency in milliseconds; `None`: more than half of the requests failed.
    pub(super) p50_ms: Option<f64>,
    /// The same for 95 in 100.
    pub(super) p95_ms: Option<f64>,
    /// The fraction that failed.
    pub(super) failed: f64,
}

impl Step {
    /// A step of a ladder, from its row.
    pub(super) fn of(row: &Row) -> Option<Self> {
        let count = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        Some(Self {
            rate: row.rate?,
            throughput: row.throughput.unwrap_or(0.0),
            p50_ms: row.p50_ms,
            p95_ms: row.p95_ms,
            failed: count(row.failed) / count(row.sent).max(1.0),
        })
    }

    /// Throughput over latency: what is largest at the knee.
    fn power(&self) -> f64 {
        self.p50_ms.filter(|latency| *latency > 0.0).map_or(0.0, |latency| self.throughput / latency)
    }
}

impl Ladder {
    /// Whether a step is more than the group bears.
    pub(super) fn is_saturated(&self, step: &Step) -> bool {
        step.throughput < KEPT * step.rate || !self.is_usable(step)
    }

    /// Whether answers come within the limit, and come.
    pub(super) fn is_usable(&self, step: &Step) -> bool {
        let limit = self.limit.as_secs_f64() * 1e3;
        step.failed <= FAILED && step.p95_ms.is_some_and(|latency| latency <= limit)
    }

    /// The rate to measure next; `None` when all is known.
    pub(super) fn next(&self, steps: &[Step]) -> Option<f64> {
        let borne = |step: &&Step| !self.is_saturated(step);
        let lowest_failed = steps.iter().filter(|step| !borne(step)).map(|step| step.rate).min_by(f64::total_cmp);
        // A step that was borne by luck above one that was not counts for nothing here.
        let below = |step: &&Step| lowest_failed.is_none_or(|failed| step.rate < failed);
        let highest_borne = steps.iter().filter(borne).filter(below).map(|step| step.rate).max_by(f64::total_cmp);
        match (highest_borne, lowest_failed) {
            (None, None) => Some(self.first),
            (Some(borne), None) => (borne < self.most).then(|| (borne * 2.0).min(self.most)),
            (None, Some(failed)) => {
                let next = failed / 2.0;
                (next >= self.first / 2_f64.powi(HALVED) * 0.999).then_some(next)
            }
            // Between the two, at equal ratios: as many steps as are wanted, each halving what is left.
            (Some(borne), Some(failed)) => {
                let finest = 2_f64.powf(1.0 / 2_f64.powi(i32::from(self.refine)));
                (failed / borne > finest * 1.02).then(|| tidy((borne * failed).sqrt()))
            }
        }
    }

    /// The knee: of the steps, that whose throughput over latency is largest.
    pub(super) fn knee<'a>(&self, steps: &'a [Step]) -> Option<&'a Step> {
        let largest = steps.iter().max_by(|a, b| a.power().total_cmp(&b.power()));
        largest.filter(|step| step.power() > 0.0)
    }

    /// The usable capacity: the largest throughput of which answers come within the limit.
    pub(super) fn usable<'a>(&self, steps: &'a [Step]) -> Option<&'a Step> {
        let usable = steps.iter().filter(|step| self.is_usable(step));
        usable.max_by(|a, b| a.throughput.total_cmp(&b.throughput))
    }
}

/// Three significant digits, so that rates are readable.
fn tidy(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 2.0);
    (rate / unit).round() * unit
}

/// Requests a second that one core bears in a second: `idle` microseconds a second are used anyway, and `net` for each request.
pub(super) fn of_one_core(net_us: f64, idle_us: f64) -> Option<f64> {
    (net_us > 0.0).then(|| (1e6 - idle_us).max(0.0) / net_us)
}

/// The same for a machine whose cores all nodes and the client share.
pub(super) fn of_machine(cores: f64, nodes: f64, net_us: f64, idle_us: f64, client_us: f64) -> Option<f64> {
    let all = nodes * net_us + client_us;
    (all > 0.0).then(|| (cores * 1e6 - nodes * idle_us).max(0.0) / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(refine: u8) -> Ladder {
        Ladder { first: 8.0, most: 10_000.0, limit: Duration::from_millis(500), refine }
    }

    /// A queue that bears `capacity` a second, each request alone in 2 ms.
    fn measured(rate: f64, capacity: f64) -> Step {
        let throughput = rate.min(capacity);
        let p50 = if rate < capacity { 2.0 / (1.0 - rate / capacity) } else { 900.0 };
        Step { rate, throughput, p50_ms: Some(p50), p95_ms: Some(p50 * 2.0), failed: 0.0 }
    }

    fn climb(ladder: Ladder, capacity: f64) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(rate) = ladder.next(&steps) {
            assert!(steps.len() < 40, "no end: {steps:?}");
            steps.push(measured(rate, capacity));
        }
        steps
    }

    #[test]
    fn rates_are_doubled_until_saturation() {
        let rates = |capacity| climb(ladder(0), capacity).iter().map(|step| step.rate).collect::<Vec<_>>();
        assert_eq!(rates(100.0), [8.0, 16.0, 32.0, 64.0, 128.0]);
        assert_eq!(rates(1e9).last(), Some(&10_000.0), "and no further than the highest");
        assert_eq!(rates(3.0), [8.0, 4.0, 2.0], "or halved, if the first is too much");
        assert_eq!(rates(0.001), [8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125], "but not for ever");
    }

    #[test]
    fn refining_halves_what_is_left() {
        let rates: Vec<f64> = climb(ladder(2), 100.0).iter().map(|step| step.rate).collect();
        assert_eq!(rates, [8.0, 16.0, 32.0, 64.0, 128.0, 90.5, 108.0]);
    }

    #[test]
    fn a_ladder_goes_on_where_it_was_left() {
        let whole = climb(ladder(2), 100.0);
        for cut in 0..whole.len() {
            assert_eq!(ladder(2).next(&whole[..cut]), Some(whole[cut].rate));
        }
        assert_eq!(ladder(2).next(&whole), None);
    }

    #[test]
    fn failures_and_slow_answers_are_saturation_too() {
        let good = measured(8.0, 100.0);
        assert!(!ladder(0).is_saturated(&good));
        assert!(ladder(0).is_saturated(&Step { failed: 0.02, ..good }));
        assert!(ladder(0).is_saturated(&Step { p95_ms: Some(501.0), ..good }));
        assert!(ladder(0).is_saturated(&Step { p95_ms: None, ..good }));
        assert!(ladder(0).is_saturated(&Step { throughput: 7.1, ..good }));
    }

    #[test]
    fn knee_and_usable_capacity_of_a_known_queue() {
        let steps: Vec<Step> = [10.0, 25.0, 50.0, 75.0, 90.0, 120.0].map(|rate| measured(rate, 100.0)).into();
        // Throughput over latency is rate (1 - rate / capacity) / 2 ms: largest at half of the capacity.
        assert_eq!(ladder(0).knee(&steps).unwrap().rate, 50.0);
        assert_eq!(ladder(0).usable(&steps).unwrap().rate, 90.0);
        assert_eq!(ladder(0).knee(&[]), None);
        let failed = Step { p50_ms: None, p95_ms: None, failed: 1.0, throughput: 0.0, rate: 8.0 };
        assert_eq!((ladder(0).knee(&[failed]), ladder(0).usable(&[failed])), (None, None));
    }

    #[test]
    fn cores_imply_capacities() {
        assert_eq!(of_one_core(500.0, 0.0), Some(2_000.0));
        assert_eq!(of_one_core(500.0, 100_000.0), Some(1_800.0), "a tenth of the core is gone before any request");
        assert_eq!(of_machine(2.0, 7.0, 250.0, 0.0, 250.0), Some(1_000.0));
        assert_eq!(of_one_core(0.0, 0.0), None);
    }
}
