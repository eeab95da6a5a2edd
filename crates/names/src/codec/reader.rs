//! Reading.

use core::str::FromStr;

use super::DecodeError;
use crate::{Delivery, Epoch, KeyName, Label, LabelError, MOST_LABEL, NodeId, Operation, Version};

/// Reads what [`Writer`](super::Writer) wrote. Each method fails with a [`DecodeError`] on bytes that no writer writes.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

#[allow(clippy::missing_errors_doc, reason = "all of them fail as the type says")]
impl<'a> Reader<'a> {
    /// Reads from the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads from after `domain`, with which the bytes must begin.
    pub fn of(bytes: &'a [u8], domain: &'static str) -> Result<Self, DecodeError> {
        let mut reader = Self(bytes);
        let got = reader.bytes_within(64).unwrap_or_default();
        if got != domain.as_bytes() {
            let got = String::from_utf8_lossy(got).into_owned();
            return Err(DecodeError::Domain { got, expected: domain });
        }
        Ok(reader)
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.take(N)?.try_into().map_err(|_| DecodeError::Truncated)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_be_bytes)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// A version of a key, which is never 0.
    pub fn version(&mut self) -> Result<Version, DecodeError> {
        self.named_version()?.ok_or(DecodeError::Field("version 0"))
    }

    /// A version or none, for which 0 stands.
    pub fn named_version(&mut self) -> Result<Option<Version>, DecodeError> {
        self.u32().map(Version::new)
    }

    /// An epoch in eight bytes, the first four of which must be zero.
    pub fn epoch(&mut self) -> Result<Epoch, DecodeError> {
        Epoch::from_wide(self.u64()?).ok_or(DecodeError::Field("an epoch"))
    }

    /// An epoch in four bytes, as ceremonies encode it.
    pub fn short_epoch(&mut self) -> Result<Epoch, DecodeError> {
        self.u32().map(Epoch::new)
    }

    /// A UTF-8 text of at most 255 bytes, after its length in one byte.
    pub fn word(&mut self) -> Result<&'a str, DecodeError> {
        let len = usize::from(self.u8()?);
        core::str::from_utf8(self.take(len)?).map_err(|_| DecodeError::Field("a text"))
    }

    /// The name of a key, as a word.
    pub fn key_name(&mut self) -> Result<KeyName, DecodeError> {
        self.word()?.parse().map_err(|_| DecodeError::Field("the name of a key"))
    }

    /// Bytes after their length in four bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        self.bytes_within(usize::MAX)
    }

    /// At most `most` bytes, after their length in four bytes.
    pub fn bytes_within(&mut self, most: usize) -> Result<&'a [u8], DecodeError> {
        let got = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        if got > most { Err(DecodeError::TooLong { got, most }) } else { self.take(got) }
    }

    /// A UTF-8 text of at most `most` bytes, after its length in four bytes.
    pub fn text(&mut self, most: usize) -> Result<&'a str, DecodeError> {
        core::str::from_utf8(self.bytes_within(most)?).map_err(|_| DecodeError::Field("a text"))
    }

    /// A label, after its length in four bytes.
    pub fn label(&mut self) -> Result<Label<&'a [u8]>, DecodeError> {
        let label = Label::new(self.bytes_within(MOST_LABEL)?);
        label.map_err(|LabelError { got }| DecodeError::TooLong { got, most: MOST_LABEL })
    }

    /// A value written as a text of at most `most` bytes; `what` names it in errors.
    pub fn parsed<T: FromStr>(&mut self, what: &'static str, most: usize) -> Result<T, DecodeError> {
        self.text(most)?.parse().map_err(|_| DecodeError::Field(what))
    }

    /// An operation by its code.
    pub fn operation(&mut self) -> Result<Operation, DecodeError> {
        Operation::from_code(self.u8()?).ok_or(DecodeError::Field("the operation"))
    }

    /// A delivery, by its code.
    pub fn delivery(&mut self) -> Result<Delivery, DecodeError> {
        Delivery::from_code(self.u8()?).ok_or(DecodeError::Field("the delivery"))
    }

    /// A node's number, which is never 0.
    pub fn node(&mut self) -> Result<u16, DecodeError> {
        self.node_id().map(NodeId::get)
    }

    /// A node, by its number.
    pub fn node_id(&mut self) -> Result<NodeId, DecodeError> {
        NodeId::try_from(self.u16()?).map_err(|_| DecodeError::Field("node 0"))
    }

    /// Numbers of nodes, after their count in two bytes.
    pub fn nodes(&mut self) -> Result<Vec<u16>, DecodeError> {
        let count = usize::from(self.u16()?);
        if self.0.len() < 2 * count {
            return Err(DecodeError::Truncated);
        }
        (0..count).map(|_| self.node()).collect()
    }

    /// One byte, 0 or 1.
    pub fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Field("a flag")),
        }
    }

    /// The byte 0, or the byte 1 and a value.
    pub fn option<T, E: From<DecodeError>>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    /// Items until nothing is left. An item of no bytes is refused, because the loop would never end.
    pub fn all<T, E: From<DecodeError>>(mut self, read: impl Fn(&mut Self) -> Result<T, E>) -> Result<Vec<T>, E> {
        let mut items = Vec::new();
        while !self.is_empty() {
            let left = self.0.len();
            items.push(read(&mut self)?);
            if self.0.len() == left {
                return Err(DecodeError::Trailing.into());
            }
        }
        Ok(items)
    }

    /// All that is left.
    #[must_use]
    pub const fn rest(&mut self) -> &'a [u8] {
        let rest = self.0;
        self.0 = &[];
        rest
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value, if nothing follows it.
    pub fn end<T>(self, value: T) -> Result<T, DecodeError> {
        if self.0.is_empty() { Ok(value) } else { Err(DecodeError::Trailing) }
    }
}
