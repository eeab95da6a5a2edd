//! Sealing and opening in constant memory.

use std::io::{self, Read, Write};
use std::mem;

use theta_groups::Secret;

use super::chunk::ChunkCipher;
use super::{Aead, CHUNK_LEN, Header, PayloadDigest, PayloadKey, TAG_LEN, pipeline};

/// Bytes of every sealed chunk but the last.
pub(super) const SEALED_CHUNK_LEN: usize = CHUNK_LEN + TAG_LEN;
/// How many chunks are hashed at once. BLAKE3 hashes long inputs in parallel; single chunks of 64 KiB and a tag would begin and
/// end within its parallel blocks, which costs a third of its speed.
pub(super) const BATCH: usize = 16;
/// Up to this length, in bytes, a payload is hashed two of BLAKE3's chunks at a time. More at once would use the widest vector
/// registers, for which some processors lower their clock; the work after the hash then loses ten times what the hash gained.
const GENTLY: usize = 32 << 10;
/// Two of BLAKE3's chunks.
const GENTLE_PIECE: usize = 2 << 10;

/// Adds sealed bytes to the payload's hash.
pub(super) fn hash_on(hasher: &mut blake3::Hasher, sealed: &[u8]) {
    let piece = if sealed.len() <= GENTLY { GENTLE_PIECE } else { sealed.len() };
    for piece in sealed.chunks(piece) {
        hasher.update(piece);
    }
}

/// How many batches are held in memory: one being read or written, one sealed, one hashed, and one between them.
const BATCHES_UNDER_WAY: usize = 4;

/// Why a payload does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The bytes before the payload are not a header.
    #[error(transparent)]
    Header(#[from] theta_schemes::RequestError),
    /// Reading the ciphertext or writing the plaintext failed.
    #[error("reading the ciphertext or writing the plaintext: {0}")]
    Io(#[from] io::Error),
    /// The ciphertext ends early.
    #[error("the ciphertext is cut short: chunk {chunk} of {chunks} is incomplete")]
    Truncated {
        /// The number of the first incomplete chunk, from 1.
        chunk: u64,
        /// How many chunks there should be.
        chunks: u64,
    },
    /// Bytes follow the last chunk.
    #[error("there are bytes after the end of the ciphertext")]
    TrailingBytes,
    /// A chunk does not authenticate: it was changed or moved, or the key, label or AEAD is another.
    #[error("chunk {chunk} of {chunks} is not authentic: the ciphertext was changed, or the key is not its own")]
    NotAuthentic {
        /// The number of the chunk, from 1.
        chunk: u64,
        /// How many chunks there are.
        chunks: u64,
    },
    /// All chunks authenticate, but the payload is not the one that the header commits to: somebody who has the key sealed it anew.
    #[error("the payload is not the one that the header commits to; discard what was written")]
    OtherPayload,
}

/// Length of the sealed payload for a plaintext of `len` bytes.
#[must_use]
pub const fn sealed_len(len: u64) -> u64 {
    len.saturating_add(chunk_count(len).saturating_mul(TAG_LEN as u64))
}

/// The number of chunks. An empty payload has one empty chunk.
pub(super) const fn chunk_count(len: u64) -> u64 {
    if len == 0 { 1 } else { len.div_ceil(CHUNK_LEN as u64) }
}

/// Seals all that `reader` gives into `writer`, in constant memory; more than a MiB is sealed and hashed on two further threads.
/// `progress` is called about every MiB with the bytes of plaintext done. The key must be new: no key seals two payloads.
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
    let mut cipher = ChunkCipher::new(key, aead, label).map_err(|_| io::Error::other("the AEAD refused its key"))?;
    let mut hasher = blake3::Hasher::new();
    let (mut len, mut ahead) = (0, None);
    // A payload of one chunk at most gets no larger buffer, all of which would have to be wiped.
    let mut first = Batch::new(SEALED_CHUNK_LEN);
    first.fill(&mut reader, &mut ahead)?;
    if !first.last {
        first = first.enlarged();
        first.fill_on(&mut reader, &mut ahead)?;
    }
    let mut hash = |batch: &mut Batch| {
        hash_on(&mut hasher, batch.sealed());
        Ok(())
    };
    let mut write = |batch: &mut Batch| {
        writer.write_all(batch.sealed())?;
        len += batch.plain as u64;
        progress(len);
        Ok(())
    };
    if first.last {
        first.seal(&mut cipher)?;
        hash(&mut first)?;
        write(&mut first)?;
    } else {
        let mut batches: Vec<_> = (1..BATCHES_UNDER_WAY).map(|_| Batch::new(BATCH * SEALED_CHUNK_LEN)).collect();
        batches.push(first);
        let mut is_first = true;
        let fill = |batch: &mut Batch| {
            if !mem::take(&mut is_first) {
                batch.fill(&mut reader, &mut ahead)?;
            }
            Ok(batch.last)
        };
        pipeline::run::<_, io::Error>(batches, fill, |batch| batch.seal(&mut cipher), hash, write)?;
    }
    Ok(PayloadDigest::new(*hasher.finalize().as_bytes(), len))
}

