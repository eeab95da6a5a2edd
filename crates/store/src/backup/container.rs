//! The container of a backup: a head in clear, then sealed chunks.
//!
//! `magic || version || store id || wrapped key || chunks`. Each chunk is its length with a bit for the last one, and
//! its ciphertext under AES-256-GCM-SIV with the nonce `prefix || counter || last` (the STREAM construction), so that a
//! chunk that is missing, moved or repeated is detected, and so is a missing end. The key is drawn for this backup
//! alone; the key and the prefix of the chunks are derived from it and the whole head.

use std::io::{self, ErrorKind, Read, Write};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use theta_groups::{Secret, Transcript};
use zeroize::Zeroize;

use crate::StoreError;
use crate::codec::{Decoder, encoder};
use crate::incarnation::StoreId;
use crate::seal::{Chance, SealingKey, TAG_LEN, Wrapped};

const MAGIC: &[u8; 12] = b"theta-backup";
/// The version of backups; it is also the version byte of the head's record.
const VERSION: u8 = crate::codec::RECORD_VERSION;
const PLACE: &str = "the backup";
const TABLE: &str = "backup";
/// Bytes of plaintext in every chunk but the last.
const CHUNK_LEN: usize = 64 << 10;
/// Limit of the head's record, in bytes.
const MOST_HEAD: usize = 1 << 10;
const LAST: u32 = 1 << 31;

/// Seals or opens the chunks in order.
struct Chunks {
    key: LessSafeKey,
    prefix: [u8; 7],
    counter: u32,
}

impl Chunks {
    fn new(key: &Secret<[u8; 32]>, head: &[u8]) -> Result<Self, StoreError> {
        let mut derived =
            Transcript::new("theta/store/backup/v1").with("key", key.expose()).with("head", head).finish();
        let (key, rest) = derived.split_at(32);
        let key = UnboundKey::new(&AES_256_GCM_SIV, key).map(LessSafeKey::new).map_err(|_| StoreError::Sealing);
        let mut prefix = [0; 7];
        prefix.copy_from_slice(rest.split_at(7).0);
        derived.zeroize();
        Ok(Self { key: key?, prefix, counter: 0 })
    }

    fn next_nonce(&mut self, last: bool) -> Result<Nonce, StoreError> {
        let mut nonce = [0; 12];
        let (prefix, rest) = nonce.split_at_mut(7);
        prefix.copy_from_slice(&self.prefix);
        let (counter, flag) = rest.split_at_mut(4);
        counter.copy_from_slice(&self.counter.to_be_bytes());
        flag.copy_from_slice(&[u8::from(last)]);
        self.counter = self.counter.checked_add(1).ok_or(StoreError::Backup("longer than one can be"))?;
        Ok(Nonce::assume_unique_for_key(nonce))
    }
}

/// Writes a backup.
pub(super) struct Sealed<W> {
    writer: W,
    chunks: Chunks,
    buffer: Secret<Vec<u8>>,
}

