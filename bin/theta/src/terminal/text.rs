//! Text for a terminal: that of others, without control characters, and lists in words.

use std::io::{self, Write};

use zeroize::Zeroizing;

/// Passes on UTF-8 without control characters, and refuses the first piece with anything else.
pub(crate) struct TextOnly<W> {
    inner: W,
    /// The bytes of a character that is not complete yet.
    pending: Zeroizing<Vec<u8>>,
    refused: bool,
}

impl<W: Write> TextOnly<W> {
    /// In front of a terminal.
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, pending: Zeroizing::default(), refused: false }
    }

    /// Whether a piece was refused.
    pub(crate) const fn refused(&self) -> bool {
        self.refused
    }

    /// Fails if the text ends within a character.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.pending.is_empty() { self.inner.flush() } else { Err(self.refuse()) }
    }

    fn refuse(&mut self) -> io::Error {
        self.refused = true;
        io::Error::other("not text")
    }
}

impl<W: Write> Write for TextOnly<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let bytes = Zeroizing::new([self.pending.as_slice(), buffer].concat());
        let (text, rest) = match std::str::from_utf8(&bytes) {
            Ok(text) => (text, &[][..]),
            Err(error) if error.error_len().is_none() => {
                let (text, rest) = bytes.split_at(error.valid_up_to());
                (std::str::from_utf8(text).unwrap_or_default(), rest)
            }
            Err(_) => return Err(self.refuse()),
        };
        if text.chars().any(|character| character.is_control() && !matches!(character, '\n' | '\r' | '\t')) {
            return Err(self.refuse());
        }
        self.inner.write_all(text.as_bytes())?;
        self.pending = Zeroizing::new(rest.to_vec());
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// "node 3", "nodes 1 and 3", "nodes 1, 3 and 4".
pub fn nodes(numbers: &[u16]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        None => "no nodes".to_owned(),
        Some((only, [])) => format!("node {only}"),
        Some((last, others)) => format!("nodes {} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut text = TextOnly::new(&mut out);
        let done = pieces.iter().try_for_each(|piece| text.write_all(piece)).and_then(|()| text.finish());
        assert_eq!(done.is_err(), text.refused());
        done.ok().map(|()| out)
    }

    #[test]
    fn text_passes_wherever_it_is_cut_and_nothing_else_does() {
        let text = "Grüße,\n\tFranz — 🔑\r\n".as_bytes();
        for cut in 0..text.len() {
            assert_eq!(shown(&[&text[..cut], &text[cut..]]).as_deref(), Some(text), "{cut}");
        }
        for bad in [&b"\x1b[2J"[..], b"\0", b"\xff", b"\x7f", "\u{9b}2J".as_bytes(), "ü".as_bytes().split_at(1).0] {
            assert_eq!(shown(&[b"a", bad]), None, "{bad:?}");
        }
    }

    #[test]
    fn nodes_are_listed_in_words() {
        assert_eq!(nodes(&[]), "no nodes");
        assert_eq!(nodes(&[3]), "node 3");
        assert_eq!(nodes(&[1, 3, 4]), "nodes 1, 3 and 4");
    }
}
