//! What an agent has agreed to, so that no number is used twice and no key signs two things. A line for each, written before the node hears of it.

use std::{
    collections::{BTreeMap, BTreeSet},
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
        /// The identifier of the certified key.
        key: Number,
    },
    /// A list of revoked certificates.
    List {
        /// Whose.
        authority: String,
        /// Its number.
        number: Number,
        /// SHA-256 of what was to be signed.
        digest: Digest,
        /// When it begins (thisUpdate), in seconds since 1970.
        from: i64,
    },
    /// A certificate that a list revokes, and that was agreed to before.
    Revoked {
        /// Whose.
        authority: String,
        /// Its serial number.
        serial: Number,
    },
    /// A manifest.
    Manifest {
        /// Whose.
        authority: String,
        /// Its number.
        number: Number,
        /// SHA-256 of its content.
        digest: Digest,
        /// The identifier of the key that signs it.
        key: Number,
        /// When it begins (thisUpdate), in seconds since 1970.
        from: i64,
        /// When the next one is due (nextUpdate), in seconds since 1970.
        until: i64,
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
            Self::Certificate { authority, serial, digest, file, until, key } => {
                let [serial, digest, key] = [&serial[..], digest, key].map(hex::encode);
                write!(f, "certificate {authority} {serial} {digest} {file} {until} {key}")
            }
            Self::List { authority, number, digest, from } => {
                write!(f, "list {authority} {} {} {from}", hex::encode(number), hex::encode(digest))
            }
            Self::Revoked { authority, serial } => write!(f, "revoked {authority} {}", hex::encode(serial)),
            Self::Manifest { authority, number, digest, key, from, until } => {
                let [number, digest, key] = [&number[..], digest, key].map(hex::encode);
                write!(f, "manifest {authority} {number} {digest} {key} {from} {until}")
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
            ["certificate", authority, serial, digest, file, until, key] => Some(Self::Certificate {
                authority: authority.to_owned(),
                serial: digits(serial)?,
                digest: digits(digest)?,
                file: file.to_owned(),
                until: until.parse().ok()?,
                key: digits(key)?,
            }),
            ["list", authority, number, digest, from] => Some(Self::List {
                authority: authority.to_owned(),
                number: digits(number)?,
                digest: digits(digest)?,
                from: from.parse().ok()?,
            }),
            ["revoked", authority, serial] => {
                Some(Self::Revoked { authority: authority.to_owned(), serial: digits(serial)? })
            }
            ["manifest", authority, number, digest, key, from, until] => Some(Self::Manifest {
                authority: authority.to_owned(),
                number: digits(number)?,
                digest: digits(digest)?,
                key: digits(key)?,
                from: from.parse().ok()?,
                until: until.parse().ok()?,
            }),
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
    /// The identifier of the certified key.
    pub key: Number,
}

/// The last list of an authority, or what a manifest has in common with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// Its number.
    pub number: Number,
    /// SHA-256 of what was to be signed; of a manifest, of its content.
    pub digest: Digest,
    /// When it begins, in seconds since 1970.
    pub from: i64,
}

/// The last manifest of an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastManifest {
    /// What lists have as well.
    pub last: Last,
    /// The identifier of the key that signs it.
    pub key: Number,
    /// When the next one is due, in seconds since 1970.
    pub until: i64,
}

/// What a key of the pool is for, as soon as it has signed or was certified.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// One content, by its SHA-256.
    Content(Digest),
    /// The manifests of this authority.
    Manifests(String),
}

/// What was agreed to of one authority.
#[derive(Clone, Debug, Default)]
pub struct Issued {
    certificates: BTreeMap<Number, Certified>,
    newest: BTreeMap<String, Number>,
    revoked: BTreeSet<Number>,
    list: Option<Last>,
    manifest: Option<LastManifest>,
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

    /// Whether a list that was agreed to revokes the certificate with this serial number, which was agreed to before that list.
    #[must_use]
    pub fn is_revoked(&self, serial: &Number) -> bool {
        self.revoked.contains(serial)
    }

    /// How many certificates of a file there are that have not ended, and that no list revokes.
    #[must_use]
    pub fn standing(&self, file: &str, now: i64) -> usize {
        let stands = |(serial, certified): &(&Number, &Certified)| {
            certified.file == file && certified.until > now && !self.is_revoked(serial)
        };
        self.certificates.iter().filter(stands).count()
    }

    /// The last list.
    #[must_use]
    pub fn list(&self) -> Option<&Last> {
        self.list.as_ref()
    }

    /// The last manifest.
    #[must_use]
    pub fn manifest(&self) -> Option<&LastManifest> {
        self.manifest.as_ref()
    }
}

/// All that was agreed to.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    issued: BTreeMap<String, Issued>,
    purposes: BTreeMap<Number, Purpose>,
    /// How many keys there are for each purpose.
    keys: BTreeMap<Purpose, usize>,
}

impl Memory {
    /// Takes one more.
    pub fn learn(&mut self, entry: Entry) {
        match entry {
            Entry::Certificate { authority, serial, digest, file, until, key } => {
                let issued = self.issued.entry(authority).or_default();
                issued.newest.insert(file.clone(), serial);
                issued.certificates.insert(serial, Certified { digest, file, until, key });
            }
            Entry::List { authority, number, digest, from } => {
                let list = &mut self.issued.entry(authority).or_default().list;
                if list.is_none_or(|before| before.number <= number) {
                    *list = Some(Last { number, digest, from });
                }
            }
            Entry::Revoked { authority, serial } => {
                self.issued.entry(authority).or_default().revoked.insert(serial);
            }
            Entry::Manifest { authority, number, digest, key, from, until } => {
                self.bind(key, Purpose::Manifests(authority.clone()));
                let manifest = &mut self.issued.entry(authority).or_default().manifest;
                if manifest.is_none_or(|before| before.last.number <= number) {
                    *manifest = Some(LastManifest { last: Last { number, digest, from }, key, until });
                }
            }
            Entry::Content { key, digest } => self.bind(key, Purpose::Content(digest)),
        }
    }

