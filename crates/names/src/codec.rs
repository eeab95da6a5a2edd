//! The one way in which words of this house are written as bytes: whole numbers in big-endian order, everything else behind its
//! length. There is one encoding of every value, and the reader takes no other.

use core::str::FromStr;

use crate::{KeyName, Operation};

/// Bytes that are not the canonical encoding of what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It ends early.
    #[error("it ends before its fields do")]
    Truncated,
    /// It goes on.
    #[error("bytes follow its last field")]
    Trailing,
    /// Something else altogether, or another version of it.
    #[error("it is {got:?}, and not {expected:?}")]
    Domain {
        /// What it says to be, shortened.
        got: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A field is longer than anything that is allowed.
    #[error("a field of {got} bytes is longer than {most}")]
    TooLong {
        /// Its length.
        got: usize,
        /// The longest.
        most: usize,
    },
    /// A field has a value that does not exist.
    #[error("{0} is not valid")]
    Field(&'static str),
}

impl DecodeError {
    /// What is wrong, without what was read.
    #[must_use]
    pub const fn problem(&self) -> &'static str {
        match self {
            Self::Truncated => "it ends early",
            Self::Trailing => "it goes on after its end",
            Self::Domain { .. } => "it is something else",
            Self::TooLong { .. } => "a field is too long",
            Self::Field(what) => what,
        }
    }
}

/// Writes fields one after the other.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Begins with one byte: a format, or a tag.
    #[must_use]
    pub fn new(first: u8) -> Self {
        Self(vec![first])
    }

    /// Begins with a domain, as [`Writer::text`].
    #[must_use]
    pub fn of(domain: &'static str) -> Self {
        Self(Vec::with_capacity(256)).text(domain)
    }

    /// Bytes as they are.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// One byte.
    #[must_use]
    pub fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    /// Two bytes.
    #[must_use]
    pub fn u16(self, value: u16) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// Four bytes.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// Eight bytes.
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// Behind its length in one byte. Names and words are never longer than 255 bytes; what is longer is cut.
    #[must_use]
    pub fn word(self, text: &str) -> Self {
        let text = text.get(..text.len().min(255)).unwrap_or_default();
        self.u8(u8::try_from(text.len()).unwrap_or(u8::MAX)).raw(text.as_bytes())
    }

    /// Behind its length in four bytes. Fields are bounded far below 4 GiB by those who make them; a longer one would be refused
    /// at reading.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX)).raw(bytes)
    }

    /// Behind its length in four bytes.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Numbers of nodes behind their number in two bytes.
    #[must_use]
    pub fn nodes(self, nodes: &[u16]) -> Self {
        let writer = self.u16(u16::try_from(nodes.len()).unwrap_or(u16::MAX));
        nodes.iter().fold(writer, |writer, node| writer.u16(*node))
    }

    /// A byte 0, or 1 and the value.
    #[must_use]
    pub fn option<T>(self, value: Option<T>, write: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.u8(0),
            Some(value) => write(self.u8(1), value),
        }
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads what [`Writer`] wrote. Each method fails with a [`DecodeError`] on what that did not write.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

#[allow(clippy::missing_errors_doc, reason = "all of them fail as the type says")]
impl<'a> Reader<'a> {
    /// From the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// From behind this domain.
    pub fn of(bytes: &'a [u8], domain: &'static str) -> Result<Self, DecodeError> {
        let mut reader = Self(bytes);
        let got = reader.bytes_within(64).unwrap_or_default();
        if got != domain.as_bytes() {
            let got = String::from_utf8_lossy(got).into_owned();
            return Err(DecodeError::Domain { got, expected: domain });
        }
        Ok(reader)
    }

    /// So many bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// So many bytes.
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

