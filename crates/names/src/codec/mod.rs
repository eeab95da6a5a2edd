//! The canonical encoding of fields: integers are big-endian, a field of variable length follows its length. Every value has one
//! encoding, and the reader accepts no other.

#[cfg(test)]
mod canonical;
mod reader;
mod writer;

pub use reader::Reader;
pub use writer::{Sink, Writer};

/// Why bytes are not a canonical encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The input ends within a field.
    #[error("it ends before its fields do")]
    Truncated,
    /// Bytes follow the last field.
    #[error("bytes follow its last field")]
    Trailing,
    /// The input begins with another domain: it is of another kind or version.
    #[error("it is {got:?}, and not {expected:?}")]
    Domain {
        /// The domain that was read; empty if there is none of at most 64 bytes.
        got: String,
        /// The domain that was expected.
        expected: &'static str,
    },
    /// A field is longer than allowed.
    #[error("a field of {got} bytes is longer than {most}")]
    TooLong {
        /// Its length in bytes.
        got: usize,
        /// The longest that is allowed, in bytes.
        most: usize,
    },
    /// A field has a value that is not allowed; which field, or what is wrong with it.
    #[error("{0} is not valid")]
    Field(&'static str),
}

impl DecodeError {
    /// What is wrong, in words that repeat nothing of the input.
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
