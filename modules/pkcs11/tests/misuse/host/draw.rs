//! Choices, taken from bytes one after the other: the same bytes are always the same sequence of calls.

use cryptoki_sys::CK_ULONG;

/// Lengths that no host means: each is beyond every bound of the module, so that nothing may be read that they promise.
pub(crate) const ABSURD: [CK_ULONG; 4] = [CK_ULONG::MAX, CK_ULONG::MAX - 7, CK_ULONG::MAX >> 1, 64 << 20];

/// The bytes that are left.
pub(crate) struct Draw<'a>(&'a [u8]);

impl<'a> Draw<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_spent(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte; zeros behind the last one.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below this one, which is 256 at most.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound.max(1)
    }

    /// Whether something rare happens, once in so many times. Zeros are the usual.
    pub(crate) fn rarely(&mut self, many: usize) -> bool {
        self.below(many) + 1 == many
    }

    /// One of these.
    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Bytes, at most so many.
    pub(crate) fn some(&mut self, most: usize) -> Vec<u8> {
        let len = self.below(most + 1).min(self.0.len());
        let (some, rest) = self.0.split_at(len);
        self.0 = rest;
        some.to_vec()
    }
}