    /// A text of 255 bytes at most.
    pub fn word(&mut self) -> Result<&'a str, DecodeError> {
        let len = usize::from(self.u8()?);
        core::str::from_utf8(self.take(len)?).map_err(|_| DecodeError::Field("a text"))
    }

    /// The name of a key, as a word.
    pub fn key_name(&mut self) -> Result<KeyName, DecodeError> {
        self.word()?.parse().map_err(|_| DecodeError::Field("the name of a key"))
    }

    /// Bytes, as many as there are.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        self.bytes_within(usize::MAX)
    }

    /// Bytes, so many at most.
    pub fn bytes_within(&mut self, most: usize) -> Result<&'a [u8], DecodeError> {
        let got = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        if got > most { Err(DecodeError::TooLong { got, most }) } else { self.take(got) }
    }

    /// A text, of so many bytes at most.
    pub fn text(&mut self, most: usize) -> Result<&'a str, DecodeError> {
        core::str::from_utf8(self.bytes_within(most)?).map_err(|_| DecodeError::Field("a text"))
    }

    /// What is written as a text of so many bytes at most.
    pub fn parsed<T: FromStr>(&mut self, what: &'static str, most: usize) -> Result<T, DecodeError> {
        self.text(most)?.parse().map_err(|_| DecodeError::Field(what))
    }

    /// An operation by its code.
    pub fn operation(&mut self) -> Result<Operation, DecodeError> {
        Operation::from_code(self.u8()?).ok_or(DecodeError::Field("the operation"))
    }

    /// A node's number, which is never 0.
    pub fn node(&mut self) -> Result<u16, DecodeError> {
        let node = self.u16()?;
        if node == 0 { Err(DecodeError::Field("node 0")) } else { Ok(node) }
    }

    /// Numbers of nodes.
    pub fn nodes(&mut self) -> Result<Vec<u16>, DecodeError> {
        let count = usize::from(self.u16()?);
        if self.0.len() < 2 * count {
            return Err(DecodeError::Truncated);
        }
        (0..count).map(|_| self.node()).collect()
    }

    /// 0 or 1.
    pub fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Field("a flag")),
        }
    }

    /// A value that may be absent.
    pub fn option<T, E: From<DecodeError>>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
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

#[cfg(test)]
mod tests {
    use super::*;

    const DOMAIN: &str = "theta/test/v1";

    #[test]
    fn layout_is_fixed() {
        let bytes = Writer::of("d").u8(7).u64(258).text("ab").option(None::<u64>, Writer::u64).finish();
        assert_eq!(bytes, [0, 0, 0, 1, b'd', 7, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 2, b'a', b'b', 0]);
        let bytes = Writer::new(1).word("ab").nodes(&[3, 258]).option(Some(5), Writer::u16).finish();
        assert_eq!(bytes, [1, 2, b'a', b'b', 0, 2, 0, 3, 1, 2, 1, 0, 5]);
    }

    #[test]
    fn every_departure_is_refused() {
        let good = Writer::of(DOMAIN).text("ab").finish();
        let read = |bytes: &[u8]| {
            let mut reader = Reader::of(bytes, DOMAIN)?;
            let text = reader.text(2)?.to_owned();
            reader.end(text)
        };
        assert_eq!(read(&good), Ok("ab".to_owned()));
        assert_eq!(read(&good[..good.len() - 1]), Err(DecodeError::Truncated));
        assert_eq!(read(&[good.as_slice(), b"c"].concat()), Err(DecodeError::Trailing));
        let long = Writer::of(DOMAIN).text("abc").finish();
        assert_eq!(read(&long), Err(DecodeError::TooLong { got: 3, most: 2 }));
        assert_eq!(read(&Writer::of(DOMAIN).bytes(&[0xFF]).finish()), Err(DecodeError::Field("a text")));
        let other = Writer::of("theta/test/v2").text("ab").finish();
        assert_eq!(read(&other), Err(DecodeError::Domain { got: "theta/test/v2".to_owned(), expected: DOMAIN }));
        assert!(matches!(read(b""), Err(DecodeError::Domain { .. })));
    }

    #[test]
    fn what_no_writer_writes_is_not_read() {
        assert_eq!(Reader::new(&[2]).option(Reader::u8), Err(DecodeError::Field("a flag")));
        assert_eq!(Reader::new(&[0, 0]).node(), Err(DecodeError::Field("node 0")));
        assert_eq!(Reader::new(&[0xff, 0xff, 0, 1]).nodes(), Err(DecodeError::Truncated), "a count costs no memory");
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff]).bytes(), Err(DecodeError::Truncated));
        assert_eq!(Reader::new(&[1, b'A']).key_name(), Err(DecodeError::Field("the name of a key")));
        assert_eq!(Reader::new(&[0]).operation(), Err(DecodeError::Field("the operation")));
    }
}
