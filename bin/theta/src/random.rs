//! Randomness.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::exit::Failure;

/// A generator seeded by the operating system.
pub fn generator() -> Result<ChaCha20Rng, Failure> {
    ChaCha20Rng::try_from_rng(&mut getrandom::SysRng)
        .map_err(|error| Failure::Internal(format!("the operating system gives no randomness: {error}")))
}
