//! Measures a step until its time is up.

use std::{
    convert::Infallible,
    fmt::Display,
    hint::black_box,
    time::{Duration, Instant},
};

use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use theta::exit::Failure;

use super::{
    Class,
    evidence::{Evidence, Finding},
};

/// So many inputs are made before the first of them is used. What making an input leaves behind in the processor is the same for all then.
const AT_ONCE: usize = 16;
/// The first measurements set the percentiles, and warm up caches: so many, or as many as a tenth of the time is enough for.
const FIRST: usize = 500;
/// But not fewer.
const FEWEST_FIRST: usize = 20;
/// With fewer measurements nothing is said but that there is a leak.
const ENOUGH: u64 = 1_000;
/// |t| beyond this is a leak.
const LEAKS: f64 = 10.0;
/// |t| beyond this has a probability below 10^-5 without a leak, for one test.
const SUSPECT: f64 = 4.5;

/// What the measurements say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The time depends on the secret.
    Leaks,
    /// It may: a longer run tells.
    Suspect,
    /// Too few measurements to say.
    TooFew,
    /// It was not seen to.
    NoLeakSeen,
}

impl Verdict {
    /// By the larger |t| of the two orders, and the number of measurements.
    fn of(t: f64, measurements: u64) -> Self {
        match t.abs() {
            t if t > LEAKS => Self::Leaks,
            _ if measurements < ENOUGH => Self::TooFew,
            t if t > SUSPECT => Self::Suspect,
            _ => Self::NoLeakSeen,
        }
    }

    /// In words.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Leaks => "LEAKS",
            Self::Suspect => "suspect",
            Self::TooFew => "too few measurements",
            Self::NoLeakSeen => "no leak seen",
        }
    }
}

/// What became of a trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// How many measurements the tests had.
    pub(crate) measurements: u64,
    /// The median of the first times, in nanoseconds.
    pub(crate) median_ns: f64,
    /// Whether the means differ.
    pub(crate) first: Finding,
    /// Whether the variances differ.
    pub(crate) second: Finding,
    /// What that says.
    pub(crate) verdict: Verdict,
}

/// The trial of one step.
pub(crate) struct Trial {
    rng: ChaCha20Rng,
    begin: Instant,
    time: Duration,
    ends_when_found: bool,
    first_times: Vec<f64>,
    evidence: Option<Evidence>,
    measurements: u64,
}

impl Trial {
    /// A trial that takes `time`, what is prepared included, or ends earlier when a leak is found.
    pub(crate) fn new(time: Duration, ends_when_found: bool, rng: ChaCha20Rng) -> Self {
        Self {
            rng,
            begin: Instant::now(),
            time,
            ends_when_found,
            first_times: Vec::new(),
            evidence: None,
            measurements: 0,
        }
    }

    /// Randomness for inputs.
    pub(crate) const fn rng(&mut self) -> &mut ChaCha20Rng {
        &mut self.rng
    }

    /// Whether there is time for more measurements. There always is for the first.
    pub(crate) fn goes_on(&self) -> bool {
        let has_none = self.first_times.is_empty() && self.evidence.is_none();
        let is_found = self.ends_when_found && self.outcome().verdict == Verdict::Leaks;
        has_none || !is_found && self.begin.elapsed() < self.time
    }

    /// Notes how long a step took.
    pub(crate) fn record(&mut self, class: Class, time: Duration) {
        let nanoseconds = time.as_secs_f64() * 1e9;
        if let Some(evidence) = &mut self.evidence {
            evidence.push(class, nanoseconds);
            self.measurements += 1;
            return;
        }
        self.first_times.push(nanoseconds);
        let count = self.first_times.len();
        if count >= FIRST || count >= FEWEST_FIRST && self.begin.elapsed() > self.time / 10 {
            self.evidence = Some(Evidence::new(std::mem::take(&mut self.first_times)));
        }
    }

    /// Measures a step that `prepare` makes inputs for. Only the step is timed, with what becomes of its input.
    pub(crate) fn steps<T, U>(
        &mut self,
        prepare: impl FnMut(Class, &mut ChaCha20Rng) -> Result<T, Failure>,
        mut step: impl FnMut(T) -> U,
    ) -> Result<(), Failure> {
        self.fallible_steps(prepare, |input| Ok::<U, Infallible>(step(input)))
    }

