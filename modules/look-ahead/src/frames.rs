//! The bytes of a question and of its answer. Each has a connection of its own.

use std::io::{Error, ErrorKind, Read, Result, Write};

/// The form of both.
const VERSION: u8 = 1;
/// An answer has digests.
const KNOWN: u8 = 0;
/// An answer has words.
const UNKNOWN: u8 = 1;
/// The most digests in an answer.
pub const MOST_DIGESTS: u16 = 4_096;
/// The most bytes of words.
const MOST_WORDS: usize = 512;
/// The length of a question in bytes.
const QUESTION: usize = 37;

/// A SHA-256 digest of what a signature covers.
pub type Digest = [u8; 32];

/// This digest is being signed: which others will be, by the same key in the same event?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The digest.
    pub digest: Digest,
    /// How many digests are wanted at most of those before it, in the order in which a signer goes through the zone.
    pub before: u16,
    /// How many are wanted at most altogether. With 0 nothing is looked for.
    pub most: u16,
}

/// The digests in their order, without the one that was asked about; or in words why there are none. Fewer than were wanted are all that there are.
pub type Answer = std::result::Result<Vec<Digest>, String>;

fn wrong(words: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, words)
}

impl Question {
    /// Writes it.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, to: &mut impl Write) -> Result<()> {
        to.write_all(&[&[VERSION][..], &self.before.to_be_bytes(), &self.most.to_be_bytes(), &self.digest].concat())
    }

    /// Reads one.
    ///
    /// # Errors
    /// The system's, or the bytes are none.
    pub fn read(from: &mut impl Read) -> Result<Self> {
        let mut bytes = [0; QUESTION];
        from.read_exact(&mut bytes)?;
        let [version, before_high, before_low, most_high, most_low, digest @ ..] = bytes;
        let [before, most] = [[before_high, before_low], [most_high, most_low]].map(u16::from_be_bytes);
        if version != VERSION {
            return Err(wrong("another version of the question"));
        }
        if most > MOST_DIGESTS {
            return Err(wrong("more digests are wanted than an answer has"));
        }
        Ok(Self { digest, before, most })
    }

    /// Writes the answer to it: no more digests than were wanted, and no more words than fit.
    ///
    /// # Errors
    /// The system's.
    pub fn write_answer(&self, answer: &Answer, to: &mut impl Write) -> Result<()> {
        let head = |kind: u8, count: usize| {
            let count = u16::try_from(count).unwrap_or(u16::MAX);
            [&[VERSION, kind][..], &count.to_be_bytes()].concat()
        };
        let bytes = match answer {
            Ok(digests) => {
                let count = digests.len().min(self.most.into());
                let digests = digests.iter().take(count).flatten().copied();
                head(KNOWN, count).into_iter().chain(digests).collect()
            }
            Err(words) => {
                let end = words.floor_char_boundary(MOST_WORDS);
                [head(UNKNOWN, end), words.as_bytes().get(..end).unwrap_or_default().to_vec()].concat()
            }
        };
        to.write_all(&bytes)
    }

    /// Reads the answer to it.
    ///
    /// # Errors
    /// The system's, or the bytes are none.
    pub fn read_answer(&self, from: &mut impl Read) -> Result<Answer> {
        let mut head = [0; 4];
        from.read_exact(&mut head)?;
        let [version, kind, high, low] = head;
        let count = u16::from_be_bytes([high, low]);
        match (version, kind) {
            (VERSION, KNOWN) if count <= self.most => {
                // No more is taken than comes.
                let mut digests = Vec::new();
                for _ in 0..count {
                    let mut digest = Digest::default();
                    from.read_exact(&mut digest)?;
                    digests.push(digest);
                }
                Ok(Ok(digests))
            }
            (VERSION, KNOWN) => Err(wrong("more digests than were wanted")),
            (VERSION, UNKNOWN) if usize::from(count) <= MOST_WORDS => {
                let mut words = vec![0; count.into()];
                from.read_exact(&mut words)?;
                Ok(Err(String::from_utf8_lossy(&words).into_owned()))
            }
            (VERSION, UNKNOWN) => Err(wrong("too many words")),
            _ => Err(wrong("another version of the answer")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION_OF_TWO: Question = Question { digest: [7; 32], before: 3, most: 2 };

    fn answered(answer: &Answer) -> Answer {
        let mut bytes = Vec::new();
        QUESTION_OF_TWO.write_answer(answer, &mut bytes).unwrap();
        QUESTION_OF_TWO.read_answer(&mut &bytes[..]).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        QUESTION_OF_TWO.write(&mut bytes).unwrap();
        assert_eq!(bytes, [&[1, 0, 3, 0, 2][..], &[7; 32]].concat());
        assert_eq!(Question::read(&mut &bytes[..]).unwrap(), QUESTION_OF_TWO);
        for answer in [Ok(vec![]), Ok(vec![[1; 32], [2; 32]]), Err("no record set".to_owned())] {
            assert_eq!(answered(&answer), answer);
        }
        assert_eq!(answered(&Ok(vec![[1; 32]; 3])), Ok(vec![[1; 32]; 2]), "no more than were wanted");
        let long = answered(&Err("\u{e9}".repeat(300))).unwrap_err();
        assert_eq!(long, "\u{e9}".repeat(256));
    }

    #[test]
    fn what_is_neither_is_refused_and_takes_no_room() {
        let question = |bytes: &[u8]| Question::read(&mut &*bytes).unwrap_err().to_string();
        let bytes = [&[1, 0, 0, 0x10, 1][..], &[7; 32]].concat();
        assert!(question(&bytes).contains("more digests are wanted"));
        assert!(question(&[&[2][..], &bytes[1..]].concat()).contains("another version"));
        question(&bytes[..36]);
        let answer = |bytes: &[u8]| QUESTION_OF_TWO.read_answer(&mut &*bytes).unwrap_err().to_string();
        assert_eq!(answer(&[1, 0, 0, 3]), "more digests than were wanted");
        assert_eq!(answer(&[1, 1, 2, 1]), "too many words");
        assert_eq!(answer(&[1, 2, 0, 0]), "another version of the answer");
        answer(&[1, 0, 0, 2, 9]);
        answer(b"HTT");
    }
}
