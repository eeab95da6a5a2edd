//! What a seed decides.

use rand_chacha::rand_core::Rng;

/// A random number below `bound`, 0 for 0.
pub(crate) fn below(rng: &mut impl Rng, bound: u64) -> u64 {
    rng.next_u64().checked_rem(bound).unwrap_or(0)
}

pub(crate) fn one_of<T: Clone>(rng: &mut impl Rng, list: &[T]) -> Option<T> {
    list.get(usize::try_from(below(rng, list.len() as u64)).ok()?).cloned()
}
