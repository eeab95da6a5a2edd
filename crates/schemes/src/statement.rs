//! Statements that own their bytes, and the sizes that are accepted.

use bytes::Bytes;

use crate::{Purpose, RequestError, Statement};

/// The longest message that is signed, in bytes: 64 MiB. For larger ones, sign a digest.
pub const MAX_MESSAGE_LEN: usize = 64 << 20;
/// The longest label of a ciphertext, in bytes: 64 KiB.
pub const MAX_LABEL_LEN: usize = theta_names::MOST_LABEL;
/// The longest name of a coin, in bytes: 64 KiB.
pub const MAX_COIN_NAME_LEN: usize = 64 << 10;

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
}

/// Refuses more than `limit` bytes.
pub(crate) const fn check_size(what: &'static str, bytes: &[u8], limit: usize) -> Result<(), RequestError> {
    if bytes.len() > limit { Err(RequestError::TooLarge { what, limit, got: bytes.len() }) } else { Ok(()) }
}
