//! Sealing and opening in constant memory.

use std::io::{self, Read, Write};

use theta_groups::Secret;

use super::chunk::ChunkCipher;
use super::{Aead, CHUNK_LEN, Header, PayloadKey, TAG_LEN};

/// Bytes of every sealed chunk but the last.
const SEALED_CHUNK_LEN: usize = CHUNK_LEN + TAG_LEN;
/// How many chunks are hashed at once, and so are held in memory: BLAKE3 takes long pieces in parallel, and one of 64 KiB
/// and a tag begins and ends in the middle of what it would take at once, which costs a third of its speed.
const BATCH: usize = 16;

/// What a header says of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadDigest {
    pub(super) hash: [u8; 32],
    pub(super) len: u64,
}

impl PayloadDigest {
    /// BLAKE3 of the sealed payload.
    #[must_use]
    pub const fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// Length of the plaintext in bytes.
    #[must_use]
    pub const fn plaintext_len(&self) -> u64 {
        self.len
    }
}

/// Why a payload does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// What stands before the payload is not a header.
    #[error(transparent)]
    Header(#[from] crate::RequestError),
    /// Reading the ciphertext or writing the plaintext failed.
    #[error("reading the ciphertext or writing the plaintext: {0}")]
    Io(#[from] io::Error),
    /// It ends early.
    #[error("the ciphertext is cut short: chunk {chunk} of {chunks} is incomplete")]
    Truncated {
        /// Counted from 1.
        chunk: u64,
        /// How many there should be.
        chunks: u64,
    },
    /// There is something after the last chunk.
    #[error("there are bytes after the end of the ciphertext")]
    TrailingBytes,
    /// A chunk is not what was sealed: changed, moved, or the key, label or AEAD is another.
    #[error("chunk {chunk} of {chunks} is not authentic: the ciphertext was changed, or the key is not its own")]
    NotAuthentic {
        /// Counted from 1.
        chunk: u64,
        /// How many there are.
        chunks: u64,
    },
    /// All chunks opened, yet this is not the payload that the header was made with.
    #[error("the payload is not the one that the header commits to; discard what was written")]
    OtherPayload,
}

/// Length of the sealed payload for a plaintext of `len` bytes.
#[must_use]
pub const fn sealed_len(len: u64) -> u64 {
    len.saturating_add(chunk_count(len).saturating_mul(TAG_LEN as u64))
}

/// An empty payload has one empty chunk.
const fn chunk_count(len: u64) -> u64 {
    if len == 0 { 1 } else { len.div_ceil(CHUNK_LEN as u64) }
}

/// Seals all that `reader` gives into `writer`, in constant memory. `progress` is told the bytes of plaintext done, about
/// every MiB. The key must be new: it is never used for two payloads.
///
/// # Errors
/// Those of the reader and writer, and [`io::ErrorKind::FileTooLarge`] over 2^48 bytes.
pub fn seal_stream(
    mut reader: impl Read,
    mut writer: impl Write,
    key: &PayloadKey,
    aead: Aead,
    label: &[u8],
    progress: &mut dyn FnMut(u64),
) -> io::Result<PayloadDigest> {
    let too_large = |_| io::Error::new(io::ErrorKind::FileTooLarge, "over 2^48 bytes: encrypt it in parts");
    let mut cipher = ChunkCipher::new(key, aead, label).map_err(|_| io::Error::other("the AEAD refused its key"))?;
    let mut hasher = blake3::Hasher::new();
    let mut len = 0;
    let mut batch = vec![0; BATCH * SEALED_CHUNK_LEN];
    // What was read ahead of the chunk's end, to know whether the chunk is the last.
    let mut ahead = None;
    loop {
        let mut sealed = 0;
        let mut last = false;
        for room in batch.chunks_exact_mut(SEALED_CHUNK_LEN) {
            // The byte ahead lands where the tag will be.
            let filled = read_on(&mut reader, ahead, room.split_at_mut(CHUNK_LEN + 1).0)?;
            last = filled <= CHUNK_LEN;
            let (chunk, rest) = room.split_at_mut(filled.min(CHUNK_LEN));
            let (tag, _) = rest.split_at_mut(TAG_LEN);
            ahead = tag.first().copied();
            tag.copy_from_slice(&cipher.seal(chunk, last).map_err(too_large)?);
            len += chunk.len() as u64;
            sealed += chunk.len() + TAG_LEN;
            if last {
                break;
            }
        }
        let (sealed, _) = batch.split_at(sealed);
        hasher.update(sealed);
        writer.write_all(sealed)?;
        progress(len);
        if last {
            return Ok(PayloadDigest { hash: *hasher.finalize().as_bytes(), len });
        }
    }
}

/// Opens the payload that follows `header` in `reader`. Each chunk is authenticated before it is written; at the end
/// the payload's digest is checked against the header, and on any error what was written must be discarded. Returns the
/// plaintext's length. `progress` is told the bytes of plaintext done, about every MiB.
///
/// # Errors
/// Any [`OpenError`].
pub fn open_stream(
    key: &PayloadKey,
    header: &Header<'_>,
    mut reader: impl Read,
    mut writer: impl Write,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, OpenError> {
    let chunks = chunk_count(header.digest.len);
    let mut cipher =
        ChunkCipher::new(key, header.aead, header.label).map_err(|_| OpenError::NotAuthentic { chunk: 1, chunks })?;
    let mut hasher = blake3::Hasher::new();
    let mut remaining = header.digest.len;
    // Not larger than the payload: all of it is wiped at the end.
    let room = usize::try_from(sealed_len(remaining)).unwrap_or(usize::MAX).min(BATCH * SEALED_CHUNK_LEN);
    let mut buffer = Secret::new(vec![0; room]);
    let mut chunk = 0;
    while chunk < chunks {
        let plain = usize::try_from(remaining).unwrap_or(usize::MAX).min(BATCH * CHUNK_LEN);
        let batch = buffer.expose_mut().split_at_mut(plain + plain.div_ceil(CHUNK_LEN).max(1) * TAG_LEN).0;
        let filled = read_full(&mut reader, batch)?;
        if filled < batch.len() {
            return Err(OpenError::Truncated { chunk: chunk + 1 + (filled / SEALED_CHUNK_LEN) as u64, chunks });
        }
        hasher.update(batch);
        for sealed in batch.chunks_mut(SEALED_CHUNK_LEN) {
            chunk += 1;
            let opened = cipher.open(sealed, chunk == chunks).map_err(|_| OpenError::NotAuthentic { chunk, chunks })?;
            writer.write_all(opened)?;
        }
        remaining -= plain as u64;
        progress(header.digest.len - remaining);
    }
    if read_full(&mut reader, &mut [0])? != 0 {
        return Err(OpenError::TrailingBytes);
    }
    if hasher.finalize() != header.digest.hash {
        return Err(OpenError::OtherPayload);
    }
    Ok(header.digest.len)
}

/// Fills the buffer, which begins with the byte read ahead if there is one, as far as there is anything.
fn read_on(reader: &mut impl Read, ahead: Option<u8>, buffer: &mut [u8]) -> io::Result<usize> {
    match (ahead, buffer.split_first_mut()) {
        (Some(byte), Some((first, rest))) => {
            *first = byte;
            Ok(1 + read_full(reader, rest)?)
        }
        _ => read_full(reader, buffer),
    }
}

/// Fills the buffer, or as much of it as there is.
fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
