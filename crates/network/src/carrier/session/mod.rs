//! One agreed session: what seals frames to the peer and opens those from it. Nothing that it cannot open changes it.

mod window;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use bytes::{Bytes, BytesMut};
use core::fmt;

pub(super) use self::window::{RECENT_WORDS, Window};
use super::frame::{self, Route, SEALED_HEADER_BYTES, TAG_BYTES};

/// A session seals fewer frames than this; it is renewed long before.
const MOST_FRAMES: u64 = 1 << 40;

/// A key of AES-256-GCM that belongs to one direction of one session.
pub(super) struct Key(LessSafeKey);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// `None` only if the library refuses 32 bytes.
    pub(super) fn new(bytes: &[u8; 32]) -> Option<Self> {
        UnboundKey::new(&AES_256_GCM, bytes).ok().map(|key| Self(LessSafeKey::new(key)))
    }

    /// Seals what stands in `frame` behind `header` bytes, which are authenticated with it.
    pub(super) fn seal(&self, number: u64, frame: &mut BytesMut, header: usize) -> Option<()> {
        let (clear, secret) = frame.split_at_mut_checked(header)?;
        let tag = self.0.seal_in_place_separate_tag(nonce(number), Aad::from(clear), secret).ok()?;
        frame.extend_from_slice(tag.as_ref());
        Some(())
    }

    /// Opens what was sealed with this header. `None`: it was not.
    pub(super) fn open(&self, number: u64, header: &[u8], sealed: &[u8]) -> Option<Bytes> {
        let (secret, tag) = sealed.split_at_checked(sealed.len().checked_sub(TAG_BYTES)?)?;
        let mut plain = BytesMut::zeroed(secret.len());
        self.0.open_separate_gather(nonce(number), Aad::from(header), secret, tag, &mut plain).ok()?;
        Some(plain.freeze())
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    let (_, counter) = nonce.split_at_mut(NONCE_LEN - 8);
    counter.copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// A session as one of its two sides has it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: [u8; 8],
    route: Route,
    seals: Key,
    opens: Key,
    next: u64,
    came: Window,
}

impl Session {
    /// `route` is that of the frames which this side sends.
    pub(super) fn new(id: [u8; 8], route: Route, seals: Key, opens: Key) -> Self {
        Self { id, route, seals, opens, next: 0, came: Window::default() }
    }

    /// The number of the next frame; all lower ones have been sealed.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Whether so many frames have been sealed that it should be renewed.
    pub(super) const fn is_long(&self) -> bool {
        self.next > MOST_FRAMES / 2
    }

    pub(super) const fn came(&self) -> &Window {
        &self.came
    }

    /// Seals items into a frame. `None`: the session has come to its end.
    pub(super) fn seal(&mut self, items: &[u8]) -> Option<(u64, Bytes)> {
        let number = self.next;
        if number >= MOST_FRAMES {
            return None;
        }
        let mut frame =
            BytesMut::with_capacity(SEALED_HEADER_BYTES.saturating_add(items.len()).saturating_add(TAG_BYTES));
        frame::put_sealed_header(&mut frame, self.route, self.id, number);
        frame.extend_from_slice(items);
        self.seals.seal(number, &mut frame, SEALED_HEADER_BYTES)?;
        self.next = number.saturating_add(1);
        Some((number, frame.freeze()))
    }

    /// Opens a frame that came. `None`: it is false, or has come before, or is too old; nothing has changed. Whoever keeps what is in it
    /// says so by [`keep`](Self::keep).
    pub(super) fn open(&self, number: u64, header: &[u8], sealed: &[u8]) -> Option<Bytes> {
        if !self.came.is_new(number) {
            return None;
        }
        self.opens.open(number, header, sealed)
    }

    /// The frame of this number was opened, and need not come again.
    pub(super) fn keep(&mut self, number: u64) {
        self.came.take(number);
    }
}
