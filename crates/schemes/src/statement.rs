//! What is asked of a key: statements, borrowed or with bytes of their own.

use bytes::Bytes;

use crate::ciphers::{Header, HeaderBytes, MAX_HEADER_LEN};
use crate::keys::KeyId;
use crate::limits::check_size;
use crate::{Purpose, RequestError, Suite};

/// A request as bytes from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement<'a> {
    /// Unwrap the payload key of the ciphertext with this header.
    Decapsulate(&'a [u8]),
    /// Unwrap the payload key of the ciphertext with this header, which is parsed already.
    Header(&'a HeaderBytes),
    /// Sign this message.
    Sign(&'a [u8]),
    /// Sign the message with this digest, by the hash function that the scheme hashes messages with.
    SignDigest(&'a [u8]),
    /// Draw the coin of this name.
    FlipCoin(&'a [u8]),
}

/// A [`Statement`] that owns its bytes, to be kept or sent to another thread; clones share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementBytes {
    /// Unwrap the payload key of the ciphertext with this header.
    Decapsulate(Bytes),
    /// Sign this message.
    Sign(Bytes),
    /// Draw the coin of this name.
    FlipCoin(Bytes),
}

impl StatementBytes {
    /// Borrows the statement.
    #[must_use]
    pub fn as_statement(&self) -> Statement<'_> {
        self.into()
    }
}

impl<'a> From<&'a StatementBytes> for Statement<'a> {
    fn from(owned: &'a StatementBytes) -> Self {
        match owned {
            StatementBytes::Decapsulate(bytes) => Self::Decapsulate(bytes),
            StatementBytes::Sign(bytes) => Self::Sign(bytes),
            StatementBytes::FlipCoin(bytes) => Self::FlipCoin(bytes),
        }
    }
}

impl<'a> From<&Statement<'a>> for Statement<'a> {
    fn from(statement: &Statement<'a>) -> Self {
        *statement
    }
}

impl<'a> Statement<'a> {
    /// The purpose of the keys that answer it.
    #[must_use]
    pub const fn purpose(&self) -> Purpose {
        match self {
            Self::Decapsulate(_) | Self::Header(_) => Purpose::Decrypt,
            Self::Sign(_) | Self::SignDigest(_) => Purpose::Sign,
            Self::FlipCoin(_) => Purpose::Coin,
        }
    }

    /// What a key does that answers it, as ids, logs and metrics call it: `decapsulate`, `sign`, `sign_digest` or `flip_coin`.
    #[must_use]
    pub const fn operation(&self) -> &'static str {
        match self {
            Self::Decapsulate(_) | Self::Header(_) => "decapsulate",
            Self::Sign(_) => "sign",
            Self::SignDigest(_) => "sign_digest",
            Self::FlipCoin(_) => "flip_coin",
        }
    }

    /// The bytes, whatever the operation.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Decapsulate(bytes) | Self::Sign(bytes) | Self::SignDigest(bytes) | Self::FlipCoin(bytes) => bytes,
            Self::Header(parsed) => parsed.bytes(),
        }
    }

    /// The bytes, if the statement is for keys of purpose `key` and within `limit`. A digest is never taken for the message that a
    /// scheme asks for here: those that sign digests ask for them.
    pub(crate) fn for_purpose(&self, key: Purpose, what: &'static str, limit: usize) -> Result<&'a [u8], RequestError> {
        let asked = self.purpose();
        if asked != key {
            return Err(RequestError::Purpose { key, asked });
        }
        if matches!(self, Self::SignDigest(_)) {
            return Err(RequestError::NoDigests);
        }
        check_size(what, self.bytes(), limit)?;
        Ok(self.bytes())
    }

    /// The header that is to be opened, with all of its bytes; it must be encrypted to this key.
    pub(crate) fn header(&self, suite: Suite, key_id: &KeyId) -> Result<(Header<'a>, &'a [u8]), RequestError> {
        let bytes = self.for_purpose(Purpose::Decrypt, "ciphertext header", MAX_HEADER_LEN)?;
        let header = match self {
            Self::Header(parsed) => parsed.header(),
            _ => Header::parse(bytes)?,
        };
        if header.suite() != suite || header.key_id() != key_id {
            return Err(RequestError::OtherKey {
                ciphertext: header.key_id().abbreviated(),
                key: key_id.abbreviated(),
            });
        }
        Ok((header, bytes))
    }
}
