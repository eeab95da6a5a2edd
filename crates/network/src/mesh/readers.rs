//! Who reads the archive now.
//!
//! Whoever is let in may say nothing for as long as a handshake may take, with as many connections as it likes. So each certificate has one question
//! at a time, and those who are no peers have half of the places together. Places go by certificates, which are proven; machines of
//! several members may well have one address.

use std::sync::{Mutex, PoisonError};

use crate::Fingerprint;

/// Questions to the archive that are answered at once.
const READERS: usize = 4;
/// Those of them that are asked by others than peers.
const STRANGERS: usize = READERS / 2;

/// The places of those who read.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<Vec<(Fingerprint, bool)>>);

/// A place; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    readers: &'a Readers,
    certificate: Fingerprint,
}

impl Readers {
    /// A place for a question of whoever has this certificate, if there is one for it.
    pub(super) fn enter(&self, certificate: Fingerprint, is_peer: bool) -> Option<Turn<'_>> {
        let mut present = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let strangers = present.iter().filter(|(_, is_peer)| !is_peer).count();
        let reads = present.iter().any(|(reader, _)| *reader == certificate);
        if reads || present.len() >= READERS || (!is_peer && strangers >= STRANGERS) {
            return None;
        }
        present.push((certificate, is_peer));
        Some(Turn { readers: self, certificate })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.readers.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(reader, _)| *reader != self.certificate);
    }
}
