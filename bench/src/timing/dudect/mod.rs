//! Whether the time of a step depends on a secret, by dudect (Reparaz, Balasch, Verbauwhede, *Dude, is my code constant time?*, DATE 2017).
//!
//! Inputs are of two classes, one with a fixed secret and one with random ones; all else about them is alike. They come in random order, are made
//! before the clock starts, and Welch's t-test says whether the times of the two classes have one mean (`evidence.rs`).

mod evidence;
mod moments;
mod trial;

pub(super) use evidence::Finding;
pub(super) use trial::{Outcome, Trial, Verdict, clocked};

use rand_core::Rng;

/// Which secret a measurement had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// One and the same, or of one kind.
    Fixed,
    /// A random one, or of another kind.
    Random,
}

impl Class {
    /// One of the two, each as likely.
    pub(crate) fn draw(rng: &mut impl Rng) -> Self {
        if rng.next_u32() & 1 == 0 { Self::Fixed } else { Self::Random }
    }
}

/// Something for each class.
#[derive(Clone, Copy, Debug, Default)]
struct Classes<T> {
    fixed: T,
    random: T,
}

impl<T> Classes<T> {
    const fn of(&mut self, class: Class) -> &mut T {
        match class {
            Class::Fixed => &mut self.fixed,
            Class::Random => &mut self.random,
        }
    }
}
