//! What an agent has agreed to, so that no number is used twice and no key signs two things. A line for each, written before the node hears of it.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    str::FromStr,
};

/// A serial number, the number of a manifest or of a list: 20 bytes, big-endian.
pub type Number = [u8; 20];
/// SHA-256.
pub type Digest = [u8; 32];

/// Something that was agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A certificate.
    Certificate {
        /// Who certifies.
        authority: String,
        /// The serial number.
        serial: Number,
        /// SHA-256 of what was to be signed.
        digest: Digest,
        /// The name of the file that the certificate is for, or is in.
        file: String,
        /// When it ends, in seconds since 1970.
        until: i64,
    },
    /// A list of revoked certificates.
    List {
        /// Whose.
        authority: String,
        /// Its number.
        number: Number,
        /// SHA-256 of what was to be signed.
        digest: Digest,
    },
    /// A manifest.
    Manifest {
        /// Whose.
        authority: String,
        /// Its number.
        number: Number,
        /// SHA-256 of its content.
        digest: Digest,
    },
    /// The content that an object's key signs.
    Content {
        /// The key's identifier.
        key: Number,
        /// SHA-256 of the content.
        digest: Digest,
    },
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate { authority, serial, digest, file, until } => {
                write!(f, "certificate {authority} {} {} {file} {until}", hex::encode(serial), hex::encode(digest))
            }
            Self::List { authority, number, digest } => {
                write!(f, "list {authority} {} {}", hex::encode(number), hex::encode(digest))
            }
            Self::Manifest { authority, number, digest } => {
                write!(f, "manifest {authority} {} {}", hex::encode(number), hex::encode(digest))
            }
            Self::Content { key, digest } => write!(f, "content {} {}", hex::encode(key), hex::encode(digest)),
        }
    }
}

fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok().map(|()| bytes)
}

impl FromStr for Entry {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let words: Vec<_> = line.split(' ').collect();
        let read = || match *words.as_slice() {
            ["certificate", authority, serial, digest, file, until] => Some(Self::Certificate {
                authority: authority.to_owned(),
                serial: digits(serial)?,
                digest: digits(digest)?,
                file: file.to_owned(),
                until: until.parse().ok()?,
            }),
            ["list", authority, number, digest] => {
                let (number, digest) = (digits(number)?, digits(digest)?);
                Some(Self::List { authority: authority.to_owned(), number, digest })
            }
            ["manifest", authority, number, digest] => {
                let (number, digest) = (digits(number)?, digits(digest)?);
                Some(Self::Manifest { authority: authority.to_owned(), number, digest })
            }
            ["content", key, digest] => Some(Self::Content { key: digits(key)?, digest: digits(digest)? }),
            _ => None,
        };
        read().ok_or(())
    }
}

/// A certificate that was agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    /// SHA-256 of what was to be signed.
    pub digest: Digest,
    /// The name of the file that it is for, or is in.
    pub file: String,
    /// When it ends, in seconds since 1970.
    pub until: i64,
}

/// What was agreed to of one authority.
#[derive(Clone, Debug, Default)]
pub struct Issued {
    certificates: BTreeMap<Number, Certified>,
    newest: BTreeMap<String, Number>,
    list: Option<(Number, Digest)>,
    manifest: Option<(Number, Digest)>,
}

impl Issued {
    /// The certificate with this serial number.
    #[must_use]
    pub fn certificate(&self, serial: &Number) -> Option<&Certified> {
        self.certificates.get(serial)
    }

    /// All of its certificates, by their serial numbers.
    pub fn certificates(&self) -> impl Iterator<Item = (&Number, &Certified)> {
        self.certificates.iter()
    }

    /// Whether the certificate with this serial number is the last one for its file.
    #[must_use]
    pub fn is_newest(&self, serial: &Number) -> bool {
        let file = self.certificates.get(serial).map(|certified| certified.file.as_str());
        file.and_then(|file| self.newest.get(file)) == Some(serial)
    }

    /// Number and digest of the last list.
    #[must_use]
    pub fn list(&self) -> Option<&(Number, Digest)> {
        self.list.as_ref()
    }

    /// Number and digest of the last manifest.
    #[must_use]
    pub fn manifest(&self) -> Option<&(Number, Digest)> {
        self.manifest.as_ref()
    }
}

/// Keeps the higher one.
fn raise(last: &mut Option<(Number, Digest)>, number: Number, digest: Digest) {
    if last.is_none_or(|(last, _)| last <= number) {
        *last = Some((number, digest));
    }
}

/// All that was agreed to.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    issued: BTreeMap<String, Issued>,
    contents: BTreeMap<Number, Digest>,
}

impl Memory {
    /// Takes one more.
    pub fn learn(&mut self, entry: Entry) {
        match entry {
            Entry::Certificate { authority, serial, digest, file, until } => {
                let issued = self.issued.entry(authority).or_default();
                issued.newest.insert(file.clone(), serial);
                issued.certificates.insert(serial, Certified { digest, file, until });
            }
            Entry::List { authority, number, digest } => {
                raise(&mut self.issued.entry(authority).or_default().list, number, digest);
            }
            Entry::Manifest { authority, number, digest } => {
                raise(&mut self.issued.entry(authority).or_default().manifest, number, digest);
            }
            Entry::Content { key, digest } => {
                self.contents.insert(key, digest);
            }
        }
    }

