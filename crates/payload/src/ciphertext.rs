//! Whole ciphertexts: header and sealed payload.

use std::io::{self, Read, Seek, SeekFrom, Write};

use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_schemes::RequestError;
use theta_schemes::keys::AnyPublicKey;

use super::{Aead, Header, OpenError, PayloadKey, memory, seal_stream, sealed_len};

/// Why encryption failed.
#[derive(Debug, thiserror::Error)]
pub enum EncryptError {
    /// The key is not for encryption, or the label is too long.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Reading the plaintext or writing the ciphertext failed.
    #[error("reading the plaintext or writing the ciphertext: {0}")]
    Io(#[from] io::Error),
}

/// Encrypts all that `reader` gives to the public key, in constant memory. The header goes to the writer's position, but is
/// written last; the writer's position ends after the payload. Returns the plaintext's length in bytes. `progress` is called
/// with the bytes of plaintext done so far.
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
    let header_len = public.header_len(label)?;
    let start = writer.stream_position()?;
    io::copy(&mut io::repeat(0).take(header_len as u64), &mut writer)?;
    let key = PayloadKey::random(rng);
    let digest = seal_stream(reader, &mut writer, &key, aead, label, progress)?;
    let end = writer.stream_position()?;
    let header = public.encapsulate(&key, aead, &digest, label)?;
    writer.seek(SeekFrom::Start(start))?;
    writer.write_all(&header)?;
    writer.seek(SeekFrom::Start(end))?;
    Ok(digest.plaintext_len())
}

/// As [`encrypt_stream`], for a plaintext in memory.
///
/// # Errors
/// Any [`EncryptError`].
pub fn encrypt_bytes(
    public: &AnyPublicKey,
    plaintext: &[u8],
    label: &[u8],
    aead: Aead,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Result<Vec<u8>, EncryptError> {
    let header_len = public.header_len(label)?;
    let payload_len = usize::try_from(sealed_len(plaintext.len() as u64)).map_err(io::Error::other)?;
    let mut ciphertext = vec![0; header_len + payload_len];
    let (mut header, payload) = ciphertext.split_at_mut(header_len);
    let key = PayloadKey::random(rng);
    let digest = memory::seal_into(plaintext, payload, &key, aead, label)?;
    header.write_all(&public.encapsulate(&key, aead, &digest, label)?)?;
    Ok(ciphertext)
}

/// Keys that payloads are encrypted to.
pub trait Encrypt {
    /// Encrypts to the key, in memory; for files see [`encrypt_stream`].
    ///
    /// # Errors
    /// [`EncryptError`] if the key is not for encryption or the label is too long.
    fn encrypt(
        &self,
        plaintext: &[u8],
        label: &[u8],
        aead: Aead,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<u8>, EncryptError>;
}

impl Encrypt for AnyPublicKey {
    fn encrypt(
        &self,
        plaintext: &[u8],
        label: &[u8],
        aead: Aead,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<u8>, EncryptError> {
        encrypt_bytes(self, plaintext, label, aead, rng)
    }
}

/// Opens a whole ciphertext in memory. The plaintext is wiped when dropped.
///
/// # Errors
/// Any [`OpenError`].
pub fn open_bytes(key: &PayloadKey, ciphertext: &[u8]) -> Result<Secret<Vec<u8>>, OpenError> {
    let (header, payload) = split_ciphertext(ciphertext)?;
    open_payload(key, &Header::parse(header)?, payload)
}

/// As [`open_bytes`], for a header that is parsed already and the payload that followed it.
///
/// # Errors
/// Any [`OpenError`] but [`OpenError::Header`].
pub fn open_payload(key: &PayloadKey, header: &Header<'_>, payload: &[u8]) -> Result<Secret<Vec<u8>>, OpenError> {
    memory::open(key, header, payload)
}

/// Splits a ciphertext into header and sealed payload.
///
/// # Errors
/// [`RequestError`] if there is no whole header.
pub fn split_ciphertext(ciphertext: &[u8]) -> Result<(&[u8], &[u8]), RequestError> {
    ciphertext.split_at_checked(Header::stated_len(ciphertext)?).ok_or(RequestError::Header("it is cut short"))
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
    let mut header = vec![0; Header::PREAMBLE_LEN];
    reader.read_exact(&mut header).map_err(cut_short)?;
    header.resize(Header::stated_len(&header)?, 0);
    reader.read_exact(header.split_at_mut(Header::PREAMBLE_LEN).1).map_err(cut_short)?;
    Ok(header)
}
