//! What of a memory is of no interest any more: certificates that have ended long ago, numbers and statements that others have taken the place of. Without
//! this it would grow by all that was ever signed. The lines pass twice, one after the other, so that they need not be in memory.

use std::collections::{BTreeMap, BTreeSet};

use super::{DAY, Digest, Entry, Issued, MOST_BEGUN, Memory, Number};

/// For so many seconds after its end a certificate is known: longer than clocks are apart and manifests last.
const KNOWN_FOR: i64 = 60 * DAY;
/// For so many seconds the beginnings of lists and manifests are known, which are counted by the day.
const COUNTED_FOR: i64 = 2 * DAY;

/// An authority's name, and the name of a file or a number of the authority's.
type Of<T> = (String, T);

/// Tells which lines of a memory decide about anything still to come: first it looks at all of them, then it says of each, in the same order, whether it is
/// needed. The time is the latest one at which something that was agreed to began, and not this machine's: by a clock that is wrong nothing is forgotten.
#[derive(Debug)]
pub struct Sieve<'a> {
    memory: &'a Memory,
    latest: i64,
    /// How many lists, and manifests, are still to come of each authority.
    lists: BTreeMap<String, usize>,
    manifests: BTreeMap<String, usize>,
    /// Until when something lasts that was published in a file.
    files: BTreeMap<Of<String>, i64>,
    /// The last line about what is published of each file, and of each certificate, counted among such lines.
    last_of_file: BTreeMap<Of<String>, usize>,
    last_of_serial: BTreeMap<Of<Number>, usize>,
    /// How many such lines there have been.
    published: usize,
    /// The files whose last line that has passed is needed, and is not the last: the next one says until when it was so.
    followed: BTreeSet<Of<String>>,
    /// The keys of manifests that a line has bound already.
    keys: BTreeSet<Number>,
    has_begun: bool,
}

impl<'a> Sieve<'a> {
    /// For the lines from which this memory was learnt.
    #[must_use]
    pub fn new(memory: &'a Memory) -> Self {
        Self {
            memory,
            latest: i64::MIN,
            lists: BTreeMap::new(),
            manifests: BTreeMap::new(),
            files: BTreeMap::new(),
            last_of_file: BTreeMap::new(),
            last_of_serial: BTreeMap::new(),
            published: 0,
            followed: BTreeSet::new(),
            keys: BTreeSet::new(),
            has_begun: false,
        }
    }

    /// Looks at one more of all lines.
    pub fn look(&mut self, entry: &Entry) {
        let more = |of: &mut BTreeMap<String, usize>, authority: &String| {
            let count = of.entry(authority.clone()).or_default();
            *count = count.saturating_add(1);
        };
        match entry {
            Entry::Certificate { from, .. } => self.latest = self.latest.max(*from),
            Entry::List { authority, from, .. } => {
                self.latest = self.latest.max(*from);
                more(&mut self.lists, authority);
            }
            Entry::Manifest { authority, from, .. } => {
                self.latest = self.latest.max(*from);
                more(&mut self.manifests, authority);
            }
            Entry::Published { authority, serial, file, until, .. } => {
                let of_file = (authority.clone(), file.clone());
                let lasts = self.files.entry(of_file.clone()).or_insert(*until);
                *lasts = (*lasts).max(*until);
                self.last_of_file.insert(of_file, self.published);
                self.last_of_serial.insert((authority.clone(), *serial), self.published);
                self.published = self.published.saturating_add(1);
            }
            Entry::Revoked { .. } | Entry::Statement { .. } | Entry::Content { .. } => {}
        }
    }

    /// Whether the next line is needed. Of what repeats at most a bounded number is: of lists and manifests those that are counted, of what is published in a
    /// file two lines for each certificate.
    pub fn keeps(&mut self, entry: &Entry) -> bool {
        if !self.has_begun {
            (self.has_begun, self.published) = (true, 0);
        }
        let over = self.latest.saturating_sub(KNOWN_FOR);
        match entry {
            Entry::Certificate { until, .. } => *until > over,
            Entry::Revoked { authority, serial } => {
                let of = self.memory.of(authority).and_then(|issued| issued.certificate(serial));
                of.is_none_or(|certified| certified.until > over)
            }
            Entry::Published { authority, serial, file, until, .. } => {
                self.keeps_published(&(authority.clone(), *serial), &(authority.clone(), file.clone()), *until > over)
            }
            // The last one, those that are counted, and of the others the first by each key: the key is for that.
            Entry::Manifest { authority, digest, key, from, .. } => {
                let is_counted = is_counted(&mut self.manifests, authority, *from, self.latest);
                let binds = self.keys.insert(*key);
                binds || is_counted || last_manifest(self.memory, authority) == Some(*digest)
            }
            Entry::List { authority, number, from, .. } => {
                let is_counted = is_counted(&mut self.lists, authority, *from, self.latest);
                let last = self.memory.of(authority).and_then(Issued::list);
                is_counted || last.is_some_and(|last| last.number == *number)
            }
            // One that has ended stays: what is older may last longer, and whoever has it could bring it back.
            Entry::Statement { .. } => self.memory.knows(entry),
            Entry::Content { .. } => true,
        }
    }

