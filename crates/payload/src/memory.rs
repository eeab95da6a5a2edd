//! Sealing and opening in memory, on all processors and without buffers in between.

use std::io;

use theta_groups::Secret;

use super::chunk::ChunkCipher;
use super::parallel::in_order;
use super::stream::{SEALED_CHUNK_LEN, chunk_count, hash_on};
use super::{Aead, CHUNK_LEN, Header, OpenError, PayloadDigest, PayloadKey, sealed_len};

/// Up to this length in bytes one thread does all the work: more threads would cost more than they save.
const ALONE: usize = 256 << 10;
/// How many chunks a thread takes at a time.
const PART: usize = 4;

/// Seals into `room` of exactly [`sealed_len`] bytes. The key must be new.
///
/// # Errors
/// [`io::Error`] if `room` has another length, there are over 2^48 bytes, or no thread can be started.
pub(super) fn seal_into(
    plaintext: &[u8],
    room: &mut [u8],
    key: &PayloadKey,
    aead: Aead,
    label: &[u8],
) -> io::Result<PayloadDigest> {
    let len = plaintext.len() as u64;
    if room.len() as u64 != sealed_len(len) {
        return Err(io::Error::other("the output is not as long as the sealed payload"));
    }
    let mut cipher = ChunkCipher::new(key, aead, label).map_err(|_| io::Error::other("the AEAD refused its key"))?;
    let mut hasher = blake3::Hasher::new();
    if plaintext.len() <= ALONE {
        seal_part(&mut cipher, plaintext, room, true)?;
        hash_on(&mut hasher, room);
    } else {
        let parts = plaintext.len().div_ceil(PART * CHUNK_LEN);
        let plain = plaintext.chunks(PART * CHUNK_LEN);
        let jobs = plain.zip(room.chunks_mut(PART * SEALED_CHUNK_LEN)).zip(1..);
        let seal = |((plain, room), number)| ((cipher.part(PART), number == parts), plain, room);
        in_order(
            jobs.map(seal),
            |((mut cipher, ends), plain, room): ((ChunkCipher, bool), &[u8], &mut [u8])| {
                seal_part(&mut cipher, plain, room, ends)?;
                Ok::<&[u8], io::Error>(room)
            },
            |sealed| hash_on(&mut hasher, sealed),
        )?;
    }
    Ok(PayloadDigest::new(*hasher.finalize().as_bytes(), len))
}

/// Seals chunks one after the other; `ends` says whether the payload ends with them.
fn seal_part(cipher: &mut ChunkCipher, plain: &[u8], room: &mut [u8], ends: bool) -> io::Result<()> {
    let too_large = |_| io::Error::new(io::ErrorKind::FileTooLarge, "over 2^48 bytes: encrypt it in parts");
    // An empty payload has one empty chunk.
    let (mut chunks, count) = (plain.chunks(CHUNK_LEN), room.len().div_ceil(SEALED_CHUNK_LEN));
    for (room, number) in room.chunks_mut(SEALED_CHUNK_LEN).zip(1..) {
        let chunk = chunks.next().unwrap_or_default();
        cipher.seal_into(chunk, room, ends && number == count).map_err(too_large)?;
    }
    Ok(())
}

/// Opens a whole payload. The plaintext is wiped when it is dropped, and on any error.
///
/// # Errors
/// Any [`OpenError`].
pub(super) fn open(key: &PayloadKey, header: &Header<'_>, payload: &[u8]) -> Result<Secret<Vec<u8>>, OpenError> {
    let len = header.payload().plaintext_len();
    let chunks = chunk_count(len);
    if (payload.len() as u64) < sealed_len(len) {
        return Err(OpenError::Truncated { chunk: (payload.len() / SEALED_CHUNK_LEN) as u64 + 1, chunks });
    }
    if payload.len() as u64 > sealed_len(len) {
        return Err(OpenError::TrailingBytes);
    }
    // The payload was found to be longer than this, so a false header cannot make us reserve memory.
    let mut plaintext = Secret::new(vec![0; usize::try_from(len).unwrap_or_default()]);
    let mut cipher = ChunkCipher::new(key, header.aead(), header.label().bytes())
        .map_err(|_| OpenError::NotAuthentic { chunk: 1, chunks })?;
    let room = plaintext.expose_mut();
    let mut hasher = blake3::Hasher::new();
    if payload.len() <= ALONE {
        open_part(&mut cipher, payload, room, 1, chunks)?;
        hash_on(&mut hasher, payload);
    } else {
        let sealed = payload.chunks(PART * SEALED_CHUNK_LEN);
        let jobs = sealed.zip(room.chunks_mut(PART * CHUNK_LEN)).zip((1..).step_by(PART));
        in_order(
            jobs.map(|((sealed, room), first)| ((cipher.part(PART), first), sealed, room)),
            |((mut cipher, first), sealed, room): ((ChunkCipher, u64), &[u8], &mut [u8])| {
                open_part(&mut cipher, sealed, room, first, chunks)?;
                Ok::<&[u8], OpenError>(sealed)
            },
            |sealed| hash_on(&mut hasher, sealed),
        )?;
    }
    if hasher.finalize() == *header.payload().hash() { Ok(plaintext) } else { Err(OpenError::OtherPayload) }
}

/// Opens chunks one after the other, the first of which is number `first` of `chunks`.
fn open_part(
    cipher: &mut ChunkCipher,
    sealed: &[u8],
    room: &mut [u8],
    first: u64,
    chunks: u64,
) -> Result<(), OpenError> {
    let mut room = room.chunks_mut(CHUNK_LEN);
    for (chunk, sealed) in (first..).zip(sealed.chunks(SEALED_CHUNK_LEN)) {
        let forged = |_| OpenError::NotAuthentic { chunk, chunks };
        cipher.open_into(sealed, room.next().unwrap_or_default(), chunk == chunks).map_err(forged)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal_stream;

    #[test]
    fn memory_and_stream_seal_alike() {
        let key = PayloadKey::from_bytes(&[7; 32]).unwrap();
        for aead in [Aead::ChaCha20Poly1305, Aead::Aes256Gcm] {
            for chunks in [0, 1, 2, 4, 16, 17, 33] {
                for beside in [0, 1, CHUNK_LEN - 1] {
                    let plaintext: Vec<u8> = (0..=250).cycle().take(chunks * CHUNK_LEN + beside).collect();
                    let mut streamed = Vec::new();
                    let digest = seal_stream(&*plaintext, &mut streamed, &key, aead, b"label", &mut |_| {}).unwrap();
                    let mut room = vec![0; streamed.len()];
                    assert_eq!(seal_into(&plaintext, &mut room, &key, aead, b"label").unwrap(), digest);
                    assert!(room == streamed, "{chunks} chunks and {beside} bytes");
                }
            }
        }
    }

    #[test]
    fn the_room_must_be_exact() {
        let key = PayloadKey::from_bytes(&[7; 32]).unwrap();
        for room in [0, 18, 20] {
            seal_into(b"abc", &mut vec![0; room], &key, Aead::default(), b"").unwrap_err();
        }
        seal_into(b"abc", &mut [0; 19], &key, Aead::default(), b"").unwrap();
    }
}
