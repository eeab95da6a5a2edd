//! What an agent has agreed to, so that no number is used twice and no key signs two things; and which statements of members have counted, so that
//! none comes back that another has taken the place of. A line for each.

mod compact;
mod entry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque, btree_map};

pub use self::{compact::Sieve, entry::Entry};

/// A serial number, the number of a manifest or of a list: 20 bytes, big-endian.
pub type Number = [u8; 20];
/// SHA-256.
pub type Digest = [u8; 32];

/// In seconds.
const DAY: i64 = 86_400;
/// So many beginnings of lists, and of manifests, are known of each authority: as many as there may be in a day before they have to wait.
pub const MOST_BEGUN: usize = 64;

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

/// A certificate that was agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    /// SHA-256 of what was to be signed.
    pub digest: Digest,
    /// The name of the file that it is for, or is in.
    pub file: String,
    /// When it begins, in seconds since 1970.
    pub from: i64,
    /// When it ends, in seconds since 1970.
    pub until: i64,
    /// The identifier of the certified key.
    pub key: Number,
}

/// A certificate that was on a manifest that was agreed to, or that operators have permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The name of the file that it is in.
    pub file: String,
    /// When it ends, in seconds since 1970.
    pub until: i64,
    /// When the manifest begins that has another one in that file, in seconds since 1970: no later one has this one.
    pub replaced: Option<i64>,
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
    /// How many certificates there are for its keys.
    pub certificates: usize,
    /// How often another key has come to sign it.
    pub changes: usize,
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
    /// The serial numbers of the certificates for each file, in the order in which they were agreed to.
    files: BTreeMap<String, Vec<Number>>,
    revoked: BTreeSet<Number>,
    published: BTreeMap<Number, Published>,
    /// The serial numbers of what is in each file by the last manifest that has it.
    current: BTreeMap<String, Number>,
    list: Option<Last>,
    manifest: Option<LastManifest>,
    lists: Begun,
    manifests: Begun,
}

/// When the last ones of some kind have begun, in seconds since 1970.
#[derive(Clone, Debug, Default)]
struct Begun(VecDeque<i64>);

impl Begun {
    fn add(&mut self, from: i64) {
        self.0.push_back(from);
        if self.0.len() > MOST_BEGUN {
            self.0.pop_front();
        }
    }

    fn since(&self, since: i64) -> usize {
        self.0.iter().filter(|from| **from > since).count()
    }
}

impl Issued {
    fn list_begins(&mut self, number: Number, digest: Digest, from: i64) {
        if self.list.is_some_and(|before| before.number > number) {
            return;
        }
        if self.list.is_none_or(|before| before.digest != digest) {
            self.lists.add(from);
        }
        self.list = Some(Last { number, digest, from });
    }

    fn manifest_begins(&mut self, last: Last, key: Number, until: i64) {
        if self.manifest.is_some_and(|before| before.last.number > last.number) {
            return;
        }
        // The same one may be signed by another key.
        let same = self.manifest.filter(|before| before.last.digest == last.digest);
        let certificates = same.map_or(0, |before| before.certificates);
        let changes = same.map_or(0, |before| before.changes.saturating_add(usize::from(before.key != key)));
        if same.is_none() {
            self.manifests.add(last.from);
        }
        self.manifest = Some(LastManifest { last, key, until, certificates, changes });
    }

    fn certify(&mut self, serial: Number, certified: Certified) {
        let (file, key) = (certified.file.clone(), certified.key);
        // The same one may be agreed to again.
        if self.certificates.insert(serial, certified).is_some() {
            return;
        }
        self.files.entry(file).or_default().push(serial);
        if let Some(manifest) = self.manifest.as_mut().filter(|manifest| manifest.key == key) {
            manifest.certificates = manifest.certificates.saturating_add(1);
        }
    }

    fn publish(&mut self, serial: Number, published: Published, from: i64) {
        if let Some(before) = self.current.insert(published.file.clone(), serial).filter(|before| *before != serial)
            && let Some(before) = self.published.get_mut(&before)
        {
            before.replaced = Some(from);
        }
        self.published.insert(serial, published);
    }

    /// The certificate with this serial number.
    #[must_use]
    pub fn certificate(&self, serial: &Number) -> Option<&Certified> {
        self.certificates.get(serial)
    }

    /// All of its certificates, by their serial numbers.
    pub fn certificates(&self) -> impl Iterator<Item = (&Number, &Certified)> {
        self.certificates.iter()
    }

    /// Whether a list that was agreed to revokes the certificate with this serial number, which was agreed to before that list.
    #[must_use]
    pub fn is_revoked(&self, serial: &Number) -> bool {
        self.revoked.contains(serial)
    }

    /// Whether the certificate with this serial number was on a manifest that was agreed to, or operators have permitted it.
    #[must_use]
    pub fn is_published(&self, serial: &Number) -> bool {
        self.published.contains_key(serial)
    }

    /// The certificates that may be on a manifest which begins after this time, in seconds since 1970.
    pub fn exposed(&self, since: i64) -> impl Iterator<Item = (&Number, &Published)> {
        self.published.iter().filter(move |(_, published)| published.replaced.is_none_or(|at| at > since))
    }

    /// How many certificates of a file begin later than this, in seconds since 1970. Revoked ones count: a list that is published nowhere revokes as well.
    #[must_use]
    pub fn begun(&self, file: &str, since: i64) -> usize {
        let of_file = self.files.get(file).into_iter().flatten();
        of_file.filter_map(|serial| self.certificate(serial)).filter(|certified| certified.from > since).count()
    }

