//! What has come of the files of a folder of overrides, from one look at it to the next.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{MOST_TEXT, Overrides, Overriding};
use crate::{
    files::{self, Links},
    memory::Digest,
    signatures::KeySet,
    sources::{MOST_OVERRIDES, complain, list, say_of},
};

/// For so many looks what was seen last stands while the folder, or a file of it, cannot be read.
pub(super) const GRACE: u32 = 30;

/// A file, as it was looked at last.
#[derive(Clone)]
struct File {
    /// Of its content, or of why there is none.
    digest: Digest,
    /// What was read of it last.
    one: Option<Overriding>,
    /// So many looks ago that was read.
    missed: u32,
}

/// The files of a folder, so that one that has not changed is not verified, or complained of, again.
#[derive(Default)]
pub(super) struct Seen {
    operators: Option<KeySet>,
    files: BTreeMap<PathBuf, File>,
}

impl Seen {
    /// Looks at the folder. Who has shown nothing has none. What other operators have signed is verified anew.
    pub(super) fn look(&mut self, folder: &Path, operators: Option<KeySet>) -> io::Result<()> {
        let files = match list(folder, MOST_OVERRIDES) {
            Ok(files) => files.ok_or_else(|| io::Error::other(format!("it has more than {MOST_OVERRIDES} files")))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                self.miss();
                return Err(error);
            }
        };
        if self.operators != operators {
            *self = Self { operators, files: BTreeMap::new() };
        }
        let read = files.into_iter().map(|path| {
            let read = self.file(&path);
            (path, read)
        });
        self.files = read.collect();
        Ok(())
    }

    /// A file that is there and of which nothing can be had, since it cannot be read or what is in it is no override, may be one that is being written or copied, or
    /// one that somebody has damaged: for a while it counts as what was read of it before (`spec/rpki.md`, Overrides). One that is gone does not.
    fn file(&self, path: &Path) -> File {
        let content = files::read(path, Links::Refused, u64::try_from(MOST_TEXT).unwrap_or(u64::MAX))
            .map_err(|error| error.to_string());
        let digest = match &content {
            Ok(bytes) => Sha256::new().chain_update([0]).chain_update(bytes),
            Err(reason) => Sha256::new().chain_update([1]).chain_update(reason),
        };
        let (digest, before) = (Digest::from(digest.finalize()), self.files.get(path));
        if let Some(same) = before.filter(|before| before.digest == digest && before.missed == 0) {
            return same.clone();
        }
        let text = content.and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()));
        let read =
            text.and_then(|text| Overriding::signed(&text, self.operators.as_ref()).map_err(|error| error.to_string()));
        let kept = before.filter(|before| before.one.is_some() && before.missed.saturating_add(1) < GRACE);
        match (read, kept) {
            (Ok(one), _) => File { digest, one: Some(one), missed: 0 },
            (Err(reason), Some(File { one, missed, .. })) => {
                if *missed == 0 {
                    say_of(
                        path,
                        &reason,
                        &format!("what was read of it before stands for {GRACE} looks, if it is not removed"),
                    );
                }
                File { digest, one: one.clone(), missed: missed.saturating_add(1) }
            }
            (Err(reason), None) => {
                complain(path, &reason);
                File { digest, one: None, missed: 0 }
            }
        }
    }

    /// The folder could not be looked at: what could not be read before has not been read for one look more.
    fn miss(&mut self) {
        self.files
            .values_mut()
            .filter(|file| file.missed > 0)
            .for_each(|file| file.missed = file.missed.saturating_add(1));
    }

    /// What they come to.
    pub(super) fn overrides(&self) -> Overrides {
        self.files.values().filter_map(|file| file.one.as_ref()).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::{fs, os::unix::fs::symlink};

    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
    use tempfile::TempDir;

    use super::*;
    use crate::overrides::Override;

    /// A folder, its one operator, and what is known of it.
    pub(in crate::overrides) struct Place {
        pub(in crate::overrides) folder: TempDir,
        operator: Ed25519KeyPair,
        seen: Seen,
    }

    impl Place {
        /// With a file of an override for this reason.
        pub(in crate::overrides) fn with(reason: &str) -> Self {
            let operator = Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap();
            let place = Self { folder: tempfile::tempdir().unwrap(), operator, seen: Seen::default() };
            place.put(&place.signed(reason));
            place
        }

        pub(in crate::overrides) fn file(&self) -> PathBuf {
            self.folder.path().join("one.toml")
        }

        fn put(&self, text: &str) {
            fs::write(self.file(), text).unwrap();
        }

        pub(in crate::overrides) fn signed(&self, reason: &str) -> String {
            let (digest, key, reason) = ([7; 32], "rpki-acme".to_owned(), reason.to_owned());
            let one = Override { digest, key, reason, until: 9 };
            format!(
                "digest = \"{}\"\nkey = \"{}\"\nreason = \"{}\"\nuntil = 9\n[[signature]]\nkey = \"{}\"\nsignature = \"{}\"\n",
                hex::encode(digest),
                one.key,
                one.reason,
                hex::encode(self.operator.public_key()),
                hex::encode(self.operator.sign(&one.signed_bytes()))
            )
        }

        /// For which reasons something is permitted, after a look.
        fn look(&mut self) -> Vec<String> {
            let operators = self.operators();
            self.seen.look(self.folder.path(), Some(operators)).unwrap();
            self.seen.overrides().objects.into_iter().map(|one| one.reason).collect()
        }

        pub(in crate::overrides) fn operators(&self) -> KeySet {
            only(&self.operator)
        }
    }

    fn only(operator: &Ed25519KeyPair) -> KeySet {
        KeySet::parse(&[hex::encode(operator.public_key())], 1).unwrap()
    }

    /// Whatever is in its place: a link, a folder, half of it, ever other nonsense.
    #[test]
    fn a_file_of_which_nothing_can_be_had_stands_for_a_while() {
        type Harm = fn(&Path, u32);
        let harms: [Harm; 4] = [
            |path, _| symlink("elsewhere", path).unwrap(),
            |path, _| fs::create_dir(path).unwrap(),
            |path, _| fs::write(path, "digest = \"07").unwrap(),
            |path, look| fs::write(path, format!("nonsense {look}")).unwrap(),
        ];
        for harm in harms {
            let mut place = Place::with("why");
            let remove = |path: &Path| fs::remove_file(path).or_else(|_| fs::remove_dir(path)).unwrap();
            for round in 0..2 {
                assert_eq!(place.look(), ["why"]);
                for look in 1..GRACE {
                    remove(&place.file());
                    harm(&place.file(), look);
                    assert_eq!(place.look(), ["why"], "round {round}, look {look}");
                }
                // Only then it may have been taken back, and it is not there again by what is not read.
                for look in GRACE..GRACE + 2 {
                    remove(&place.file());
                    harm(&place.file(), look);
                    assert!(place.look().is_empty(), "round {round}, look {look}");
                }
                remove(&place.file());
                place.put(&place.signed("why"));
            }
        }
    }

    /// Whoever has the folder come and go does not have a file stand for longer by that.
    #[test]
    fn a_file_that_is_not_read_stands_no_longer_while_its_folder_cannot_be_read() {
        let mut place = Place::with("why");
        assert_eq!(place.look(), ["why"]);
        place.put("nonsense");
        assert_eq!(place.look(), ["why"]);
        let no_folder = place.file();
        let operators = place.operators();
        for look in 2..GRACE {
            assert!(place.seen.look(&no_folder, Some(operators.clone())).is_err(), "look {look}");
        }
        assert!(place.look().is_empty());
    }

    #[test]
    fn a_file_that_is_gone_is_gone_at_once_and_leaves_nothing_to_one_that_is_not_read() {
        let mut place = Place::with("why");
        assert_eq!(place.look(), ["why"]);
        fs::remove_file(place.file()).unwrap();
        assert!(place.look().is_empty());
        place.put("nonsense");
        assert!(place.look().is_empty());
        place.put(&place.signed("why"));
        assert_eq!(place.look(), ["why"]);
        // While it cannot be read it may go as well.
        place.put("nonsense");
        assert_eq!(place.look(), ["why"]);
        fs::remove_file(place.file()).unwrap();
        assert!(place.look().is_empty());
    }

    #[test]
    fn what_can_be_read_takes_its_place_and_what_nobody_has_signed_now_does_not_stand() {
        let mut place = Place::with("why");
        assert_eq!(place.look(), ["why"]);
        place.put(&place.signed("otherwise"));
        assert_eq!(place.look(), ["otherwise"]);
        // Half of it, and then others are the operators.
        place.put("nonsense");
        assert_eq!(place.look(), ["otherwise"]);
        place.operator = Ed25519KeyPair::from_seed_unchecked(&[2; 32]).unwrap();
        assert!(place.look().is_empty());
    }
}
