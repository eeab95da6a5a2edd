//! Domain names in their canonical form.

use core::{borrow::Borrow, fmt};

/// The longest name in bytes, with its root (RFC 1035, section 2.3.4).
const MOST: usize = 255;

/// A name: its labels from the root downwards, in lower case. So its order is the canonical one (RFC 4034, section 6.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(Vec<Vec<u8>>);

impl Owner {
    /// Reads an uncompressed name, and gives what comes after it. Upper case becomes lower case.
    #[must_use]
    pub fn read(mut bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (mut labels, mut read) = (Vec::new(), 0_usize);
        loop {
            let (length, rest) = bytes.split_first()?;
            read = read.saturating_add(1).saturating_add(usize::from(*length));
            // Pointers and other kinds of labels begin with two bits.
            if *length >= 64 || read > MOST {
                return None;
            }
            let (label, rest) = rest.split_at_checked(usize::from(*length))?;
            bytes = rest;
            if label.is_empty() {
                labels.reverse();
                return Some((Self(labels), bytes));
            }
            labels.push(label.to_ascii_lowercase());
        }
    }

    /// The name as it is written in messages, without compression.
    #[must_use]
    pub fn wire(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for label in self.0.iter().rev() {
            bytes.push(u8::try_from(label.len()).unwrap_or(63));
            bytes.extend_from_slice(label);
        }
        bytes.push(0);
        bytes
    }

    /// How many labels it has as signatures count them: without the root, and without a wildcard (RFC 4034, section 3.1.3).
    #[must_use]
    pub fn labels(&self) -> usize {
        let wild = self.0.last().is_some_and(|label| label == b"*");
        self.0.len().saturating_sub(usize::from(wild))
    }

    /// Whether it is this name, or beneath it.
    #[must_use]
    pub fn is_in(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The names above it, the nearest first, as [`Self::borrow`] has them.
    pub fn above(&self) -> impl Iterator<Item = &[Vec<u8>]> {
        (0..self.0.len()).rev().filter_map(|labels| self.0.get(..labels))
    }

    /// The name with these labels, from the root downwards and in lower case, as [`Self::above`] has them.
    pub(crate) fn of_labels(labels: &[Vec<u8>]) -> Self {
        Self(labels.to_vec())
    }

    /// Its label that is the farthest from the root; the root has none.
    pub(crate) fn label(&self) -> Option<&[u8]> {
        self.0.last().map(Vec::as_slice)
    }

    /// The name of this label, which is in lower case, directly beneath.
    pub(crate) fn below(&self, label: &[u8]) -> Self {
        Self(self.0.iter().cloned().chain([label.to_vec()]).collect())
    }

    /// Whether it is beneath this name.
    #[must_use]
    pub fn is_below(&self, other: &Self) -> bool {
        self.is_in(other) && self != other
    }
}

/// Its labels from the root down: names above it are beginnings of them. They have the order and the hash of the name.
impl Borrow<[Vec<u8>]> for Owner {
    fn borrow(&self) -> &[Vec<u8>] {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for label in self.0.iter().rev() {
            write!(f, "{}.", label.escape_ascii())?;
        }
        if self.0.is_empty() { f.write_str(".") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Owner {
        let mut wire = Vec::new();
        for label in text.split('.').filter(|label| !label.is_empty()) {
            wire.push(u8::try_from(label.len()).unwrap());
            wire.extend_from_slice(label.as_bytes());
        }
        wire.push(0);
        let (owner, rest) = Owner::read(&wire).unwrap();
        assert!(rest.is_empty());
        owner
    }

    /// The example of RFC 4034, section 6.1, but for its names of single bytes.
    #[test]
    fn names_have_the_canonical_order() {
        let sorted =
            ["example", "a.example", "yljkjljk.a.example", "Z.a.example", "zABC.a.EXAMPLE", "z.example", "*.z.example"];
        let names: Vec<Owner> = sorted.iter().map(|text| name(text)).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(name("zABC.a.EXAMPLE").to_string(), "zabc.a.example.");
        assert_eq!((name("*.z.example").labels(), name("z.example").labels(), name("").labels()), (2, 2, 0));
        assert!(name("z.example").is_below(&name("example")) && !name("zexample").is_in(&name("example")));
        let above: Vec<Vec<Vec<u8>>> = name("a.b.example").above().map(<[_]>::to_vec).collect();
        assert_eq!(above, [name("b.example").0, name("example").0, name("").0]);
        assert_eq!(Owner::read(&name("a.b").wire()), Some((name("a.b"), &[][..])));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for bytes in [&b""[..], b"\x03ab", b"\x01a", b"\xc0\x0c", b"\x40a\0", &[1; 300]] {
            assert_eq!(Owner::read(bytes), None, "{bytes:?}");
        }
    }
}