/// Some chunks of a payload, the last of them perhaps shorter than the others, each with room for its tag.
struct Batch {
    buffer: Secret<Vec<u8>>,
    /// Bytes of plaintext in it.
    plain: usize,
    /// Whether the payload ends with it.
    last: bool,
}

impl Batch {
    fn new(room: usize) -> Self {
        Self { buffer: Secret::new(vec![0; room]), plain: 0, last: false }
    }

    fn chunks(&self) -> usize {
        self.plain.div_ceil(CHUNK_LEN).max(1)
    }

    /// All chunks with their tags.
    fn sealed(&self) -> &[u8] {
        let len = self.plain + self.chunks() * TAG_LEN;
        self.buffer.expose().get(..len).unwrap_or_default()
    }

    fn sealed_mut(&mut self) -> &mut [u8] {
        let len = self.plain + self.chunks() * TAG_LEN;
        self.buffer.expose_mut().get_mut(..len).unwrap_or_default()
    }

    /// The same contents with room for a whole batch.
    fn enlarged(&self) -> Self {
        let mut whole = Self::new(BATCH * SEALED_CHUNK_LEN);
        for (byte, room) in self.buffer.expose().iter().zip(whole.buffer.expose_mut()) {
            *room = *byte;
        }
        Self { plain: self.plain, last: self.last, ..whole }
    }

    /// Reads plaintext. `ahead` is what was read beyond the end of a chunk, to know whether the chunk is the last.
    fn fill(&mut self, reader: &mut impl Read, ahead: &mut Option<u8>) -> io::Result<()> {
        self.plain = 0;
        self.fill_on(reader, ahead)
    }

    /// Reads into the chunks after those that are full.
    fn fill_on(&mut self, reader: &mut impl Read, ahead: &mut Option<u8>) -> io::Result<()> {
        let full = self.plain / CHUNK_LEN;
        for room in self.buffer.expose_mut().chunks_exact_mut(SEALED_CHUNK_LEN).skip(full) {
            // The byte ahead lands where the tag will be.
            let filled = read_on(reader, *ahead, room.split_at_mut(CHUNK_LEN + 1).0)?;
            self.plain += filled.min(CHUNK_LEN);
            self.last = filled <= CHUNK_LEN;
            if self.last {
                break;
            }
            *ahead = room.get(CHUNK_LEN).copied();
        }
        Ok(())
    }

