//! The wrappers for values, and streams of values, that must not leak.

use core::convert::Infallible;
use core::fmt;
use rand_chacha::ChaCha20Rng;
use rand_core::{SeedableRng, TryCryptoRng, TryRng};
use zeroize::Zeroize;

/// A secret: wiped when dropped, never printed, never copied.
///
/// There is deliberately no `Clone`, `Copy`, `PartialEq`, `Serialize` or `Deref`: the value is reached by [`Secret::expose`] and
/// [`Secret::expose_mut`] alone, which a reviewer can search for.
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes ownership of `value`. The caller must not keep another copy of it.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Borrows the secret value. The value could leak at every call, so keep the borrow short.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Borrows the secret value for writing, to fill a buffer in place rather than move a secret through the stack.
    pub const fn expose_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// A stream of secrets that follows from a secret seed, as nonces do. `ChaCha20Rng` has no way to wipe itself, and its key is the seed: this one is
/// overwritten when dropped, as far as the compiler keeps that.
pub struct SecretRng(ChaCha20Rng);

impl SecretRng {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: &Secret<[u8; 32]>) -> Self {
        Self::of_stream(seed, 0)
    }

    /// One of the 2^64 streams of this seed, by its number.
    #[must_use]
    pub fn of_stream(seed: &Secret<[u8; 32]>, number: u64) -> Self {
        let mut rng = ChaCha20Rng::from_seed(*seed.expose());
        rng.set_stream(number);
        Self(rng)
    }

    fn wipe(&mut self) {
        self.0 = ChaCha20Rng::from_seed([0; 32]);
        core::hint::black_box(self);
    }
}

impl Drop for SecretRng {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl TryRng for SecretRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(destination)
    }
}

impl TryCryptoRng for SecretRng {}

impl fmt::Debug for SecretRng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretRng(<redacted>)")
    }
}

#[cfg(test)]
mod tests {
    use rand_core::Rng as _;

    use super::*;

    #[test]
    fn a_stream_is_that_of_its_seed_until_it_is_wiped() {
        let mut rng = SecretRng::new(&Secret::new([7; 32]));
        let (mut seeded, mut nothing) = (ChaCha20Rng::from_seed([7; 32]), ChaCha20Rng::from_seed([0; 32]));
        assert_eq!((rng.next_u64(), rng.next_u32()), (seeded.next_u64(), seeded.next_u32()));
        let [mut drawn, mut expected] = [[0; 100]; 2];
        rng.fill_bytes(&mut drawn);
        seeded.fill_bytes(&mut expected);
        assert_eq!(drawn, expected);
        rng.wipe();
        assert_eq!(rng.next_u64(), nothing.next_u64());
        assert_eq!(format!("{rng:?}"), "SecretRng(<redacted>)");
    }

    #[test]
    fn debug_never_shows_the_value() {
        let secret = Secret::new([7_u8; 4]);
        assert_eq!(format!("{secret:?}"), "<redacted>");
        assert_eq!(format!("{:?}", Some(&secret)), "Some(<redacted>)");
    }

    #[test]
    fn drop_wipes_the_value() {
        struct Probe<'a>(&'a core::cell::Cell<bool>);
        impl Zeroize for Probe<'_> {
            fn zeroize(&mut self) {
                self.0.set(true);
            }
        }
        let wiped = core::cell::Cell::new(false);
        drop(Secret::new(Probe(&wiped)));
        assert!(wiped.get());
    }
}
