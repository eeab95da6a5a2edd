//! What is tested: the steps on secrets, from the groups up to the schemes, each with what tells its two classes apart.

mod black_boxes;
mod control;
mod groups;
mod mascot;
mod parties;
mod presignatures;
mod products;
mod schemes;
mod sharing;
mod transfers;

use std::convert::Infallible;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};
use theta::exit::Failure;
use theta_groups::Scalar;
use theta_sharing::ShareIndex;

use super::dudect::{Class, Trial};

/// Measures a step until the trial's time is up.
type Run = Box<dyn Fn(&mut Trial) -> Result<(), Failure>>;

/// One step that is tested.
pub(super) struct Target {
    /// Its name, such as `p256-mul`.
    pub(super) name: String,
    /// The two classes: what is fixed, and what it is compared with.
    pub(super) classes: &'static str,
    /// Whether it leaks on purpose: it has to be found.
    pub(super) is_control: bool,
    /// What measures it.
    pub(super) run: Run,
}

impl Target {
    fn new(
        name: impl Into<String>,
        classes: &'static str,
        run: impl Fn(&mut Trial) -> Result<(), Failure> + 'static,
    ) -> Self {
        Self { name: name.into(), classes, is_control: false, run: Box::new(run) }
    }
}

/// All of them, the controls first.
pub(super) fn all() -> Vec<Target> {
    [
        control::all(),
        groups::all(),
        sharing::all(),
        transfers::all(),
        products::all(),
        mascot::all(),
        black_boxes::all(),
        presignatures::all(),
        schemes::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The scalar 1, or a random one; either takes as long to make.
fn scalar<S: Scalar>(class: Class, rng: &mut ChaCha20Rng) -> S {
    let random = S::random(rng);
    match class {
        Class::Fixed => S::ONE,
        Class::Random => random,
    }
}

/// A generator that always gives the same, or a random one.
fn seeded(class: Class, rng: &mut ChaCha20Rng) -> ChaCha20Rng {
    let random = ChaCha20Rng::from_rng(rng);
    match class {
        Class::Fixed => ChaCha20Rng::seed_from_u64(0),
        Class::Random => random,
    }
}

/// The index of a party, by its place.
fn party(place: usize) -> Result<ShareIndex, Failure> {
    ShareIndex::at(place).ok_or_else(|| Failure::internal("a party without an index"))
}

/// A generator of a class: nothing but zeros, or random bytes, in the same time.
struct Drawn {
    rng: ChaCha20Rng,
    class: Class,
}

impl Drawn {
    fn new(class: Class, rng: &mut ChaCha20Rng) -> Self {
        Self { rng: ChaCha20Rng::from_rng(rng), class }
    }
}

impl TryRng for Drawn {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let random = self.rng.next_u32();
        Ok(if self.class == Class::Fixed { 0 } else { random })
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let random = self.rng.next_u64();
        Ok(if self.class == Class::Fixed { 0 } else { random })
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.rng.fill_bytes(bytes);
        if self.class == Class::Fixed {
            bytes.fill(0);
        }
        Ok(())
    }
}

impl TryCryptoRng for Drawn {}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use theta_groups::P256Scalar;

    use super::*;

    #[test]
    fn names_are_told_apart() {
        let targets = all();
        let names: BTreeSet<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names.len(), targets.len());
        let is_unusual = |name: &&str| !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        assert_eq!(names.iter().copied().find(is_unusual), None);
    }

    #[test]
    fn every_step_can_be_prepared_and_done() {
        for target in all() {
            let mut trial = Trial::new(Duration::ZERO, false, ChaCha20Rng::seed_from_u64(1));
            let result = (target.run)(&mut trial);
            assert_eq!(result, Ok(()), "{}", target.name);
        }
    }

    #[test]
    fn the_classes_differ_in_the_secret_alone() {
        let (mut one, mut other) = (ChaCha20Rng::seed_from_u64(1), ChaCha20Rng::seed_from_u64(1));
        let fixed: P256Scalar = scalar(Class::Fixed, &mut one);
        let random: P256Scalar = scalar(Class::Random, &mut other);
        assert!(fixed == P256Scalar::ONE && random != P256Scalar::ONE);
        let (mut zeros, mut bytes) = ([1; 40], [0; 40]);
        Drawn::new(Class::Fixed, &mut one).fill_bytes(&mut zeros);
        Drawn::new(Class::Random, &mut other).fill_bytes(&mut bytes);
        assert!(zeros == [0; 40] && bytes != [0; 40]);
        assert_eq!(seeded(Class::Fixed, &mut one).next_u64(), seeded(Class::Fixed, &mut one).next_u64());
        assert_ne!(seeded(Class::Random, &mut other).next_u64(), seeded(Class::Random, &mut other).next_u64());
        // Whatever the class was, as much has been drawn.
        assert_eq!(one.next_u64(), other.next_u64());
    }
}