    /// How many lists begin later than this, in seconds since 1970, of the last [`MOST_BEGUN`].
    #[must_use]
    pub fn lists_begun(&self, since: i64) -> usize {
        self.lists.since(since)
    }

    /// How many manifests begin later than this, in seconds since 1970, of the last [`MOST_BEGUN`].
    #[must_use]
    pub fn manifests_begun(&self, since: i64) -> usize {
        self.manifests.since(since)
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
    /// When keys were taken for each purpose, in seconds since 1970.
    keys: BTreeMap<Purpose, Vec<i64>>,
    /// The contents of each authority's objects that have a key.
    contents: BTreeMap<String, BTreeSet<Digest>>,
    /// By members and what statements are about.
    counted: BTreeMap<String, BTreeMap<String, Counted>>,
    /// When the latest thing begins that was agreed to, in seconds since 1970.
    latest: Option<i64>,
}

impl Memory {
    /// Takes one more.
    pub fn learn(&mut self, entry: Entry) {
        self.latest = self.latest.max(entry.begins());
        match entry {
            Entry::Certificate { authority, serial, digest, file, from, until, key } => {
                self.issued.entry(authority).or_default().certify(serial, Certified { digest, file, from, until, key });
            }
            Entry::List { authority, number, digest, from } => {
                self.issued.entry(authority).or_default().list_begins(number, digest, from);
            }
            Entry::Revoked { authority, serial } => {
                self.issued.entry(authority).or_default().revoked.insert(serial);
            }
            Entry::Published { authority, serial, file, from, until } => {
                let published = Published { file, until, replaced: None };
                self.issued.entry(authority).or_default().publish(serial, published, from);
            }
            Entry::Manifest { authority, number, digest, key, from, until } => {
                self.bind(key, Purpose::Manifests(authority.clone()), from);
                let last = Last { number, digest, from };
                self.issued.entry(authority).or_default().manifest_begins(last, key, until);
            }
            Entry::Content { key, digest, authority, from } => {
                let purpose = Purpose::Content(digest);
                if !self.has_keys(&purpose) {
                    self.contents.entry(authority).or_default().insert(digest);
                }
                self.bind(key, purpose, from);
            }
            Entry::Statement { member, subject, counted } => {
                let last = self.counted.entry(member).or_default().entry(subject).or_insert(counted);
                if last.rank() < counted.rank() {
                    *last = counted;
                }
            }
        }
    }

    /// A key that is taken for something stays taken for it.
    fn bind(&mut self, key: Number, purpose: Purpose, from: i64) {
        if let btree_map::Entry::Vacant(free) = self.purposes.entry(key) {
            free.insert(purpose.clone());
            self.keys.entry(purpose).or_default().push(from);
        }
    }

    /// Whether nothing would be learnt from this: it was agreed to before, just so, or is of a number below the last one.
    #[must_use]
    pub fn knows(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Certificate { authority, serial, digest, .. } => self
                .of(authority)
                .and_then(|issued| issued.certificate(serial))
                .is_some_and(|old| old.digest == *digest),
            Entry::List { authority, number, digest, from } => {
                let list = Last { number: *number, digest: *digest, from: *from };
                let last = self.of(authority).and_then(Issued::list);
                last.is_some_and(|last| list.number < last.number || list == *last)
            }
            Entry::Revoked { authority, serial } => self.of(authority).is_some_and(|issued| issued.is_revoked(serial)),
            Entry::Published { authority, serial, file, .. } => {
                self.of(authority).is_some_and(|issued| issued.current.get(file) == Some(serial))
            }
            Entry::Manifest { authority, number, digest, key, from, until } => {
                let last = Last { number: *number, digest: *digest, from: *from };
                let old = |before: &LastManifest| last.number < before.last.number && self.purpose(key).is_some();
                let same = |before: &LastManifest| before.last == last && before.key == *key && before.until == *until;
                self.of(authority).and_then(Issued::manifest).is_some_and(|before| old(before) || same(before))
            }
            Entry::Content { key, digest, .. } => self.purpose(key) == Some(&Purpose::Content(*digest)),
            Entry::Statement { member, subject, counted } => self.counted(member, subject) == Some(counted),
        }
    }

    /// When the latest thing begins that was agreed to, in seconds since 1970: by that it is told when that was.
    #[must_use]
    pub fn latest(&self) -> Option<i64> {
        self.latest
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

    /// Whether there is a key for this.
    #[must_use]
    pub fn has_keys(&self, purpose: &Purpose) -> bool {
        self.keys.contains_key(purpose)
    }

    /// How many keys were taken for this after a time, in seconds since 1970.
    #[must_use]
    pub fn keys_since(&self, purpose: &Purpose, since: i64) -> usize {
        self.keys.get(purpose).into_iter().flatten().filter(|taken| **taken > since).count()
    }

    /// The contents of this authority's objects that have a key.
    #[must_use]
    pub fn contents_of(&self, authority: &str) -> Option<&BTreeSet<Digest>> {
        self.contents.get(authority)
    }

    /// What keys are for, by their identifiers.
    pub fn purposes(&self) -> impl Iterator<Item = (&Number, &Purpose)> {
        self.purposes.iter()
    }

    /// The highest statement of a member about something that has counted.
    #[must_use]
    pub fn counted(&self, member: &str, subject: &str) -> Option<&Counted> {
        self.counted.get(member)?.get(subject)
    }

    /// The members of whom a statement has counted.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        self.counted.keys().map(String::as_str)
    }

    /// The highest statements of a member that have counted: what each is about, which it is.
    pub fn statements_of(&self, member: &str) -> impl Iterator<Item = (&str, &Counted)> {
        self.counted.get(member).into_iter().flatten().map(|(subject, counted)| (subject.as_str(), counted))
    }
}
