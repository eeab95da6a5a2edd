//! Domain-separated hashing of unambiguous encodings.

use crate::Scalar;
use sha2::{Digest, Sha512};
use zeroize::{Zeroize as _, Zeroizing};

/// A hash whose input can be parsed in one way only: every part follows its label and its length, each as [`Transcript::append`]
/// writes them.
///
/// Fiat-Shamir challenges, derived keys and identifiers come from transcripts, except where a standard prescribes the hash, as in
/// FROST. Transcripts with different domains or different parts never have the same preimage. The hash is SHA-512; its state is
/// wiped when it is dropped.
#[derive(Clone)]
pub struct Transcript(Sha512);

impl core::fmt::Debug for Transcript {
    /// Shows nothing of the state: secrets may have been absorbed.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Transcript(..)")
    }
}

impl Transcript {
    /// Starts a transcript for one purpose, for example `"theta/sg02/validity/v1"`.
    #[must_use]
    pub fn new(domain: &'static str) -> Self {
        let mut transcript = Self(Sha512::new());
        transcript.append("domain", domain.as_bytes());
        transcript
    }

    /// Absorbs one labelled part. Labels are string literals chosen by the protocol, not data.
    pub fn append(&mut self, label: &'static str, data: &[u8]) {
        // A usize always fits u64 on the platforms that Rust supports.
        self.0.update((label.len() as u64).to_le_bytes());
        self.0.update(label.as_bytes());
        self.0.update((data.len() as u64).to_le_bytes());
        self.0.update(data);
    }

    /// The same as [`Transcript::append`], for building in one expression.
    #[must_use]
    pub fn with(mut self, label: &'static str, data: &[u8]) -> Self {
        self.append(label, data);
        self
    }

    /// The 64 bytes of the hash.
    #[must_use]
    pub fn finish(self) -> [u8; 64] {
        self.0.finalize().into()
    }

    /// The first 32 bytes of the hash, for identifiers and 256-bit keys.
    #[must_use]
    pub fn finish32(self) -> [u8; 32] {
        let mut wide = self.finish();
        let mut out = [0; 32];
        out.copy_from_slice(wide.split_at(32).0);
        // It may be a key.
        wide.zeroize();
        out
    }

    /// A challenge, uniform in Z_q. What it is reduced from is wiped: nonces are made in the same way.
    #[must_use]
    pub fn challenge<S: Scalar>(self) -> S {
        let first = Zeroizing::new(self.finish());
        if S::UNIFORM_LEN <= first.len() {
            return S::from_uniform_bytes(first.as_slice());
        }
        // Orders of more than 384 bits take two blocks, the second hashed from the first.
        let second =
            Zeroizing::new(Transcript::new("theta/challenge/second-block/v1").with("first", first.as_slice()).finish());
        let mut wide = Zeroizing::new([0; 128]);
        let (left, right) = wide.split_at_mut(64);
        left.copy_from_slice(first.as_slice());
        right.copy_from_slice(second.as_slice());
        S::from_uniform_bytes(wide.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cannot_slide_into_each_other() {
        let a = Transcript::new("test").with("x", b"ab").with("y", b"c").finish();
        let b = Transcript::new("test").with("x", b"a").with("y", b"bc").finish();
        let c = Transcript::new("test").with("xa", b"b").with("y", b"c").finish();
        assert_ne!(a, b);
        assert_ne!(a, c);
    }
}