    /// Whether this was agreed to before, just so.
    #[must_use]
    pub fn knows(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Certificate { authority, serial, digest, .. } => self
                .of(authority)
                .and_then(|issued| issued.certificate(serial))
                .is_some_and(|old| old.digest == *digest),
            Entry::List { authority, number, digest } => {
                self.of(authority).and_then(Issued::list) == Some(&(*number, *digest))
            }
            Entry::Manifest { authority, number, digest } => {
                self.of(authority).and_then(Issued::manifest) == Some(&(*number, *digest))
            }
            Entry::Content { key, digest } => self.content(key) == Some(digest),
        }
    }

    /// What was agreed to of this authority.
    #[must_use]
    pub fn of(&self, authority: &str) -> Option<&Issued> {
        self.issued.get(authority)
    }

    /// The content that this key has signed.
    #[must_use]
    pub fn content(&self, key: &Number) -> Option<&Digest> {
        self.contents.get(key)
    }
}

/// Why a memory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The file cannot be read or written.
    #[error("cannot use {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// A line is none.
    #[error("{}: line {line} is nothing that an agent writes", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

/// A memory with its file.
#[derive(Debug)]
pub struct Kept {
    memory: Memory,
    file: fs::File,
    /// How long the file is.
    length: u64,
    path: PathBuf,
}

impl Kept {
    /// Opens the file, or makes it. What a crash has left of a last line is taken away: the node has not heard of it.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn open(path: &Path) -> Result<Self, MemoryError> {
        let failed = |reason| MemoryError::File { path: path.to_owned(), reason };
        let file = fs::OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        let text = fs::read_to_string(path).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let length = u64::try_from(whole).unwrap_or(u64::MAX);
        file.set_len(length).map_err(failed)?;
        let mut memory = Memory::default();
        for (line, number) in text.get(..whole).unwrap_or_default().lines().zip(1..) {
            let entry =
                line.parse::<Entry>().map_err(|()| MemoryError::Line { path: path.to_owned(), line: number })?;
            memory.learn(entry);
        }
        Ok(Self { memory, file, length, path: path.to_owned() })
    }

    /// What is known.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Writes what is new of these, and returns when it is on the disk.
    ///
    /// # Errors
    /// [`MemoryError::File`]; nothing is known then that was not before.
    pub fn remember(&mut self, entries: &[Entry]) -> Result<(), MemoryError> {
        let new: Vec<_> = entries.iter().filter(|entry| !self.memory.knows(entry)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let text: String = new.iter().map(|entry| format!("{entry}\n")).collect();
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(reason) = written {
            // What there is of it would spoil the next line. If that fails as well, the next opening takes it away.
            let _ = self.file.set_len(self.length);
            return Err(MemoryError::File { path: self.path.clone(), reason });
        }
        self.length = self.length.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        new.into_iter().for_each(|entry| self.memory.learn(entry.clone()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> [Entry; 4] {
        let authority = || "acme".to_owned();
        let file = "a.roa".to_owned();
        [
            Entry::Certificate { authority: authority(), serial: [1; 20], digest: [2; 32], file, until: -5 },
            Entry::List { authority: authority(), number: [3; 20], digest: [4; 32] },
            Entry::Manifest { authority: authority(), number: [5; 20], digest: [6; 32] },
            Entry::Content { key: [7; 20], digest: [8; 32] },
        ]
    }

    #[test]
    fn what_was_agreed_to_is_known_after_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let mut kept = Kept::open(&path).unwrap();
        kept.remember(&entries()).unwrap();
        kept.remember(&entries()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4, "each once");
        fs::write(&path, format!("{text}list acme 00")).unwrap();
        let mut kept = Kept::open(&path).unwrap();
        assert!(entries().iter().all(|entry| kept.memory().knows(entry)));
        assert!(kept.memory().of("acme").unwrap().is_newest(&[1; 20]));
        let next = Entry::Content { key: [9; 20], digest: [8; 32] };
        kept.remember(std::slice::from_ref(&next)).unwrap();
        assert!(Kept::open(&path).unwrap().memory().knows(&next), "written after what was left of a line");
        fs::write(&path, format!("{text}list acme 00\n")).unwrap();
        assert!(matches!(Kept::open(&path), Err(MemoryError::Line { line: 5, .. })));
    }

    #[test]
    fn the_highest_number_and_the_last_certificate_count() {
        let mut memory = Memory::default();
        let list = |number| Entry::List { authority: "a".to_owned(), number: [number; 20], digest: [0; 32] };
        [list(2), list(1)].into_iter().for_each(|entry| memory.learn(entry));
        assert_eq!(memory.of("a").unwrap().list(), Some(&([2; 20], [0; 32])));
        let certificate = |serial| Entry::Certificate {
            authority: "a".to_owned(),
            serial: [serial; 20],
            digest: [0; 32],
            file: "f".to_owned(),
            until: 0,
        };
        [certificate(1), certificate(2)].into_iter().for_each(|entry| memory.learn(entry));
        let issued = memory.of("a").unwrap();
        assert!(issued.is_newest(&[2; 20]) && !issued.is_newest(&[1; 20]) && !issued.is_newest(&[3; 20]));
    }
}
