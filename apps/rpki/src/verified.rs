//! What the statements' files of members have come to. A member has thousands, and one that has not changed is not verified again when another one does.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};
use theta_names::FileStamp;

use crate::{
    memory::Digest,
    registry::Registry,
    sources::{MOST_FILE, MOST_STATEMENTS, SourceError, complain, found},
    statements::{Identified, OfMember, Statement, StatementError},
};

/// The files of a member.
pub(crate) struct Folder<'a> {
    pub(crate) member: &'a str,
    pub(crate) path: PathBuf,
    /// `None`: there are too many.
    pub(crate) files: Option<Vec<PathBuf>>,
}

/// What a file has come to.
#[derive(Clone, Debug)]
enum Outcome {
    Counts(Identified),
    Overclaims(Identified),
    /// It was complained of.
    Nothing,
}

/// A file as it was before it was read.
#[derive(Clone, Debug)]
struct File {
    /// By which it is told whether it has changed since. One that was changed shortly before counts as changed.
    stamp: FileStamp,
    bytes: u64,
    outcome: Outcome,
}

/// So many prefixes and providers a member's statements have together: what follows from them is looked at in each decision about its authority.
const MOST_ENTRIES: usize = 200_000;

/// All of them, by the registry's data that they were verified by.
#[derive(Debug)]
pub struct Verified {
    data: Digest,
    files: BTreeMap<PathBuf, File>,
}

impl Verified {
    /// Nothing yet, by data with this text.
    pub(crate) fn by(data: &str) -> Self {
        Self { data: Sha256::digest(data).into(), files: BTreeMap::new() }
    }

    pub(crate) fn is_by_the_same_data(&self, other: &Self) -> bool {
        self.data == other.data
    }

    /// What a member has stated, all of it or nothing: a part might lack what withdraws the rest. What was verified `before` is taken from there.
    pub(crate) fn statements(
        &mut self,
        folder: &Folder<'_>,
        registry: &Registry,
        before: Option<&Self>,
    ) -> Result<OfMember, SourceError> {
        let refuse = |limit: String| {
            let reason = format!("{} has more than {limit} of statements, so none of them is looked at", folder.member);
            tracing::error!("{}: {reason}", folder.path.display());
            OfMember { refused: Some(reason), ..OfMember::default() }
        };
        let Some(files) = &folder.files else { return Ok(refuse(format!("{MOST_STATEMENTS} files"))) };
        let mut stated = OfMember::default();
        let (mut bytes, mut entries) = (0_u64, 0_usize);
        for path in files {
            let known = before.and_then(|before| before.files.get(path));
            let stamp = FileStamp::after(path, known.map(|known| &known.stamp));
            let known = known.filter(|known| Some(known.stamp) == stamp);
            let (length, outcome) = match known {
                Some(known) => (known.bytes, known.outcome.clone()),
                None => read(path, folder.member, registry)?,
            };
            bytes = bytes.saturating_add(length);
            if bytes > MOST_FILE {
                return Ok(refuse(format!("{MOST_FILE} bytes")));
            }
            let found = match &outcome {
                Outcome::Counts(statement) => Some((&mut stated.counting, statement)),
                Outcome::Overclaims(statement) => Some((&mut stated.overclaimed, statement)),
                Outcome::Nothing => None,
            };
            if let Some((all, statement)) = found {
                entries = entries.saturating_add(statement.statement().attestation.entries());
                all.push(statement.clone());
            }
            if entries > MOST_ENTRIES {
                return Ok(refuse(format!("{MOST_ENTRIES} prefixes and providers")));
            }
            if let Some(stamp) = stamp {
                self.files.insert(path.clone(), File { stamp, bytes: length, outcome });
            }
        }
        Ok(stated)
    }
}

/// How long a file is, and what it comes to; what is to be said against it is said.
fn read(path: &Path, member: &str, registry: &Registry) -> Result<(u64, Outcome), SourceError> {
    let text = found(path)?;
    let length = text.as_ref().map_or(0, String::len);
    let (outcome, objection) = match text {
        Ok(text) => verify(&text, member, registry),
        Err(reason) => (Outcome::Nothing, Some(reason)),
    };
    if let Some(reason) = objection {
        complain(path, &reason);
    }
    Ok((u64::try_from(length).unwrap_or(u64::MAX), outcome))
}

