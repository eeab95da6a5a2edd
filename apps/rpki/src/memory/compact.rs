//! What of a memory is of no interest any more: certificates that have ended long ago, numbers and statements that others have taken the place of. Without
//! this it would grow by all that was ever signed.

use std::collections::{BTreeMap, BTreeSet};

use super::{Digest, Entry, Issued, Memory, Number};

/// For so many seconds after its end a certificate is known: longer than clocks are apart and manifests last.
const KNOWN_FOR: i64 = 60 * 86_400;

/// The lines of a memory that decide about anything still to come, in their order. The time is the latest one at which something that was agreed to
/// began, and not this machine's: by a clock that is wrong nothing is forgotten.
#[must_use]
pub fn compact(entries: Vec<Entry>, memory: &Memory) -> Vec<Entry> {
    let over = latest(&entries).saturating_sub(KNOWN_FOR);
    let mut kept =
        Kept { over, files: lasting_files(&entries, over), ended: ended(&entries, over), keys: BTreeSet::new() };
    entries.into_iter().filter(|entry| kept.is_needed(entry, memory)).collect()
}

fn latest(entries: &[Entry]) -> i64 {
    let begins = |entry: &Entry| match entry {
        Entry::Certificate { from, .. } | Entry::List { from, .. } | Entry::Manifest { from, .. } => Some(*from),
        _ => None,
    };
    entries.iter().filter_map(begins).max().unwrap_or(i64::MIN)
}

/// The files of which a published certificate has not ended: all lines of such a file say which one is in it.
fn lasting_files(entries: &[Entry], over: i64) -> BTreeSet<(String, String)> {
    let lasting = |entry: &Entry| match entry {
        Entry::Published { authority, file, until, .. } if *until > over => Some((authority.clone(), file.clone())),
        _ => None,
    };
    entries.iter().filter_map(lasting).collect()
}

/// The serial numbers of certificates that have ended.
fn ended(entries: &[Entry], over: i64) -> BTreeMap<String, BTreeSet<Number>> {
    let mut ended = BTreeMap::<String, BTreeSet<Number>>::new();
    for entry in entries {
        if let Entry::Certificate { authority, serial, until, .. } = entry
            && *until <= over
        {
            ended.entry(authority.clone()).or_default().insert(*serial);
        }
    }
    ended
}

struct Kept {
    over: i64,
    files: BTreeSet<(String, String)>,
    ended: BTreeMap<String, BTreeSet<Number>>,
    /// The keys of manifests that a line has bound already.
    keys: BTreeSet<Number>,
}

impl Kept {
    fn is_needed(&mut self, entry: &Entry, memory: &Memory) -> bool {
        match entry {
            Entry::Certificate { until, .. } => *until > self.over,
            Entry::Revoked { authority, serial } => !self.ended.get(authority).is_some_and(|all| all.contains(serial)),
            Entry::Published { authority, file, .. } => self.files.contains(&(authority.clone(), file.clone())),
            // The last one, and of the others the first by each key: the key is for that.
            Entry::Manifest { authority, digest, key, .. } => {
                let binds = self.keys.insert(*key);
                binds || last_manifest(memory, authority) == Some(*digest)
            }
            Entry::List { authority, number, .. } => {
                memory.of(authority).and_then(Issued::list).is_some_and(|last| last.number == *number)
            }
            Entry::Statement { .. } => memory.knows(entry),
            Entry::Content { .. } => true,
        }
    }
}

fn last_manifest(memory: &Memory, authority: &str) -> Option<Digest> {
    memory.of(authority)?.manifest().map(|manifest| manifest.last.digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Counted, Purpose};

    const DAY: i64 = 86_400;

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