    /// Seals every chunk in place.
    fn seal(&mut self, cipher: &mut ChunkCipher) -> io::Result<()> {
        let too_large = |_| io::Error::new(io::ErrorKind::FileTooLarge, "over 2^48 bytes: encrypt it in parts");
        let (chunks, payload_ends) = (self.chunks(), self.last);
        for (number, room) in (1..).zip(self.sealed_mut().chunks_mut(SEALED_CHUNK_LEN)) {
            let (chunk, tag) = room.split_at_mut(room.len() - TAG_LEN);
            tag.copy_from_slice(&cipher.seal(chunk, payload_ends && number == chunks).map_err(too_large)?);
        }
        Ok(())
    }
}

/// Opens the payload that follows `header` in `reader`. Each chunk is authenticated before it is written, and at the end the
/// payload's digest is checked against the header: on any error the caller must discard what was written. Returns the
/// plaintext's length in bytes. `progress` is called about every MiB with the bytes of plaintext done.
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
    let chunks = chunk_count(header.payload().plaintext_len());
    let mut cipher = ChunkCipher::new(key, header.aead(), header.label().bytes())
        .map_err(|_| OpenError::NotAuthentic { chunk: 1, chunks })?;
    let mut hasher = blake3::Hasher::new();
    let (mut remaining, mut read, mut opened, mut done) = (header.payload().plaintext_len(), 0, 0, 0);
    let mut fill = |batch: &mut Batch| {
        batch.plain = usize::try_from(remaining).unwrap_or(usize::MAX).min(BATCH * CHUNK_LEN);
        remaining -= batch.plain as u64;
        batch.last = remaining == 0;
        let sealed = batch.sealed_mut();
        let filled = read_full(&mut reader, sealed)?;
        if filled < sealed.len() {
            return Err(OpenError::Truncated { chunk: read + 1 + (filled / SEALED_CHUNK_LEN) as u64, chunks });
        }
        read += batch.chunks() as u64;
        Ok(batch.last)
    };
    let mut hash = |batch: &mut Batch| {
        hash_on(&mut hasher, batch.sealed());
        Ok(())
    };
    let mut open = |batch: &mut Batch| {
        for sealed in batch.sealed_mut().chunks_mut(SEALED_CHUNK_LEN) {
            opened += 1;
            let forged = |_| OpenError::NotAuthentic { chunk: opened, chunks };
            cipher.open(sealed, opened == chunks).map_err(forged)?;
        }
        Ok(())
    };
    let mut write = |batch: &mut Batch| {
        for opened in batch.sealed().chunks(SEALED_CHUNK_LEN) {
            writer.write_all(opened.split_at(opened.len() - TAG_LEN).0)?;
        }
        done += batch.plain as u64;
        progress(done);
        Ok(())
    };
    let sealed = sealed_len(header.payload().plaintext_len());
    if sealed <= (BATCH * SEALED_CHUNK_LEN) as u64 {
        // No larger than the payload, because all of the buffer is wiped at the end.
        let mut only = Batch::new(usize::try_from(sealed).unwrap_or(usize::MAX));
        fill(&mut only)?;
        hash(&mut only)?;
        open(&mut only)?;
        write(&mut only)?;
    } else {
        let batches = (0..BATCHES_UNDER_WAY).map(|_| Batch::new(BATCH * SEALED_CHUNK_LEN)).collect();
        pipeline::run(batches, fill, hash, open, write)?;
    }
    if read_full(&mut reader, &mut [0])? != 0 {
        return Err(OpenError::TrailingBytes);
    }
    if hasher.finalize() != *header.payload().hash() {
        return Err(OpenError::OtherPayload);
    }
    Ok(header.payload().plaintext_len())
}

/// Fills the buffer as far as the input goes, beginning with the byte read ahead if there is one. Returns how much is filled.
fn read_on(reader: &mut impl Read, ahead: Option<u8>, buffer: &mut [u8]) -> io::Result<usize> {
    match (ahead, buffer.split_first_mut()) {
        (Some(byte), Some((first, rest))) => {
            *first = byte;
            Ok(1 + read_full(reader, rest)?)
        }
        _ => read_full(reader, buffer),
    }
}

/// Fills the buffer as far as the input goes. Returns how much is filled.
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
