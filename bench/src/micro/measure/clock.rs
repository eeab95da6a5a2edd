//! Repeats an operation and measures its time.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::heap;

/// A sample takes at least this long, so that the cost and resolution of the clock do not matter.
const SAMPLE: Duration = Duration::from_micros(20);
/// The most repetitions in one sample.
const MAX_BATCH: usize = 64;
/// The fewest samples, however long they take.
const MIN_SAMPLES: usize = 5;
/// The most samples, however short they are.
const MAX_SAMPLES: usize = 2_000;

/// The time of one repetition, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(in crate::micro) struct Timing {
    /// The number of samples.
    pub(in crate::micro) samples: usize,
    /// The minimum: the cost of the operation when nothing disturbs it.
    pub(in crate::micro) min_us: f64,
    /// The median.
    pub(in crate::micro) median_us: f64,
    /// The 95th percentile.
    pub(in crate::micro) p95_us: f64,
    /// The peak of heap memory during one repetition above what was allocated before, including its result.
    pub(in crate::micro) heap_bytes: Option<usize>,
}

/// Measures operations for a given time each.
#[derive(Clone, Copy, Debug)]
pub(in crate::micro) struct Clock {
    budget: Duration,
}

impl Clock {
    /// Repeats each operation for `budget`, but at least five times.
    pub(in crate::micro) const fn new(budget: Duration) -> Self {
        Self { budget }
    }

    /// Repeats `operation`. Making its input and dropping its output is not measured.
    pub(in crate::micro) fn measure<I, O>(
        self,
        mut input: impl FnMut() -> I,
        mut operation: impl FnMut(I) -> O,
    ) -> Timing {
        // The first run fills caches and tables that are made lazily.
        drop(black_box(operation(input())));
        let again = input();
        let begin = Instant::now();
        let heap_bytes = heap::peak_of(|| operation(again));
        let batch = batch(begin.elapsed());
        let mut samples = Vec::new();
        let begin = Instant::now();
        while samples.len() < MIN_SAMPLES || (samples.len() < MAX_SAMPLES && begin.elapsed() < self.budget) {
            let inputs: Vec<I> = (0..batch).map(|_| input()).collect();
            let mut outputs = Vec::with_capacity(batch);
            let start = Instant::now();
            for input in inputs {
                outputs.push(black_box(operation(black_box(input))));
            }
            samples.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(u32::try_from(batch).unwrap_or(u32::MAX)));
        }
        samples.sort_by(f64::total_cmp);
        let quantile = |hundredths: usize| {
            let position = (samples.len().saturating_sub(1) * hundredths).div_ceil(100);
            samples.get(position).copied().unwrap_or_default()
        };
        Timing {
            samples: samples.len(),
            min_us: quantile(0),
            median_us: quantile(50),
            p95_us: quantile(95),
            heap_bytes,
        }
    }

    /// Repeats an operation without input.
    pub(in crate::micro) fn repeat<O>(self, mut operation: impl FnMut() -> O) -> Timing {
        self.measure(|| (), |()| operation())
    }
}

/// How many repetitions make a sample of at least [`SAMPLE`].
fn batch(first: Duration) -> usize {
    let times = SAMPLE.as_nanos() / first.as_nanos().max(1) + 1;
    usize::try_from(times).unwrap_or(MAX_BATCH).min(MAX_BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_and_ordered() {
        let mut runs = 0;
        let timing = Clock::new(Duration::ZERO).repeat(|| {
            runs += 1;
            std::thread::sleep(Duration::from_millis(1));
        });
        assert_eq!((timing.samples, runs), (MIN_SAMPLES, MIN_SAMPLES + 2));
        assert!(timing.min_us >= 1_000.0 && timing.min_us <= timing.median_us && timing.median_us <= timing.p95_us);
    }

    #[test]
    fn short_operations_are_gathered() {
        assert_eq!(batch(Duration::from_secs(1)), 1);
        assert_eq!(batch(Duration::from_micros(2)), 11);
        assert_eq!(batch(Duration::ZERO), MAX_BATCH);
    }
}
