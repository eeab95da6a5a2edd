//! All tests of one step. Times have a long tail of interrupts, which hides small differences: so there are tests of the times below several
//! percentiles, as in dudect. Each is of the first order, for times that differ in the mean, and of the second, for times that differ in how
//! far they are from it (Schneider and Moradi, "Leakage assessment methodology", CHES 2015).

use super::{
    Class, Classes,
    moments::{Moments, welch},
};

/// Tests use the times up to these percentiles.
const PERCENTS: [u32; 6] = [50, 75, 90, 95, 99, 100];
/// A test counts when each class has so many times in it: with fewer, t is not yet what it is of normal distributions.
const FEWEST: f64 = 100.0;

/// The tests of one step.
#[derive(Debug)]
pub(super) struct Evidence {
    crops: Vec<Crop>,
    median: f64,
}

/// The two tests of the times up to a limit.
#[derive(Debug)]
struct Crop {
    percent: u32,
    limit: f64,
    first: Classes<Moments>,
    second: Classes<Moments>,
}

/// What the tests of one order say: the one of them with the largest |t|.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Finding {
    /// Welch's t: positive where what is fixed takes longer, or varies more.
    pub(crate) t: f64,
    /// The percentile up to which it used the times; 0 if no test had enough of them.
    pub(crate) percent: u32,
    /// The mean of what is fixed less the mean of what is random: nanoseconds; for the second order, their squares.
    pub(crate) difference: f64,
}

impl Evidence {
    /// Tests whose percentiles are those of some first times, in nanoseconds; these are not used again.
    pub(super) fn new(mut first_times: Vec<f64>) -> Self {
        first_times.sort_by(f64::total_cmp);
        let limit = |percent: u32| match percent {
            100 => f64::INFINITY,
            percent => {
                let last = first_times.len().saturating_sub(1);
                let place = last * usize::try_from(percent).unwrap_or(0) / 100;
                first_times.get(place).copied().unwrap_or(f64::INFINITY)
            }
        };
        let crop =
            |percent| Crop { percent, limit: limit(percent), first: Classes::default(), second: Classes::default() };
        Self { crops: PERCENTS.map(crop).into(), median: limit(50) }
    }

    /// Adds a time, in nanoseconds.
    pub(super) fn push(&mut self, class: Class, time: f64) {
        for crop in &mut self.crops {
            if time <= crop.limit {
                crop.push(class, time);
            }
        }
    }

    /// The median of the first times, in nanoseconds.
    pub(super) const fn median(&self) -> f64 {
        self.median
    }

    /// Whether the means differ.
    pub(super) fn first_order(&self) -> Finding {
        self.largest(|crop| &crop.first)
    }

    /// Whether the variances differ.
    pub(super) fn second_order(&self) -> Finding {
        self.largest(|crop| &crop.second)
    }

    fn largest(&self, samples: impl Fn(&Crop) -> &Classes<Moments>) -> Finding {
        let found = self.crops.iter().filter_map(|crop| {
            let Classes { fixed, random } = samples(crop);
            let is_enough = fixed.count() >= FEWEST && random.count() >= FEWEST;
            let difference = fixed.mean() - random.mean();
            is_enough.then(|| Finding { t: welch(fixed, random), percent: crop.percent, difference })
        });
        found.max_by(|one, other| one.t.abs().total_cmp(&other.t.abs())).unwrap_or_default()
    }
}

impl Crop {
    fn push(&mut self, class: Class, time: f64) {
        let first = self.first.of(class);
        let distance = time - first.mean();
        // Squared distances from a mean of few values would be larger than those from the mean of many.
        let is_known = first.count() >= FEWEST;
        first.push(time);
        if is_known {
            self.second.of(class).push(distance * distance);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;

    /// A number from 0 to 1.
    fn uniform(rng: &mut ChaCha20Rng) -> f64 {
        f64::from(rng.next_u32()) / f64::from(u32::MAX)
    }

    /// Nearly normal, of mean 0 and variance 1 (Irwin and Hall).
    fn normal(rng: &mut ChaCha20Rng) -> f64 {
        (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
    }

    /// What is found in so many times, the first 500 of which set the percentiles.
    fn found(count: usize, seed: u64, time: impl Fn(Class, &mut ChaCha20Rng) -> f64) -> [Finding; 2] {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut next = || {
            let class = Class::draw(&mut rng);
            (class, time(class, &mut rng))
        };
        let first_times = (0..500).map(|_| next().1).collect();
        let mut evidence = Evidence::new(first_times);
        for _ in 0..count {
            let (class, time) = next();
            evidence.push(class, time);
        }
        [evidence.first_order(), evidence.second_order()]
    }

    #[test]
    fn equal_distributions_are_not_told_apart() {
        for seed in 0..20 {
            let [first, second] = found(10_000, seed, |_, rng| 1000.0 + 20.0 * normal(rng));
            assert!(first.t.abs() < 4.5 && second.t.abs() < 4.5, "seed {seed}: {first:?} {second:?}");
        }
    }

    #[test]
    fn a_small_shift_of_the_mean_is_found() {
        let time = |class: Class, rng: &mut ChaCha20Rng| {
            let shift = if class == Class::Fixed { 6.0 } else { 0.0 };
            1000.0 + shift + 20.0 * normal(rng)
        };
        let [first, _] = found(10_000, 1, time);
        assert!(first.t > 10.0, "{first:?}");
        assert!((first.difference - 6.0).abs() < 3.0, "{first:?}");
    }

    #[test]
    fn a_shift_that_interrupts_hide_is_found_below_a_percentile() {
        let time = |class: Class, rng: &mut ChaCha20Rng| {
            let interrupt = if uniform(rng) < 0.03 { 1e6 * uniform(rng) } else { 0.0 };
            let shift = if class == Class::Random { 8.0 } else { 0.0 };
            1000.0 + shift + 20.0 * normal(rng) + interrupt
        };
        let [first, _] = found(10_000, 2, time);
        assert!(first.t < -10.0 && first.percent < 100, "{first:?}");
    }

    #[test]
    fn different_variances_are_found_by_the_second_order_alone() {
        let time = |class: Class, rng: &mut ChaCha20Rng| {
            let spread = if class == Class::Fixed { 26.0 } else { 20.0 };
            1000.0 + spread * normal(rng)
        };
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        // Without a limit: below one, another variance is another mean, too.
        let mut crop =
            Crop { percent: 100, limit: f64::INFINITY, first: Classes::default(), second: Classes::default() };
        for _ in 0..10_000 {
            let class = Class::draw(&mut rng);
            crop.push(class, time(class, &mut rng));
        }
        assert!(welch(&crop.second.fixed, &crop.second.random) > 10.0);
        assert!(welch(&crop.first.fixed, &crop.first.random).abs() < 4.5);
        let [_, second] = found(10_000, 3, time);
        assert!(second.t > 10.0, "{second:?}");
    }

    #[test]
    fn few_times_say_nothing() {
        let [first, second] = found(150, 4, |class, _| if class == Class::Fixed { 1.0 } else { 1000.0 });
        assert_eq!((first.percent, second.percent), (0, 0));
        assert!(first.t.abs() < 1e-12 && second.t.abs() < 1e-12);
    }
}
