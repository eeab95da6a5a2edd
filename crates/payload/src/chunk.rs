//! One chunk of a payload.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use theta_groups::{Secret, Transcript};

use super::{Aead, PayloadKey};

/// Bytes of plaintext in every chunk but the last.
pub const CHUNK_LEN: usize = 64 << 10;
/// Bytes that sealing adds to a chunk.
pub const TAG_LEN: usize = 16;

fn algorithm(aead: Aead) -> &'static Algorithm {
    match aead {
        Aead::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        Aead::Aes256Gcm => &AES_256_GCM,
    }
}

/// Seals or opens the chunks of one payload in order.
pub(super) struct ChunkCipher {
    key: Arc<LessSafeKey>,
    prefix: [u8; 7],
    associated_data: [u8; 32],
    /// The number of the next chunk.
    next: u64,
    /// The first number that this cipher may not use: 2^32, or where the next part begins.
    end: u64,
}

impl ChunkCipher {
    pub(super) fn new(key: &PayloadKey, aead: Aead, label: &[u8]) -> Result<Self, Unspecified> {
        let derived = Secret::new(
            Transcript::new("theta/payload/key/v1")
                .with("aead", aead.name().as_bytes())
                .with("payload key", key.secret().expose())
                .finish(),
        );
        let (sealing_key, rest) = derived.expose().split_at(32);
        let mut prefix = [0; 7];
        prefix.copy_from_slice(rest.split_at(7).0);
        // A digest, so that a long label is not hashed again for every chunk.
        let associated_data = Transcript::new("theta/payload/label/v1")
            .with("aead", aead.name().as_bytes())
            .with("label", label)
            .finish32();
        let key = Arc::new(LessSafeKey::new(UnboundKey::new(algorithm(aead), sealing_key)?));
        Ok(Self { key, prefix, associated_data, next: 0, end: 1 << 32 })
    }

    /// A cipher for the next `chunks` chunks only, which this one skips. Parts of a payload can so be sealed at the same time
    /// without using a nonce twice.
    pub(super) fn part(&mut self, chunks: usize) -> Self {
        let next = self.next;
        self.next = next.saturating_add(chunks as u64);
        let end = self.next.min(self.end);
        Self { key: Arc::clone(&self.key), prefix: self.prefix, associated_data: self.associated_data, next, end }
    }

    /// prefix (7) || counter (4) || last (1), different for every chunk under a key.
    fn next_nonce(&mut self, last: bool) -> Result<Nonce, Unspecified> {
        if self.next >= self.end {
            return Err(Unspecified);
        }
        let counter = u32::try_from(self.next).map_err(|_| Unspecified)?;
        self.next += 1;
        let mut nonce = [0; 12];
        let (prefix, rest) = nonce.split_at_mut(7);
        prefix.copy_from_slice(&self.prefix);
        let (number, flag) = rest.split_at_mut(4);
        number.copy_from_slice(&counter.to_be_bytes());
        flag.copy_from_slice(&[u8::from(last)]);
        Ok(Nonce::assume_unique_for_key(nonce))
    }

    /// Seals in place and returns the tag.
    pub(super) fn seal(&mut self, chunk: &mut [u8], last: bool) -> Result<[u8; TAG_LEN], Unspecified> {
        let nonce = self.next_nonce(last)?;
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(self.associated_data), chunk)?;
        tag.as_ref().try_into().map_err(|_| Unspecified)
    }

    /// Seals a chunk into `room`, which has room for the chunk and its tag.
    pub(super) fn seal_into(&mut self, chunk: &[u8], room: &mut [u8], last: bool) -> Result<(), Unspecified> {
        let nonce = self.next_nonce(last)?;
        let (sealed, tag) = room.split_at_mut_checked(chunk.len()).ok_or(Unspecified)?;
        self.key.seal_out_of_place_scatter(nonce, Aad::from(self.associated_data), chunk, sealed, &[], tag)
    }

    /// Opens a chunk and its tag into `room`, which has the plaintext's length.
    pub(super) fn open_into(&mut self, sealed: &[u8], room: &mut [u8], last: bool) -> Result<(), Unspecified> {
        let nonce = self.next_nonce(last)?;
        let (chunk, tag) = sealed.split_at_checked(room.len()).ok_or(Unspecified)?;
        self.key.open_separate_gather(nonce, Aad::from(self.associated_data), chunk, tag, room)
    }

    /// Opens a chunk with its tag in place and returns the plaintext.
    pub(super) fn open<'a>(&mut self, sealed: &'a mut [u8], last: bool) -> Result<&'a mut [u8], Unspecified> {
        let nonce = self.next_nonce(last)?;
        self.key.open_in_place(nonce, Aad::from(self.associated_data), sealed)
    }
}
