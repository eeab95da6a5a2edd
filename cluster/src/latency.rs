//! Latencies and their percentiles.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use theta::exit::Failure;

/// A histogram of latencies: microseconds, three significant digits, up to ten minutes.
#[derive(Clone)]
pub struct Latencies(Histogram<u64>);

/// Milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    /// Half of the requests took at most this.
    pub p50: f64,
    /// 95 in 100.
    pub p95: f64,
    /// 99 in 100.
    pub p99: f64,
    /// All.
    pub max: f64,
}

impl Latencies {
    /// An empty histogram.
    pub fn new() -> Result<Self, Failure> {
        Histogram::new_with_bounds(1, 600_000_000, 3).map(Self).map_err(Failure::internal)
    }

    /// Adds one.
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that this fraction (0 to 1) of requests did not exceed.
    pub fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(quantile))
    }

    /// The usual ones.
    pub fn percentiles(&self) -> Percentiles {
        let at = |quantile| self.quantile(quantile).as_secs_f64() * 1e3;
        Percentiles { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let mut latencies = Latencies::new().unwrap();
        assert_eq!(latencies.quantile(0.5), Duration::ZERO);
        for milliseconds in 1..=100 {
            latencies.record(Duration::from_millis(milliseconds));
        }
        latencies.record(Duration::from_secs(86_400));
        let percentiles = latencies.percentiles();
        assert!((percentiles.p50 - 51.0).abs() < 0.1 && (percentiles.p95 - 96.0).abs() < 0.1, "{percentiles:?}");
        assert!((percentiles.max - 600_000.0).abs() < 600.0, "longer ones saturate: {percentiles:?}");
        assert_eq!(latencies.count(), 101);
    }
}
