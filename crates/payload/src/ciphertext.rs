//! Whole ciphertexts: header and sealed payload.

use std::io::{self, Read, Seek, SeekFrom, Write};

use rand_core::CryptoRng;
use theta_groups::Secret;

use super::header::{PREAMBLE_LEN, header_len, total_len, write_envelope};
use super::{Aead, Header, OpenError, PayloadKey, memory, seal_stream, sealed_len};
use crate::keys::AnyPublicKey;
use crate::statement::{MAX_LABEL_LEN, check_size};
use crate::with_key;
use crate::{Purpose, RequestError, ThresholdCipher};

/// Why there is no ciphertext.
#[derive(Debug, thiserror::Error)]
pub enum EncryptError {
    /// The key is not for encryption, or the label is too long.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Reading the plaintext or writing the ciphertext failed.
    #[error("reading the plaintext or writing the ciphertext: {0}")]
    Io(#[from] io::Error),
}

/// Encrypts all that `reader` gives to the key, with the public key alone and in constant memory. The header is
/// written last, into the room that is left for it at the writer's position; the writer ends after the payload.
/// Returns the plaintext's length. `progress` is told the bytes of plaintext done.
///
/// # Errors
/// Any [`EncryptError`].
pub fn encrypt_stream(
    public: &AnyPublicKey,
    label: &[u8],
    aead: Aead,
    reader: impl Read,
    mut writer: impl Write + Seek,
    progress: &mut dyn FnMut(u64),
    rng: &mut (impl CryptoRng + ?Sized),
) -> Result<u64, EncryptError> {
    let capsule_len = capsule_len(public)?;
    check_size("label", label, MAX_LABEL_LEN)?;
    let start = writer.stream_position()?;
    io::copy(&mut io::repeat(0).take(total_len(label, capsule_len) as u64), &mut writer)?;
    let key = PayloadKey::random(rng);
    let digest = seal_stream(reader, &mut writer, &key, aead, label, progress)?;
    let end = writer.stream_position()?;
    let envelope = write_envelope(public.suite(), aead, public.key_id(), &digest, label, capsule_len)?;
    let header = encapsulate(public, envelope, &key)?;
    writer.seek(SeekFrom::Start(start))?;
    writer.write_all(&header)?;
    writer.seek(SeekFrom::Start(end))?;
    Ok(digest.plaintext_len())
}

/// The same for things that fit in memory.
///
/// # Errors
/// Any [`RequestError`].
pub fn encrypt_bytes(
    public: &AnyPublicKey,
    plaintext: &[u8],
    label: &[u8],
    aead: Aead,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Result<Vec<u8>, EncryptError> {
    let capsule_len = capsule_len(public)?;
    check_size("label", label, MAX_LABEL_LEN)?;
    let header_len = total_len(label, capsule_len);
    let payload_len = usize::try_from(sealed_len(plaintext.len() as u64)).map_err(io::Error::other)?;
    let mut ciphertext = vec![0; header_len + payload_len];
    let (mut header, payload) = ciphertext.split_at_mut(header_len);
    let key = PayloadKey::random(rng);
    let digest = memory::seal_into(plaintext, payload, &key, aead, label)?;
    let envelope = write_envelope(public.suite(), aead, public.key_id(), &digest, label, capsule_len)?;
    header.write_all(&encapsulate(public, envelope, &key)?)?;
    Ok(ciphertext)
}

/// Opens a whole ciphertext in memory. The plaintext is wiped when dropped.
///
/// # Errors
/// Any [`OpenError`].
pub fn open_bytes(key: &PayloadKey, ciphertext: &[u8]) -> Result<Secret<Vec<u8>>, OpenError> {
    let (header, payload) = split_ciphertext(ciphertext)?;
    memory::open(key, &Header::parse(header)?, payload)
}

/// Where the header ends and the sealed payload begins.
///
/// # Errors
/// [`RequestError`] if there is no whole header.
pub fn split_ciphertext(ciphertext: &[u8]) -> Result<(&[u8], &[u8]), RequestError> {
    ciphertext.split_at_checked(header_len(ciphertext)?).ok_or(RequestError::Header("it is cut short"))
}

/// Reads the header from the front of a ciphertext and leaves the reader at the payload.
///
/// # Errors
/// [`OpenError::Header`] and [`OpenError::Io`].
pub fn read_header(mut reader: impl Read) -> Result<Vec<u8>, OpenError> {
    let cut_short = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => OpenError::Header(RequestError::Header("it is cut short")),
        _ => OpenError::Io(error),
    };
    let mut header = vec![0; PREAMBLE_LEN];
    reader.read_exact(&mut header).map_err(cut_short)?;
    header.resize(header_len(&header)?, 0);
    reader.read_exact(header.split_at_mut(PREAMBLE_LEN).1).map_err(cut_short)?;
    Ok(header)
}

fn capsule_len(public: &AnyPublicKey) -> Result<usize, RequestError> {
    with_key!(public, |key: S| if cipher { Ok(S::CAPSULE_LEN) } else { Err(not_a_cipher(public)) })
}

fn encapsulate(public: &AnyPublicKey, envelope: Vec<u8>, payload_key: &PayloadKey) -> Result<Vec<u8>, RequestError> {
    with_key!(public, |key: S| if cipher {
        Ok(S::encapsulate(key, envelope, payload_key))
    } else {
        Err(not_a_cipher(public))
    })
}

impl AnyPublicKey {
    /// Whether `header` is what an honest encryption of `payload_key` to this key makes, byte for byte: then k true shares
    /// unwrap that key and nothing else does. Whoever is told a payload key checks this before believing it: a commitment
    /// that fits says less, since the encryptor may have committed to a key that no shares unwrap.
    #[must_use]
    pub fn encapsulates(&self, header: &[u8], payload_key: &PayloadKey) -> bool {
        let Ok(capsule_len) = capsule_len(self) else { return false };
        let Some((envelope, _)) = header.split_at_checked(header.len().saturating_sub(capsule_len)) else {
            return false;
        };
        encapsulate(self, envelope.to_vec(), payload_key).is_ok_and(|honest| honest == header)
    }
}

fn not_a_cipher(public: &AnyPublicKey) -> RequestError {
    RequestError::Purpose { key: public.suite().purpose(), asked: Purpose::Decrypt }
}
