//! Headers, which stand before sealed payloads and are all that the nodes see. They are defined in this crate because a cipher's
//! proof of validity binds every byte of them; payloads are not.

use core::ops::Range;

use bytes::Bytes;
use theta_names::Label;
use theta_names::codec::{DecodeError, Reader, Writer};

use super::{Aead, PayloadKey};
use crate::keys::KeyId;
use crate::limits::{MAX_LABEL_LEN, check_size};
use crate::{Purpose, RequestError, Suite};

/// The longest header, in bytes: the longest label and 1,024 bytes for the rest.
pub const MAX_HEADER_LEN: usize = MAX_LABEL_LEN + 1024;

/// The first bytes of every ciphertext.
const MAGIC: [u8; 5] = *b"theta";
/// The format that this build writes and reads.
const VERSION: u8 = 2;
/// The length of magic, version and the header's length in four bytes, which tell how much to read.
const PREAMBLE_LEN: usize = MAGIC.len() + 1 + 4;
/// The length of the fields of fixed length after the preamble: suite, AEAD, key id, payload length, digest, length of the label.
const FIXED_LEN: usize = 1 + 1 + 32 + 8 + 32 + 4;

/// The digest and length of a payload, as its header states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadDigest {
    hash: [u8; 32],
    len: u64,
}

impl PayloadDigest {
    /// The digest of a sealed payload with this BLAKE3 hash, whose plaintext has `len` bytes.
    #[must_use]
    pub const fn new(hash: [u8; 32], len: u64) -> Self {
        Self { hash, len }
    }

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

/// A parsed header. Parsing checks its form alone; the cipher checks whether it is valid
/// ([`ThresholdScheme::parse_request`](crate::ThresholdScheme::parse_request)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    suite: Suite,
    aead: Aead,
    key_id: KeyId,
    digest: PayloadDigest,
    label: Label<&'a [u8]>,
    /// The cipher's part: wrapped key, commitment and validity proof.
    capsule: &'a [u8],
}

impl<'a> Header<'a> {
    /// How many first bytes of a header tell its length.
    pub const PREAMBLE_LEN: usize = PREAMBLE_LEN;

    /// The length in bytes of the header that begins with these bytes, which may be the preamble alone.
    ///
    /// # Errors
    /// [`RequestError::Header`], [`RequestError::Version`], and [`RequestError::TooLarge`] over [`MAX_HEADER_LEN`].
    pub fn stated_len(start: &[u8]) -> Result<usize, RequestError> {
        let mut reader = Reader::new(start);
        if reader.array().map_err(cut)? != MAGIC {
            return Err(RequestError::Header("it does not begin with \"theta\": give what `theta encrypt` wrote"));
        }
        let version = reader.u8().map_err(cut)?;
        if version != VERSION {
            return Err(RequestError::Version(version));
        }
        let len = usize::try_from(reader.u32().map_err(cut)?).unwrap_or(usize::MAX);
        if len < PREAMBLE_LEN + FIXED_LEN {
            return Err(RequestError::Header("the length that it states is too short for any header"));
        }
        if len > MAX_HEADER_LEN {
            return Err(RequestError::TooLarge { what: "ciphertext header", limit: MAX_HEADER_LEN, got: len });
        }
        Ok(len)
    }

    /// Parses exactly one header.
    ///
    /// # Errors
    /// [`RequestError::Header`] or [`RequestError::Version`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RequestError> {
        if Self::stated_len(bytes)? != bytes.len() {
            return Err(RequestError::Header("its length is not the one that it states"));
        }
        let mut reader = Reader::new(bytes);
        reader.take(PREAMBLE_LEN).map_err(cut)?;
        let (suite, aead) = (reader.u8().map_err(cut)?, reader.u8().map_err(cut)?);
        let suite = suite_with(suite).ok_or(RequestError::Header("the cipher suite is not known to this build"))?;
        let aead = Aead::from_code(aead).ok_or(RequestError::Header("the AEAD is not known to this build"))?;
        let key_id = KeyId::from_bytes(reader.array().map_err(cut)?);
        let len = reader.u64().map_err(cut)?;
        let digest = PayloadDigest { hash: reader.array().map_err(cut)?, len };
        let label = reader.label().map_err(|error| match error {
            DecodeError::TooLong { got, most } => RequestError::TooLarge { what: "label", limit: most, got },
            other => cut(other),
        })?;
        Ok(Self { suite, aead, key_id, digest, label, capsule: reader.rest() })
    }

    /// The cipher.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The AEAD that seals the payload.
    #[must_use]
    pub const fn aead(&self) -> Aead {
        self.aead
    }

    /// The key that it is encrypted to.
    #[must_use]
    pub const fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// The public context that it was encrypted with.
    #[must_use]
    pub const fn label(&self) -> Label<&'a [u8]> {
        self.label
    }

    /// Length of the plaintext in bytes and digest of the sealed payload.
    #[must_use]
    pub const fn payload(&self) -> &PayloadDigest {
        &self.digest
    }

    /// Whether the header commits to this payload key. With the public key, check more:
    /// [`AnyPublicKey::encapsulates`](crate::keys::AnyPublicKey::encapsulates).
    #[must_use]
    pub fn is_for(&self, key: &PayloadKey) -> bool {
        // The wrapped key comes first in every capsule, then the commitment.
        self.capsule.get(32..64) == Some(key.commitment(self.suite, &self.key_id).as_slice())
    }

    pub(crate) const fn capsule(&self) -> &'a [u8] {
        self.capsule
    }
}

/// A header that owns its bytes and is parsed once. Clones share the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderBytes {
    bytes: Bytes,
    suite: Suite,
    aead: Aead,
    key_id: KeyId,
    digest: PayloadDigest,
    label: Range<usize>,
}

