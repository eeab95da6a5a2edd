//! What an agent has agreed to, so that no number is used twice and no key signs two things; and which statements of members have counted, so that
//! none comes back that another has taken the place of. A line for each.

use std::{collections::BTreeMap, fmt, str::FromStr};

/// A serial number, the number of a manifest or of a list: 20 bytes, big-endian.
pub type Number = [u8; 20];
/// SHA-256.
pub type Digest = [u8; 32];

/// In the place of the end of a statement that has none: it withdraws.
const NO_END: &str = "-";

/// A statement that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The member's number.
    pub number: u64,
    /// SHA-256 of what the member signed.
    pub digest: Digest,
    /// When it ends, in seconds since 1970; of a withdrawal `None`.
    pub until: Option<i64>,
}

impl Counted {
    /// By what two about the same are ordered: the higher one decides.
    #[must_use]
    pub fn rank(&self) -> (u64, Digest) {
        (self.number, self.digest)
    }

    /// Whether it grants something now.
    #[must_use]
    pub fn grants(&self, now: i64) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

/// Something that was agreed to, or has counted.
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
    /// A statement of a member that decided about something.
    Statement {
        /// The member's handle.
        member: String,
        /// What it is about, in a word without spaces.
        subject: String,
        /// Which it is.
        counted: Counted,
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
            Self::Statement { member, subject, counted: Counted { number, digest, until } } => {
                write!(f, "statement {member} {subject} {number} {} ", hex::encode(digest))?;
                match until {
                    Some(until) => write!(f, "{until}"),
                    None => f.write_str(NO_END),
                }
            }
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
            ["statement", member, subject, number, digest, until] => {
                let until = if until == NO_END { None } else { Some(until.parse().ok()?) };
                let counted = Counted { number: number.parse().ok()?, digest: digits(digest)?, until };
                Some(Self::Statement { member: member.to_owned(), subject: subject.to_owned(), counted })
            }
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

/// All that was agreed to, and what has counted.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    issued: BTreeMap<String, Issued>,
    contents: BTreeMap<Number, Digest>,
    /// By members and what statements are about.
    counted: BTreeMap<String, BTreeMap<String, Counted>>,
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
            Entry::Statement { member, subject, counted } => {
                let last = self.counted.entry(member).or_default().entry(subject).or_insert(counted);
                if last.rank() < counted.rank() {
                    *last = counted;
                }
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
            Entry::Statement { member, subject, counted } => self.counted(member, subject) == Some(counted),
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

    /// The highest statement of a member about something that has counted.
    #[must_use]
    pub fn counted(&self, member: &str, subject: &str) -> Option<&Counted> {
        self.counted.get(member)?.get(subject)
    }

    /// The highest statements of members that have counted: the member, what it is about, which it is.
    pub fn statements(&self) -> impl Iterator<Item = (&str, &str, &Counted)> {
        self.counted.iter().flat_map(|(member, all)| {
            all.iter().map(move |(subject, counted)| (member.as_str(), subject.as_str(), counted))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> [Entry; 6] {
        let authority = || "acme".to_owned();
        let file = "a.roa".to_owned();
        let statement = |subject: &str, until| Entry::Statement {
            member: "acme".to_owned(),
            subject: subject.to_owned(),
            counted: Counted { number: u64::MAX, digest: [9; 32], until },
        };
        [
            Entry::Certificate { authority: authority(), serial: [1; 20], digest: [2; 32], file, until: -5 },
            Entry::List { authority: authority(), number: [3; 20], digest: [4; 32] },
            Entry::Manifest { authority: authority(), number: [5; 20], digest: [6; 32] },
            Entry::Content { key: [7; 20], digest: [8; 32] },
            statement("aspa-1", Some(7)),
            statement("aspa-2", None),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let mut memory = Memory::default();
        for entry in entries() {
            assert_eq!(entry.to_string().parse::<Entry>(), Ok(entry.clone()));
            assert!(!memory.knows(&entry));
            memory.learn(entry.clone());
            assert!(memory.knows(&entry));
        }
        assert!(memory.of("acme").unwrap().is_newest(&[1; 20]));
        for line in ["list acme 00", "statement acme aspa-1 1 00 -", "statement acme aspa-1 -1 00 -", "memory v1", ""] {
            assert_eq!(line.parse::<Entry>(), Err(()), "{line}");
        }
    }

    #[test]
    fn the_highest_statement_counts() {
        let mut memory = Memory::default();
        let counted = |number, digest: u8| Counted { number, digest: [digest; 32], until: None };
        for (number, digest) in [(2, 5), (1, 9), (2, 6), (2, 4)] {
            let (member, subject) = ("acme".to_owned(), "aspa-1".to_owned());
            memory.learn(Entry::Statement { member, subject, counted: counted(number, digest) });
        }
        let all: Vec<_> = memory.statements().collect();
        assert_eq!(all, [("acme", "aspa-1", &counted(2, 6))]);
        assert!(memory.counted("acme", "aspa-2").is_none() && memory.counted("else", "aspa-1").is_none());
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