    fn bind(&mut self, key: Number, purpose: Purpose) {
        if let Some(before) = self.purposes.insert(key, purpose.clone()) {
            self.keys.entry(before).and_modify(|count| *count = count.saturating_sub(1));
        }
        let count = self.keys.entry(purpose).or_default();
        *count = count.saturating_add(1);
    }

    /// Whether this was agreed to before, just so.
    #[must_use]
    pub fn knows(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Certificate { authority, serial, digest, .. } => self
                .of(authority)
                .and_then(|issued| issued.certificate(serial))
                .is_some_and(|old| old.digest == *digest),
            Entry::List { authority, number, digest, from } => {
                let list = Last { number: *number, digest: *digest, from: *from };
                self.of(authority).and_then(Issued::list) == Some(&list)
            }
            Entry::Revoked { authority, serial } => self.of(authority).is_some_and(|issued| issued.is_revoked(serial)),
            Entry::Manifest { authority, number, digest, key, from, until } => {
                let last = Last { number: *number, digest: *digest, from: *from };
                let manifest = LastManifest { last, key: *key, until: *until };
                self.of(authority).and_then(Issued::manifest) == Some(&manifest)
            }
            Entry::Content { key, digest } => self.purpose(key) == Some(&Purpose::Content(*digest)),
        }
    }

    /// What was agreed to of this authority.
    #[must_use]
    pub fn of(&self, authority: &str) -> Option<&Issued> {
        self.issued.get(authority)
    }

    /// What this key of the pool is for.
    #[must_use]
    pub fn purpose(&self, key: &Number) -> Option<&Purpose> {
        self.purposes.get(key)
    }

    /// How many keys are for this.
    #[must_use]
    pub fn keys_for(&self, purpose: &Purpose) -> usize {
        self.keys.get(purpose).copied().unwrap_or_default()
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

    fn entries() -> [Entry; 5] {
        let authority = || "acme".to_owned();
        let (file, until) = ("a.roa".to_owned(), -5);
        [
            Entry::Certificate { authority: authority(), serial: [1; 20], digest: [2; 32], file, until, key: [7; 20] },
            Entry::List { authority: authority(), number: [3; 20], digest: [4; 32], from: 1 },
            Entry::Revoked { authority: authority(), serial: [1; 20] },
            Entry::Manifest {
                authority: authority(),
                number: [5; 20],
                digest: [6; 32],
                key: [9; 20],
                from: 2,
                until: 3,
            },
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
        assert_eq!(text.lines().count(), 5, "each once");
        fs::write(&path, format!("{text}list acme 00")).unwrap();
        let mut kept = Kept::open(&path).unwrap();
        assert!(entries().iter().all(|entry| kept.memory().knows(entry)));
        assert!(kept.memory().of("acme").unwrap().is_newest(&[1; 20]));
        let next = Entry::Content { key: [10; 20], digest: [8; 32] };
        kept.remember(std::slice::from_ref(&next)).unwrap();
        assert!(Kept::open(&path).unwrap().memory().knows(&next), "written after what was left of a line");
        fs::write(&path, format!("{text}list acme 00\n")).unwrap();
        assert!(matches!(Kept::open(&path), Err(MemoryError::Line { line: 6, .. })));
    }

    #[test]
    fn the_highest_number_and_the_last_certificate_count() {
        let mut memory = Memory::default();
        let list = |number| Entry::List { authority: "a".to_owned(), number: [number; 20], digest: [0; 32], from: 0 };
        [list(2), list(1)].into_iter().for_each(|entry| memory.learn(entry));
        assert_eq!(memory.of("a").unwrap().list(), Some(&Last { number: [2; 20], digest: [0; 32], from: 0 }));
        let certificate = |serial| Entry::Certificate {
            authority: "a".to_owned(),
            serial: [serial; 20],
            digest: [0; 32],
            file: "f".to_owned(),
            until: 1,
            key: [0; 20],
        };
        [certificate(1), certificate(2)].into_iter().for_each(|entry| memory.learn(entry));
        let issued = memory.of("a").unwrap();
        assert!(issued.is_newest(&[2; 20]) && !issued.is_newest(&[1; 20]) && !issued.is_newest(&[3; 20]));
        assert_eq!((issued.standing("f", 0), issued.standing("f", 1), issued.standing("g", 0)), (2, 0, 0));
        memory.learn(Entry::Revoked { authority: "a".to_owned(), serial: [1; 20] });
        assert_eq!(memory.of("a").unwrap().standing("f", 0), 1);
    }

    #[test]
    fn keys_are_counted_by_what_they_are_for() {
        let mut memory = Memory::default();
        let content = |key| Entry::Content { key: [key; 20], digest: [0; 32] };
        let (one, manifests) = (Purpose::Content([0; 32]), Purpose::Manifests("a".to_owned()));
        [content(1), content(2), content(1)].into_iter().for_each(|entry| memory.learn(entry));
        assert_eq!((memory.keys_for(&one), memory.keys_for(&manifests)), (2, 0));
        let (number, digest, key) = ([0; 20], [0; 32], [3; 20]);
        memory.learn(Entry::Manifest { authority: "a".to_owned(), number, digest, key, from: 0, until: 0 });
        assert_eq!((memory.purpose(&key), memory.keys_for(&manifests)), (Some(&manifests), 1));
    }
}
