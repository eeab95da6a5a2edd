//! Sealing and opening what is in memory: from where it is to where it goes, without buffers between.

use std::io;
use std::sync::mpsc::channel;
use std::thread::{self, Builder};

use theta_groups::Secret;

use super::chunk::ChunkCipher;
use super::stream::{BATCH, SEALED_CHUNK_LEN, chunk_count};
use super::{Aead, CHUNK_LEN, Header, OpenError, PayloadDigest, PayloadKey, sealed_len};

/// What is longer is hashed on a thread of its own; under this length the thread would cost more than it saves.
const ALONE: usize = 256 << 10;

/// Seals into room of exactly [`sealed_len`] bytes. The key must be new.
///
/// # Errors
/// [`io::Error`] if the room has another length, there are over 2^48 bytes, or no thread can be started.
pub(super) fn seal_into(
    plaintext: &[u8],
    room: &mut [u8],
    key: &PayloadKey,
    aead: Aead,
    label: &[u8],
) -> io::Result<PayloadDigest> {
    let len = plaintext.len() as u64;
    if room.len() as u64 != sealed_len(len) {
        return Err(io::Error::other("the room is not that of the sealed payload"));
    }
    let mut cipher = ChunkCipher::new(key, aead, label).map_err(|_| io::Error::other("the AEAD refused its key"))?;
    let mut hasher = blake3::Hasher::new();
    let mut sealed_chunks = 0;
    let mut seal = |batch: &mut [u8], plain: &[u8]| {
        // An empty payload has one empty chunk.
        let mut chunks = plain.chunks(CHUNK_LEN);
        for room in batch.chunks_mut(SEALED_CHUNK_LEN) {
            sealed_chunks += 1;
            let chunk = chunks.next().unwrap_or_default();
            let too_large = |_| io::Error::new(io::ErrorKind::FileTooLarge, "over 2^48 bytes: encrypt it in parts");
            cipher.seal_into(chunk, room, sealed_chunks == chunk_count(len)).map_err(too_large)?;
        }
        Ok::<(), io::Error>(())
    };
    if plaintext.len() <= ALONE {
        seal(room, plaintext)?;
        hasher.update(room);
    } else {
        thread::scope(|scope| {
            let (pass, passed) = channel::<&[u8]>();
            let hasher = &mut hasher;
            let hash = move || passed.into_iter().for_each(|batch| _ = hasher.update(batch));
            Builder::new().spawn_scoped(scope, hash)?;
            for (room, plain) in room.chunks_mut(BATCH * SEALED_CHUNK_LEN).zip(plaintext.chunks(BATCH * CHUNK_LEN)) {
                seal(room, plain)?;
                // It takes all until the end.
                let _ = pass.send(room);
            }
            drop(pass);
            Ok::<(), io::Error>(())
        })?;
    }
    Ok(PayloadDigest { hash: *hasher.finalize().as_bytes(), len })
}

/// Opens a payload that is all there. The plaintext is wiped when dropped, or when it turns out to be false.
///
/// # Errors
/// Any [`OpenError`].
pub(super) fn open(key: &PayloadKey, header: &Header<'_>, payload: &[u8]) -> Result<Secret<Vec<u8>>, OpenError> {
    let len = header.digest.len;
    let chunks = chunk_count(len);
    if (payload.len() as u64) < sealed_len(len) {
        return Err(OpenError::Truncated { chunk: (payload.len() / SEALED_CHUNK_LEN) as u64 + 1, chunks });
    }
    if payload.len() as u64 > sealed_len(len) {
        return Err(OpenError::TrailingBytes);
    }
    // No longer than the payload, which is there: never reserved on the header's word alone.
    let mut plaintext = Secret::new(vec![0; usize::try_from(len).unwrap_or_default()]);
    let mut cipher =
        ChunkCipher::new(key, header.aead, header.label).map_err(|_| OpenError::NotAuthentic { chunk: 1, chunks })?;
    let room = plaintext.expose_mut();
    let mut open = || {
        let mut room = room.chunks_mut(CHUNK_LEN);
        for (number, sealed) in (1..).zip(payload.chunks(SEALED_CHUNK_LEN)) {
            let forged = |_| OpenError::NotAuthentic { chunk: number, chunks };
            cipher.open_into(sealed, room.next().unwrap_or_default(), number == chunks).map_err(forged)?;
        }
        Ok::<(), OpenError>(())
    };
    let hash = if payload.len() <= ALONE {
        open()?;
        blake3::hash(payload)
    } else {
        thread::scope(|scope| {
            let hashing = Builder::new().spawn_scoped(scope, || blake3::hash(payload))?;
            open()?;
            let ended = |_| io::Error::other("the thread that hashes the payload ended early");
            Ok::<_, OpenError>(hashing.join().map_err(ended)?)
        })?
    };
    if hash == header.digest.hash { Ok(plaintext) } else { Err(OpenError::OtherPayload) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ciphers::payload::seal_stream;

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