/// What a text comes to, and what is to be said against it.
fn verify(text: &str, member: &str, registry: &Registry) -> (Outcome, Option<String>) {
    let checked = Statement::parse(text).and_then(|(statement, signatures)| {
        if statement.member != member {
            return Err(StatementError::Wrong("it is another member's than its folder is"));
        }
        let checked = statement.check(registry, &signatures);
        Ok((statement, checked))
    });
    match checked {
        Ok((statement, Ok(()))) => (Outcome::Counts(Identified::new(statement)), None),
        Ok((statement, Err(error @ StatementError::Overclaim { .. }))) => {
            (Outcome::Overclaims(Identified::new(statement)), Some(error.to_string()))
        }
        Ok((_, Err(error))) | Err(error) => (Outcome::Nothing, Some(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;
    use crate::registry::tests::text;

    /// A file that has not changed has what it had, though nobody looks into it; one that has is read, and all are by other data.
    #[test]
    fn what_has_not_changed_is_not_verified_again() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("1.toml"), folder.path().join("2.toml"));
        [&one, &two].iter().for_each(|path| fs::write(path, "nonsense").unwrap());
        let member = Folder { member: "acme", path: folder.path().to_owned(), files: Some(vec![one, two.clone()]) };
        let data = text();
        let registry = Registry::parse(&data).unwrap();
        // A stamp that was taken soon after a change counts for nothing.
        std::thread::sleep(Duration::from_millis(2_100));
        let mut before = Verified::by(&data);
        before.statements(&member, &registry, None).unwrap();
        let counts = Statement::parse(
            "rpki = \"example\"\nmember = \"acme\"\nnumber = 1\nact = \"withdraw\"\nfrom = 5\n[roa]\nasn = 1\nprefixes = [\"192.0.2.0/24\"]\n",
        );
        let counts = Outcome::Counts(Identified::new(counts.unwrap().0));
        before.files.values_mut().for_each(|file| file.outcome = counts.clone());
        let counting = |before: Option<&Verified>| {
            let mut verified = Verified::by(&data);
            verified.statements(&member, &registry, before).unwrap().counting.len()
        };
        assert_eq!((counting(Some(&before)), counting(None)), (2, 0));
        fs::write(&two, "nonsense, which is longer").unwrap();
        assert_eq!(counting(Some(&before)), 1);
        assert!(!before.is_by_the_same_data(&Verified::by("name = \"other\"")));
    }

    /// A member has so many prefixes in its statements that each decision would take long: it stops itself, by the number of them.
    #[test]
    fn a_member_has_so_many_prefixes_in_all() {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..51).map(|number| folder.path().join(format!("{number}.toml"))).collect();
        files.iter().for_each(|path| fs::write(path, "").unwrap());
        let prefixes: std::collections::BTreeSet<_> =
            (0..4_000).map(|at| format!("10.{}.{}.0/24", at / 250, at % 250).parse().unwrap()).collect();
        let data = text();
        let registry = Registry::parse(&data).unwrap();
        let mut before = Verified::by(&data);
        for (number, path) in files.iter().enumerate() {
            let attestation = crate::attestation::Attestation::roa(1, prefixes.clone()).unwrap();
            let (rpki, member) = ("example".to_owned(), "acme".to_owned());
            let number = u64::try_from(number).unwrap();
            let statement = Statement { rpki, member, number, from: 0, until: Some(9), attestation };
            let outcome = Outcome::Counts(Identified::new(statement));
            before.files.insert(path.clone(), File { stamp: FileStamp::of(path).unwrap(), bytes: 0, outcome });
        }
        // A stamp that was taken soon after a change counts for nothing.
        std::thread::sleep(Duration::from_millis(2_100));
        before.files.iter_mut().for_each(|(path, file)| file.stamp = FileStamp::of(path).unwrap());
        let of = |files: &[PathBuf]| {
            let member = Folder { member: "acme", path: folder.path().to_owned(), files: Some(files.to_vec()) };
            Verified::by(&data).statements(&member, &registry, Some(&before)).unwrap()
        };
        assert_eq!((of(&files[..50]).counting.len(), of(&files[..50]).refused), (50, None));
        let refused = of(&files).refused.unwrap();
        assert!(refused.starts_with("acme has more than 200000 prefixes and providers of statements"), "{refused}");
    }
}
