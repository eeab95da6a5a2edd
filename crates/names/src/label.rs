//! The public label of a ciphertext.

use core::fmt;

/// The longest label, in bytes: 64 KiB.
pub const MOST_LABEL: usize = 1 << 16;

/// The label of a ciphertext: public context that the encryptor chose. Policies decide by it, and the ciphertext is bound to it.
/// It is any bytes, at most [`MOST_LABEL`] of them; a ciphertext without a label has an empty one.
///
/// `B` owns the bytes or borrows them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Label<B>(B);

/// The bytes are too long for a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a label has at most {MOST_LABEL} bytes, not {got}")]
pub struct LabelError {
    /// How many bytes there were.
    pub got: usize,
}

impl Label<&'static [u8]> {
    /// No label.
    pub const EMPTY: Self = Self(b"");
}

impl<B: AsRef<[u8]>> Label<B> {
    /// The label of these bytes.
    ///
    /// # Errors
    /// [`LabelError`] if they are more than [`MOST_LABEL`].
    pub fn new(bytes: B) -> Result<Self, LabelError> {
        let got = bytes.as_ref().len();
        if got > MOST_LABEL { Err(LabelError { got }) } else { Ok(Self(bytes)) }
    }

    /// A label that borrows these bytes.
    #[must_use]
    pub fn view(&self) -> Label<&[u8]> {
        Label(self.0.as_ref())
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_ref().len()
    }

    /// Whether the label is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_empty()
    }
}

impl<'a> Label<&'a [u8]> {
    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// A copy that owns its bytes.
    #[must_use]
    pub fn copied(self) -> Label<Vec<u8>> {
        Label(self.0.to_vec())
    }
}

impl<B> Label<B> {
    /// The holder of its bytes.
    #[must_use]
    pub const fn get(&self) -> &B {
        &self.0
    }
}

impl<B: AsRef<[u8]>> fmt::Debug for Label<B> {
    /// The bytes as text, with all but printable ASCII escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.as_ref().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_any_bytes_but_not_too_many() {
        for bytes in [&b""[..], b"inbox/1", b"\xff\0", &[7; MOST_LABEL]] {
            let label = Label::new(bytes).unwrap();
            assert_eq!((label.bytes(), label.len(), label.is_empty()), (bytes, bytes.len(), bytes.is_empty()));
            assert_eq!(Label::new(bytes.to_vec()).unwrap().view(), label);
            assert_eq!(label.copied().view(), label);
        }
        assert_eq!(Label::new(vec![0; MOST_LABEL + 1]), Err(LabelError { got: 65_537 }));
        assert_eq!((Label::EMPTY, Label::<Vec<u8>>::default().len()), (Label::default(), 0));
    }

    #[test]
    fn what_is_shown_of_a_label_cannot_mislead_a_terminal() {
        assert_eq!(format!("{:?}", Label::new(b"a\"\x1b[2J\xff").unwrap()), r#""a\"\x1b[2J\xff""#);
    }
}