impl<W: Write> Sealed<W> {
    pub(super) fn new(mut writer: W, id: StoreId, key: &SealingKey, chance: &Chance) -> Result<Self, StoreError> {
        let backup_key = chance.secret()?;
        let wrapped = Wrapped::wrap(&backup_key, key, TABLE, &id.0, chance)?;
        let record = wrapped.encode(encoder(160).raw(&id.0)).finish();
        let head = record.expose();
        let len = u16::try_from(head.len()).map_err(|_| StoreError::Sealing)?;
        let write = |writer: &mut W| {
            writer.write_all(MAGIC)?;
            writer.write_all(&len.to_be_bytes())?;
            writer.write_all(head)
        };
        write(&mut writer).map_err(io_error)?;
        let chunks = Chunks::new(&backup_key, head)?;
        // The buffer has room for a whole chunk from the start: a buffer that grows leaves copies behind.
        Ok(Self { writer, chunks, buffer: Secret::new(Vec::with_capacity(CHUNK_LEN + TAG_LEN)) })
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        while !bytes.is_empty() {
            if self.buffer.expose().len() == CHUNK_LEN {
                self.flush(false)?;
            }
            let room = CHUNK_LEN.saturating_sub(self.buffer.expose().len());
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.expose_mut().extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    fn flush(&mut self, last: bool) -> Result<(), StoreError> {
        let nonce = self.chunks.next_nonce(last)?;
        self.chunks
            .key
            .seal_in_place_append_tag(nonce, Aad::empty(), self.buffer.expose_mut())
            .map_err(|_| StoreError::Sealing)?;
        let len = u32::try_from(self.buffer.expose().len()).map_err(|_| StoreError::Sealing)?;
        let len = if last { len | LAST } else { len };
        let written = self.writer.write_all(&len.to_be_bytes());
        written.and_then(|()| self.writer.write_all(self.buffer.expose())).map_err(io_error)?;
        self.buffer.expose_mut().clear();
        Ok(())
    }

    /// Writes the last chunk.
    pub(super) fn finish(mut self) -> Result<(), StoreError> {
        self.flush(true)?;
        self.writer.flush().map_err(io_error)
    }
}

/// Reads a backup.
pub(super) struct Opened<R> {
    reader: R,
    chunks: Chunks,
    buffer: Secret<Vec<u8>>,
    /// How much of the buffer has been read.
    taken: usize,
    last: bool,
}

impl<R: Read> Opened<R> {
    pub(super) fn new(mut reader: R, key: &SealingKey) -> Result<Self, StoreError> {
        let mut magic = [0; MAGIC.len()];
        read_exact(&mut reader, &mut magic)?;
        if magic != *MAGIC {
            return Err(StoreError::NotAStore(PLACE.to_owned()));
        }
        let mut len = [0; 2];
        read_exact(&mut reader, &mut len)?;
        let mut head = vec![0; usize::from(u16::from_be_bytes(len)).min(MOST_HEAD)];
        read_exact(&mut reader, &mut head)?;
        if let Some(&found) = head.first()
            && found != VERSION
        {
            return Err(StoreError::Format { place: PLACE.to_owned(), found, known: VERSION });
        }
        let mut decoder = Decoder::new(TABLE, &head)?;
        let id: [u8; 16] = decoder.array()?;
        let wrapped = Wrapped::decode(&mut decoder)?;
        decoder.finish(())?;
        let chunks = Chunks::new(&wrapped.unwrap(key, TABLE, &id, PLACE)?, &head)?;
        let buffer = Secret::new(Vec::with_capacity(CHUNK_LEN + TAG_LEN));
        Ok(Self { reader, chunks, buffer, taken: 0, last: false })
    }

    fn fill(&mut self) -> Result<(), StoreError> {
        if self.last {
            return Err(StoreError::Backup("cut short"));
        }
        let mut head = [0; 4];
        read_exact(&mut self.reader, &mut head)?;
        let head = u32::from_be_bytes(head);
        self.last = head & LAST != 0;
        let len = usize::try_from(head & !LAST).unwrap_or(usize::MAX);
        // Only the last one may be shorter: a backup has one form.
        let shortest = if self.last { TAG_LEN } else { CHUNK_LEN + TAG_LEN };
        if !(shortest..=CHUNK_LEN + TAG_LEN).contains(&len) {
            return Err(StoreError::Backup("damaged"));
        }
        self.buffer.expose_mut().clear();
        self.buffer.expose_mut().resize(len, 0);
        read_exact(&mut self.reader, self.buffer.expose_mut())?;
        let nonce = self.chunks.next_nonce(self.last)?;
        let opened = self.chunks.key.open_in_place(nonce, Aad::empty(), self.buffer.expose_mut());
        let len = opened.map_err(|_| StoreError::Backup("not what was written: it was changed"))?.len();
        self.buffer.expose_mut().truncate(len);
        self.taken = 0;
        Ok(())
    }

    /// Reads exactly `len` bytes.
    pub(super) fn read(&mut self, len: usize) -> Result<Secret<Vec<u8>>, StoreError> {
        let mut bytes = Secret::new(Vec::with_capacity(len));
        while bytes.expose().len() < len {
            let left = self.buffer.expose().get(self.taken..).unwrap_or_default();
            if left.is_empty() {
                self.fill()?;
                continue;
            }
            let now = left.get(..len.saturating_sub(bytes.expose().len())).unwrap_or(left);
            bytes.expose_mut().extend_from_slice(now);
            self.taken = self.taken.saturating_add(now.len());
        }
        Ok(bytes)
    }

    /// Checks that nothing is left.
    pub(super) fn finish(mut self) -> Result<(), StoreError> {
        if self.taken < self.buffer.expose().len() {
            return Err(StoreError::Backup("longer than its content"));
        }
        while !self.last {
            self.fill()?;
            if !self.buffer.expose().is_empty() {
                return Err(StoreError::Backup("longer than its content"));
            }
        }
        match self.reader.read(&mut [0; 1]).map_err(io_error)? {
            0 => Ok(()),
            _ => Err(StoreError::Backup("followed by other bytes")),
        }
    }
}

fn read_exact(reader: &mut impl Read, bytes: &mut [u8]) -> Result<(), StoreError> {
    reader.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => StoreError::Backup("cut short"),
        _ => io_error(error),
    })
}

fn io_error(error: io::Error) -> StoreError {
    StoreError::io(PLACE, error)
}