    /// Of what is in a file: the last line of each certificate that has not ended; the one after that, by which another took its place; and the last of all. None, if
    /// all has ended that was ever there.
    fn keeps_published(&mut self, serial: &Of<Number>, file: &Of<String>, lasts: bool) -> bool {
        let (at, over) = (self.published, self.latest.saturating_sub(KNOWN_FOR));
        self.published = self.published.saturating_add(1);
        if self.files.get(file).is_none_or(|until| *until <= over) {
            return false;
        }
        let follows = self.followed.remove(file);
        let is_last = lasts && self.last_of_serial.get(serial) == Some(&at);
        let ends = self.last_of_file.get(file) == Some(&at);
        if is_last && !ends {
            self.followed.insert(file.clone());
        }
        is_last || follows || ends
    }
}

/// Whether a list or a manifest is among those that are counted: the last ones of the last days. One less is still to come.
fn is_counted(coming: &mut BTreeMap<String, usize>, authority: &str, from: i64, latest: i64) -> bool {
    let Some(coming) = coming.get_mut(authority) else { return false };
    let is_late = *coming <= MOST_BEGUN;
    *coming = coming.saturating_sub(1);
    is_late && from > latest.saturating_sub(COUNTED_FOR)
}

fn last_manifest(memory: &Memory, authority: &str) -> Option<Digest> {
    memory.of(authority)?.manifest().map(|manifest| manifest.last.digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Counted, Purpose};

    fn compact(lines: Vec<Entry>, memory: &Memory) -> Vec<Entry> {
        let mut sieve = Sieve::new(memory);
        lines.iter().for_each(|line| sieve.look(line));
        lines.into_iter().filter(|line| sieve.keeps(line)).collect()
    }

    fn acme() -> String {
        "acme".to_owned()
    }

    /// What an authority with one object does in so many days: each day a manifest by one of two keys, and each tenth day another certificate, of a hundred
    /// days, of the object's key.
    fn days(days: i64) -> Vec<Entry> {
        let number =
            |day: i64| -> Number { std::array::from_fn(|at| day.to_be_bytes().get(at).copied().unwrap_or_default()) };
        let mut entries = Vec::new();
        let file = "a.roa".to_owned();
        for day in 0..days {
            let (from, mut digest) = (day * DAY, [7; 32]);
            digest[..8].copy_from_slice(&day.to_be_bytes());
            let (serial, until) = (number(day / 10), (day / 10 * 10 + 100) * DAY);
            if day % 10 == 0 {
                let (authority, file, key) = (acme(), file.clone(), [9; 20]);
                entries.push(Entry::Content { key, digest: [8; 32], authority: acme(), from });
                entries.push(Entry::Certificate { authority, serial, digest, file, from, until, key });
            }
            let key = [u8::try_from(day % 2).unwrap(); 20];
            entries.push(Entry::List { authority: acme(), number: number(day + 1), digest, from });
            if day >= 10 {
                entries.push(Entry::Revoked { authority: acme(), serial: number(day / 10 - 1) });
            }
            entries.push(Entry::Published { authority: acme(), serial, file: file.clone(), from, until });
            entries.push(Entry::Manifest {
                authority: acme(),
                number: number(day + 1),
                digest,
                key,
                from,
                until: from + 2 * DAY,
            });
            let counted = Counted { number: day.unsigned_abs(), digest, until: None };
            entries.push(Entry::Statement { member: acme(), subject: "aspa-1".to_owned(), counted });
        }
        entries
    }

    /// What is remembered as an agent does: what is known already is no line.
    fn remembered(all: Vec<Entry>) -> (Vec<Entry>, Memory) {
        let (mut memory, mut lines) = (Memory::default(), Vec::new());
        for entry in all {
            if !memory.knows(&entry) {
                memory.learn(entry.clone());
                lines.push(entry);
            }
        }
        (lines, memory)
    }

    #[test]
    fn what_decides_stays_and_the_rest_goes() {
        let (lines, memory) = remembered(days(1_000));
        let short = compact(lines.clone(), &memory);
        assert!(short.len() * 10 < lines.len(), "{} of {}", short.len(), lines.len());
        let (again, shorter) = remembered(short.clone());
        assert_eq!(again, short, "no line is there twice");
        let (of, short_of) = (memory.of("acme").unwrap(), shorter.of("acme").unwrap());
        assert_eq!((of.list(), of.manifest()), (short_of.list(), short_of.manifest()));
        let lasting = |issued: &Issued| {
            let lasting = issued.certificates().filter(|(_, certified)| certified.until > 1_000 * DAY);
            lasting
                .map(|(serial, certified)| (*serial, certified.clone(), issued.is_revoked(serial)))
                .collect::<Vec<_>>()
        };
        assert_eq!(lasting(of), lasting(short_of));
        assert!(lasting(of).len() >= 9);
        for since in [0, 900 * DAY, 995 * DAY] {
            let exposed = |issued: &Issued| {
                let exposed = issued.exposed(since).filter(|(_, one)| one.until > 1_000 * DAY);
                exposed.map(|(serial, one)| (*serial, one.clone())).collect::<Vec<_>>()
            };
            assert_eq!(exposed(of), exposed(short_of));
        }
        for key in [[0; 20], [1; 20], [9; 20]] {
            assert_eq!(memory.purpose(&key), shorter.purpose(&key));
        }
        assert_eq!(memory.purpose(&[1; 20]), Some(&Purpose::Manifests(acme())));
        assert_eq!(memory.counted("acme", "aspa-1"), shorter.counted("acme", "aspa-1"));
        assert_eq!(memory.contents_of("acme"), shorter.contents_of("acme"));
    }

    /// Somebody has manifests made that swap two good certificates of a file all the time. What was there until when is known as before.
    #[test]
    fn what_is_swapped_all_the_time_takes_few_lines() {
        let published = |serial: u8, from: i64| {
            let (authority, file) = (acme(), "a.roa".to_owned());
            Entry::Published { authority, serial: [serial; 20], file, from, until: 100 * DAY }
        };
        // Four take turns for a while, then two of them.
        let turns = (0..100).map(|at| if at < 50 { at % 4 } else { at % 2 });
        let all = (0..).zip(turns).map(|(at, serial)| published(u8::try_from(serial).unwrap(), at));
        let (lines, memory) = remembered(all.collect());
        assert_eq!(lines.len(), 100);
        let short = compact(lines, &memory);
        assert!(short.len() <= 8, "{short:?}");
        let (_, shorter) = remembered(short);
        for since in -1..101 {
            let exposed = |memory: &Memory| {
                let issued = memory.of("acme").unwrap();
                issued.exposed(since).map(|(serial, one)| (*serial, one.clone())).collect::<Vec<_>>()
            };
            assert_eq!(exposed(&memory), exposed(&shorter), "{since}");
        }
        assert_eq!([0, 1].map(|serial| memory.knows(&published(serial, 0))), [false, true]);
        assert_eq!([0, 1].map(|serial| shorter.knows(&published(serial, 0))), [false, true]);
    }

    /// What is counted by the day is so after the memory was written anew.
    #[test]
    fn lists_and_manifests_of_a_day_are_counted_as_before() {
        let number = |number: u8| [number; 20];
        let mut all = days(100);
        for at in 0..100_u8 {
            let (from, digest) = (100 * DAY + i64::from(at), [at; 32]);
            all.push(Entry::List { authority: acme(), number: number(at + 100), digest, from });
            let (key, until) = ([at % 2; 20], from + DAY);
            all.push(Entry::Manifest { authority: acme(), number: number(at + 100), digest, key, from, until });
        }
        let (lines, memory) = remembered(all);
        let (_, shorter) = remembered(compact(lines, &memory));
        let begun = |memory: &Memory, since: i64| {
            let issued = memory.of("acme").unwrap();
            (issued.lists_begun(since), issued.manifests_begun(since))
        };
        for since in [98 * DAY, 100 * DAY + 50, 100 * DAY + 90] {
            assert_eq!(begun(&memory, since), begun(&shorter, since));
        }
        assert_eq!(begun(&memory, 99 * DAY), (MOST_BEGUN, MOST_BEGUN));
        assert_eq!(begun(&memory, 100 * DAY + 89), (10, 10));
    }

    /// Nothing has ended by what was agreed to, whatever a clock says.
    #[test]
    fn what_is_of_these_days_stays() {
        let (lines, memory) = remembered(days(9));
        let short = compact(lines.clone(), &memory);
        let certificates =
            |lines: &[Entry]| lines.iter().filter(|line| matches!(line, Entry::Certificate { .. })).count();
        assert_eq!(certificates(&short), certificates(&lines));
        let list = *memory.of("acme").unwrap().list().unwrap();
        assert_eq!(list.from, 8 * DAY);
        assert!(short.contains(&Entry::List {
            authority: acme(),
            number: list.number,
            digest: list.digest,
            from: list.from
        }));
        assert!(compact(Vec::new(), &Memory::default()).is_empty());
    }
}