impl HeaderBytes {
    /// Parses exactly one header.
    ///
    /// # Errors
    /// As [`Header::parse`].
    pub fn parse(bytes: Bytes) -> Result<Self, RequestError> {
        let Header { suite, aead, key_id, digest, label, .. } = Header::parse(&bytes)?;
        let begin = PREAMBLE_LEN + FIXED_LEN;
        let label = begin..begin.saturating_add(label.len());
        Ok(Self { bytes, suite, aead, key_id, digest, label })
    }

    /// The parsed header; nothing is parsed again.
    #[must_use]
    pub fn header(&self) -> Header<'_> {
        // Parsing has checked that both ranges are inside the bytes and that the label is short enough.
        let label = Label::new(self.bytes.get(self.label.clone()).unwrap_or_default()).unwrap_or_default();
        let capsule = self.bytes.get(self.label.end..).unwrap_or_default();
        let Self { suite, aead, key_id, digest, .. } = *self;
        Header { suite, aead, key_id, digest, label, capsule }
    }

    /// The whole header.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The key that it is encrypted to.
    #[must_use]
    pub const fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// The public context that it was encrypted with, sharing the header's buffer.
    #[must_use]
    pub fn label(&self) -> Label<Bytes> {
        Label::new(self.bytes.slice_ref(self.header().label.bytes())).unwrap_or_default()
    }

    /// A copy with a buffer of its own. Bytes from the network are a view that keeps a whole message in memory.
    #[must_use]
    pub fn with_own_buffer(&self) -> Self {
        Self { bytes: Bytes::copy_from_slice(&self.bytes), label: self.label.clone(), ..*self }
    }
}

/// The header without its capsule, which will have `capsule_len` bytes.
pub(super) fn write_envelope(
    suite: Suite,
    aead: Aead,
    key_id: &KeyId,
    digest: &PayloadDigest,
    label: &[u8],
    capsule_len: usize,
) -> Result<Vec<u8>, RequestError> {
    check_size("label", label, MAX_LABEL_LEN)?;
    let other = RequestError::Purpose { key: suite.purpose(), asked: Purpose::Decrypt };
    let code = suite.ops().header_code().ok_or(other)?;
    let total = total_len(label, capsule_len);
    let preamble = Writer::onto(Vec::with_capacity(total)).raw(&MAGIC).u8(VERSION);
    let stated = preamble.u32(u32::try_from(total).unwrap_or(u32::MAX));
    let writer = stated.u8(code).u8(aead.code()).raw(key_id.as_bytes());
    Ok(writer.u64(digest.len).raw(&digest.hash).bytes(label).finish())
}

/// The length of a header with this label.
pub(super) const fn total_len(label: &[u8], capsule_len: usize) -> usize {
    PREAMBLE_LEN + FIXED_LEN + label.len() + capsule_len
}

/// The suite with this code.
fn suite_with(code: u8) -> Option<Suite> {
    Suite::ALL.into_iter().find(|suite| suite.ops().header_code() == Some(code))
}

/// The only error of fields of fixed length.
fn cut(_: DecodeError) -> RequestError {
    RequestError::Header("it is cut short")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_and_no_others_have_the_codes_of_the_specification() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/payload.md");
        let specification = std::fs::read_to_string(path).unwrap();
        let cells: Vec<&str> = specification.lines().flat_map(|line| line.split('|')).map(str::trim).collect();
        let line = |cells: &[&str]| {
            let name = cells[1].strip_prefix('`')?.strip_suffix('`')?;
            Some((cells[0].parse::<u8>().ok()?, name.parse::<Suite>().ok()?))
        };
        let mut specified: Vec<(u8, Suite)> = cells.windows(2).filter_map(line).collect();
        specified.sort_unstable();
        let coded = Suite::ALL.into_iter().filter_map(|suite| Some((suite.ops().header_code()?, suite)));
        let mut coded: Vec<(u8, Suite)> = coded.collect();
        coded.sort_unstable();
        assert_eq!(coded, specified);
        for (code, suite) in &coded {
            assert_eq!((suite_with(*code), suite.purpose()), (Some(*suite), Purpose::Decrypt), "{suite}");
        }
        let ciphers = Suite::ALL.into_iter().filter(|suite| suite.purpose() == Purpose::Decrypt);
        assert_eq!(coded.len(), ciphers.count());
        assert_eq!((suite_with(0), suite_with(u8::MAX)), (None, None));
    }

    #[test]
    fn what_is_parsed_once_is_what_parsing_finds() {
        let (key_id, digest) = (KeyId::from_bytes([7; 32]), PayloadDigest { hash: [9; 32], len: 5 });
        for label in [&b""[..], b"a", &[3; MAX_LABEL_LEN]] {
            let capsule = [5; 96];
            let suite = Suite::Sg02Ristretto255;
            let mut bytes = write_envelope(suite, Aead::default(), &key_id, &digest, label, capsule.len()).unwrap();
            bytes.extend_from_slice(&capsule);
            let parsed = HeaderBytes::parse(Bytes::from(bytes.clone())).unwrap();
            assert_eq!(parsed.header(), Header::parse(&bytes).unwrap());
            assert_eq!((parsed.label().view().bytes(), parsed.header().capsule()), (label, &capsule[..]));
            assert_eq!((parsed.bytes().as_ref(), parsed.key_id()), (&bytes[..], &key_id));
            assert_eq!(parsed.with_own_buffer(), parsed);
            for len in [0, PREAMBLE_LEN, PREAMBLE_LEN + FIXED_LEN, bytes.len() - 1] {
                let cut = HeaderBytes::parse(Bytes::copy_from_slice(&bytes[..len])).unwrap_err();
                assert_eq!(cut, Header::parse(&bytes[..len]).unwrap_err());
            }
        }
    }
}