    /// As [`Self::steps`], with a step that succeeds, or ends the trial.
    pub(crate) fn fallible_steps<T, U, E: Display>(
        &mut self,
        mut prepare: impl FnMut(Class, &mut ChaCha20Rng) -> Result<T, Failure>,
        mut step: impl FnMut(T) -> Result<U, E>,
    ) -> Result<(), Failure> {
        while self.goes_on() {
            let mut inputs = Vec::with_capacity(AT_ONCE);
            for _ in 0..AT_ONCE {
                let class = Class::draw(&mut self.rng);
                inputs.push((class, prepare(class, &mut self.rng)?));
            }
            for (class, input) in inputs {
                let input = black_box(input);
                let begin = Instant::now();
                let result = black_box(step(input));
                let time = begin.elapsed();
                let _output = result.map_err(Failure::internal)?;
                self.record(class, time);
            }
        }
        Ok(())
    }

    /// Measures steps that time themselves, with [`clocked`]: those that are a part of something longer.
    pub(crate) fn samples(
        &mut self,
        mut sample: impl FnMut(Class, &mut ChaCha20Rng) -> Result<Duration, Failure>,
    ) -> Result<(), Failure> {
        while self.goes_on() {
            let class = Class::draw(&mut self.rng);
            let time = sample(class, &mut self.rng)?;
            self.record(class, time);
        }
        Ok(())
    }

    /// What the measurements so far say.
    pub(crate) fn outcome(&self) -> Outcome {
        let Some(evidence) = &self.evidence else {
            let (first, second) = (Finding::default(), Finding::default());
            return Outcome { measurements: 0, median_ns: 0.0, first, second, verdict: Verdict::TooFew };
        };
        let (first, second) = (evidence.first_order(), evidence.second_order());
        let verdict = Verdict::of(first.t.abs().max(second.t.abs()), self.measurements);
        Outcome { measurements: self.measurements, median_ns: evidence.median(), first, second, verdict }
    }
}

/// Does a step and adds its time.
pub(crate) fn clocked<T>(spent: &mut Duration, step: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = black_box(step());
    *spent += begin.elapsed();
    result
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    /// A trial without a clock of its own: what it is told is made up.
    fn told(times: u64, time: impl Fn(Class) -> Duration) -> Outcome {
        let mut trial = Trial::new(Duration::from_secs(3600), true, ChaCha20Rng::seed_from_u64(1));
        for _ in 0..times {
            let class = Class::draw(trial.rng());
            trial.record(class, time(class));
        }
        trial.outcome()
    }

    #[test]
    fn verdicts_are_by_t_and_number() {
        for (t, measurements, verdict) in [
            (0.3, 999, Verdict::TooFew),
            (-7.0, 999, Verdict::TooFew),
            (-10.1, 300, Verdict::Leaks),
            (4.4, 1_000, Verdict::NoLeakSeen),
            (-4.6, 1_000, Verdict::Suspect),
            (10.0, 1_000_000, Verdict::Suspect),
            (10.1, 1_000_000, Verdict::Leaks),
        ] {
            assert_eq!(Verdict::of(t, measurements), verdict, "{t} {measurements}");
        }
    }

    #[test]
    fn the_first_times_are_no_measurements() {
        let outcome = told(2_500, |_| Duration::from_micros(3));
        assert_eq!((outcome.measurements, outcome.verdict), (2_000, Verdict::NoLeakSeen));
        assert!((outcome.median_ns - 3_000.0).abs() < 1e-6);
        assert_eq!(told(499, |_| Duration::from_micros(3)).measurements, 0);
    }

    #[test]
    fn a_trial_ends_when_a_leak_is_found_if_it_is_to() {
        let longer = |class: Class| Duration::from_nanos(if class == Class::Fixed { 200 } else { 150 });
        assert_eq!(told(2_500, longer).verdict, Verdict::Leaks);
        for (ends_when_found, goes_on) in [(true, false), (false, true)] {
            let mut trial = Trial::new(Duration::from_secs(3600), ends_when_found, ChaCha20Rng::seed_from_u64(1));
            for _ in 0..2_500 {
                let class = Class::draw(trial.rng());
                trial.record(class, longer(class));
            }
            assert_eq!(trial.goes_on(), goes_on);
        }
    }

    #[test]
    fn a_step_that_fails_ends_the_trial() {
        let mut trial = Trial::new(Duration::ZERO, false, ChaCha20Rng::seed_from_u64(1));
        let result = trial.fallible_steps(|_, _| Ok(()), |()| Err::<(), _>("no element"));
        assert!(matches!(result, Err(Failure::Internal(text)) if text.contains("no element")));
        let mut trial = Trial::new(Duration::ZERO, false, ChaCha20Rng::seed_from_u64(1));
        assert!(trial.samples(|_, _| Err(Failure::Usage("bad".to_owned()))).is_err());
    }
}
