//! What an agent has agreed to, so that no number is used twice and no key signs two things; and which statements of members have counted, so that
//! none comes back that another has taken the place of. A line for each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

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

/// All that was agreed to, and what has counted.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    issued: BTreeMap<String, Issued>,
    purposes: BTreeMap<Number, Purpose>,
    /// How many keys there are for each purpose.
    keys: BTreeMap<Purpose, usize>,
    /// By members and what statements are about.
    counted: BTreeMap<String, BTreeMap<String, Counted>>,
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
            Entry::Statement { member, subject, counted } => {
                let last = self.counted.entry(member).or_default().entry(subject).or_insert(counted);
                if last.rank() < counted.rank() {
                    *last = counted;
                }
            }
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
            Entry::Statement { member, subject, counted } => self.counted(member, subject) == Some(counted),
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

    fn entries() -> [Entry; 7] {
        let authority = || "acme".to_owned();
        let (file, until) = ("a.roa".to_owned(), -5);
        let statement = |subject: &str, until| Entry::Statement {
            member: "acme".to_owned(),
            subject: subject.to_owned(),
            counted: Counted { number: u64::MAX, digest: [9; 32], until },
        };
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
