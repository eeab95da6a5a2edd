//! The wrapper for values that must not leak.

use core::fmt;
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

#[cfg(test)]
mod tests {
    use super::*;

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
