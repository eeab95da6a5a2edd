//! Sealing: no data that may be secret reaches the disk in clear.
//!
//! Every sealed record is `version || salt || ciphertext || tag`. Its key and nonce are derived from the store key and
//! 32 fresh random bytes, its salt: there is no counter that a restored copy of the file would set back, and salts of
//! 256 bits do not collide by chance, however many records there are. AES-256-GCM-SIV (RFC 8452) is used under the
//! derived key, so that even a machine that repeats its random bytes, such as a cloned virtual machine, reveals only
//! which records are equal. The associated data is the version, the table and the record's key in it, so that no record
//! passes for another.

mod sealing_key;
mod wrap;

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use getrandom::SysRng;
use rand_core::{CryptoRng, TryRng};
use theta_groups::{Secret, Transcript};
use zeroize::Zeroize;

use crate::StoreError;

pub use sealing_key::{Argon2Cost, SealingKey, SealingKeyError};
pub(crate) use wrap::Wrapped;

/// The version of the sealing.
const SEAL_VERSION: u8 = 1;
pub(crate) const SALT_LEN: usize = 32;
pub(crate) const TAG_LEN: usize = 16;
const HEAD_LEN: usize = 1 + SALT_LEN;

/// The source of random bytes.
pub(crate) enum Chance {
    /// The operating system, asked each time, so that a copy of this process's memory repeats nothing.
    System,
    /// The simulator's generator.
    Seeded(Mutex<Box<dyn CryptoRng + Send>>),
}

impl Chance {
    pub(crate) fn fill(&self, bytes: &mut [u8]) -> Result<(), StoreError> {
        match self {
            Self::System => SysRng.try_fill_bytes(bytes).map_err(|_| StoreError::Randomness),
            Self::Seeded(rng) => {
                rng.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(bytes);
                Ok(())
            }
        }
    }

    pub(crate) fn array<const N: usize>(&self) -> Result<[u8; N], StoreError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn secret(&self) -> Result<Secret<[u8; 32]>, StoreError> {
        let mut bytes = Secret::new([0; 32]);
        self.fill(bytes.expose_mut())?;
        Ok(bytes)
    }
}

impl core::fmt::Debug for Chance {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::Seeded(_) => "Seeded",
        })
    }
}

/// Seals and opens records under one key.
pub(crate) struct Sealer(Secret<[u8; 32]>);

/// Why a sealed record does not open.
#[derive(Debug)]
pub(crate) enum Unsealed {
    /// It was sealed by another release.
    Version(u8),
    /// It was changed or moved, or sealed under another key.
    NotAuthentic,
}

impl Sealer {
    pub(crate) const fn new(key: Secret<[u8; 32]>) -> Self {
        Self(key)
    }

    /// The length of a sealed record whose plaintext has `len` bytes.
    const fn sealed_len(len: usize) -> usize {
        HEAD_LEN.saturating_add(len).saturating_add(TAG_LEN)
    }

    /// The key and nonce of one record.
    fn cipher(&self, salt: &[u8]) -> Option<(LessSafeKey, Nonce)> {
        let mut derived =
            Transcript::new("theta/store/record/v1").with("store key", self.0.expose()).with("salt", salt).finish();
        let (key, rest) = derived.split_at(32);
        let key = UnboundKey::new(&AES_256_GCM_SIV, key).ok().map(LessSafeKey::new);
        let nonce = Nonce::try_assume_unique_for_key(rest.split_at(12).0).ok();
        derived.zeroize();
        key.zip(nonce)
    }

    /// Seals `record` of `key` in `table`. The buffer of the plaintext becomes that of the ciphertext.
    pub(crate) fn seal(
        &self,
        table: &str,
        key: &[u8],
        mut record: Secret<Vec<u8>>,
        chance: &Chance,
    ) -> Result<Vec<u8>, StoreError> {
        let salt: [u8; SALT_LEN] = chance.array()?;
        let (cipher, nonce) = self.cipher(&salt).ok_or(StoreError::Sealing)?;
        let associated_data = Aad::from(associated_data(table, key));
        let tag = cipher
            .seal_in_place_separate_tag(nonce, associated_data, record.expose_mut())
            .map_err(|_| StoreError::Sealing)?;
        let mut sealed = Vec::with_capacity(Self::sealed_len(record.expose().len()));
        sealed.push(SEAL_VERSION);
        sealed.extend_from_slice(&salt);
        sealed.extend_from_slice(record.expose());
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Opens what [`Sealer::seal`] made for the same table and key.
    pub(crate) fn open(&self, table: &str, key: &[u8], sealed: &[u8]) -> Result<Secret<Vec<u8>>, Unsealed> {
        match sealed.first() {
            Some(&SEAL_VERSION) => {}
            Some(&other) => return Err(Unsealed::Version(other)),
            None => return Err(Unsealed::NotAuthentic),
        }
        let (head, body) = sealed.split_at_checked(HEAD_LEN).ok_or(Unsealed::NotAuthentic)?;
        let (cipher, nonce) = self.cipher(head.split_at(1).1).ok_or(Unsealed::NotAuthentic)?;
        let mut buffer = Secret::new(body.to_vec());
        let associated_data = Aad::from(associated_data(table, key));
        let len = cipher
            .open_in_place(nonce, associated_data, buffer.expose_mut())
            .map_err(|_| Unsealed::NotAuthentic)?
            .len();
        buffer.expose_mut().truncate(len);
        Ok(buffer)
    }
}

impl core::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Sealer(<redacted>)")
    }
}

/// version || length of the table's name || table || key.
fn associated_data(table: &str, key: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(9 + table.len() + key.len());
    data.push(SEAL_VERSION);
    // A usize always fits u64 on the platforms that Rust supports.
    data.extend_from_slice(&(table.len() as u64).to_be_bytes());
    data.extend_from_slice(table.as_bytes());
    data.extend_from_slice(key);
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer() -> Sealer {
        Sealer::new(Secret::new([7; 32]))
    }

    fn seal(table: &str, key: &[u8], record: &[u8]) -> Vec<u8> {
        sealer().seal(table, key, Secret::new(record.to_vec()), &Chance::System).unwrap()
    }

    #[test]
    fn opens_what_was_sealed_and_hides_it() {
        let sealed = seal("keys", b"a", b"a very secret record");
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        assert_eq!(sealer().open("keys", b"a", &sealed).unwrap().expose(), b"a very secret record");
    }

    #[test]
    fn records_cannot_be_swapped_or_changed() {
        let sealed = seal("keys", b"a", b"record");
        assert!(sealer().open("keys", b"b", &sealed).is_err());
        assert!(sealer().open("key", b"sa", &sealed).is_err());
        assert!(sealer().open("shares", b"a", &sealed).is_err());
        assert!(Sealer::new(Secret::new([8; 32])).open("keys", b"a", &sealed).is_err());
        for byte in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[byte] ^= 1;
            assert!(sealer().open("keys", b"a", &changed).is_err(), "byte {byte}");
            assert!(sealer().open("keys", b"a", &sealed[..byte]).is_err(), "length {byte}");
        }
    }

    #[test]
    fn equal_records_look_different() {
        assert_ne!(seal("keys", b"a", b"record"), seal("keys", b"a", b"record"));
    }

    #[test]
    fn a_later_version_is_told_apart() {
        let mut sealed = seal("keys", b"a", b"record");
        sealed[0] = 2;
        assert!(matches!(sealer().open("keys", b"a", &sealed), Err(Unsealed::Version(2))));
    }
}
