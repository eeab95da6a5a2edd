//! Writing and reading the fields of canonical encodings.

use crate::{Name, Operation, UnixTime, Validity};

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

pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    pub(crate) fn new(domain: &'static str) -> Self {
        Self(Vec::with_capacity(256)).text(domain)
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Fields are bounded far below 4 GiB by those who make them; a longer one would be cut at encoding and refused at
    /// decoding.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.raw(&len.to_be_bytes()).raw(bytes)
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn optional<T>(self, value: Option<T>, write: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.u8(0),
            Some(value) => write(self.u8(1), value),
        }
    }

    pub(crate) fn validity(self, validity: Validity) -> Self {
        self.u64(validity.from.0).u64(validity.until.0)
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8], domain: &'static str) -> Result<Self, DecodeError> {
        let mut decoder = Self(bytes);
        let got = decoder.bytes(64).unwrap_or_default();
        if got != domain.as_bytes() {
            let got = String::from_utf8_lossy(got).into_owned();
            return Err(DecodeError::Domain { got, expected: domain });
        }
        Ok(decoder)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.take(N)?.try_into().map_err(|_| DecodeError::Truncated)
    }

    pub(crate) fn bytes(&mut self, most: usize) -> Result<&'a [u8], DecodeError> {
        let got = usize::try_from(u32::from_be_bytes(self.array()?)).unwrap_or(usize::MAX);
        if got > most { Err(DecodeError::TooLong { got, most }) } else { self.take(got) }
    }

    pub(crate) fn text(&mut self, most: usize) -> Result<&'a str, DecodeError> {
        core::str::from_utf8(self.bytes(most)?).map_err(|_| DecodeError::Field("a text"))
    }

    pub(crate) fn name(&mut self) -> Result<Name, DecodeError> {
        self.text(crate::name::MOST_NAME)?.parse().map_err(|_| DecodeError::Field("a name"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn operation(&mut self) -> Result<Operation, DecodeError> {
        Operation::from_code(self.u8()?).ok_or(DecodeError::Field("the operation"))
    }

    pub(crate) fn validity(&mut self) -> Result<Validity, DecodeError> {
        Ok(Validity { from: UnixTime(self.u64()?), until: UnixTime(self.u64()?) })
    }

    pub(crate) fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Field("a flag")),
        }
    }

    pub(crate) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    pub(crate) fn finish<T>(self, value: T) -> Result<T, DecodeError> {
        if self.0.is_empty() { Ok(value) } else { Err(DecodeError::Trailing) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOMAIN: &str = "theta/test/v1";

    #[test]
    fn layout_is_fixed() {
        let bytes = Encoder::new("d").u8(7).u64(258).text("ab").optional(None::<u64>, Encoder::u64).finish();
        assert_eq!(bytes, [0, 0, 0, 1, b'd', 7, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 2, b'a', b'b', 0]);
    }

    #[test]
    fn every_departure_is_refused() {
        let good = Encoder::new(DOMAIN).text("ab").finish();
        let read = |bytes: &[u8]| {
            let mut decoder = Decoder::new(bytes, DOMAIN)?;
            let text = decoder.text(2)?.to_owned();
            decoder.finish(text)
        };
        assert_eq!(read(&good), Ok("ab".to_owned()));
        assert_eq!(read(&good[..good.len() - 1]), Err(DecodeError::Truncated));
        assert_eq!(read(&[good.as_slice(), b"c"].concat()), Err(DecodeError::Trailing));
        let long = Encoder::new(DOMAIN).text("abc").finish();
        assert_eq!(read(&long), Err(DecodeError::TooLong { got: 3, most: 2 }));
        assert_eq!(read(&Encoder::new(DOMAIN).bytes(&[0xFF]).finish()), Err(DecodeError::Field("a text")));
        let other = Encoder::new("theta/test/v2").text("ab").finish();
        assert_eq!(read(&other), Err(DecodeError::Domain { got: "theta/test/v2".to_owned(), expected: DOMAIN }));
        assert!(matches!(read(b""), Err(DecodeError::Domain { .. })));
        assert!(Decoder(&[2]).optional(Decoder::u8).is_err(), "a flag is 0 or 1");
    }
}
