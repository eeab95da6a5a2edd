//! Generators of secrets.

use core::ops::{Deref, DerefMut};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// Bytes of a seed.
pub(crate) const SEED: usize = 32;

/// A generator whose numbers are secret. It has no way to wipe itself: it is overwritten when dropped, as far as the compiler keeps that.
pub(crate) struct Generator(ChaCha20Rng);

impl Generator {
    pub(crate) fn new(seed: &[u8; SEED]) -> Self {
        Self(ChaCha20Rng::from_seed(*seed))
    }
}

impl Deref for Generator {
    type Target = ChaCha20Rng;

    fn deref(&self) -> &ChaCha20Rng {
        &self.0
    }
}

impl DerefMut for Generator {
    fn deref_mut(&mut self) -> &mut ChaCha20Rng {
        &mut self.0
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.0 = ChaCha20Rng::from_seed([0; SEED]);
        core::hint::black_box(self);
    }
}
