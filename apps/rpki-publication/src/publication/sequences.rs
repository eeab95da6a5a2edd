//! Sequences of states, followed by relying parties. Their parser is that of the crate `rpki`; what they do with it is RFC 8182, section 3.4.

use std::{
    cell::Cell,
    fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use proptest::{collection::vec, option, prelude::*};
use rpki::{
    rrdp::{Delta, DeltaElement, Hash, NotificationFile, Snapshot, UriAndHash},
    uri::{Https, Rsync},
};
use theta_names::WallTime;
use uuid::Uuid;

use super::{Outcome, PublicationError, Settings, publish, published, put};
use crate::{
    disk::{Disk, Files},
    objects::Objects,
};

const BASE: &str = "https://rpki.example.net/rrdp/";

fn settings() -> Settings {
    let base = Https::from_string(BASE.to_owned()).unwrap();
    Settings { base, new_session: false, without: Vec::new(), grace: Duration::from_secs(600), most_deltas: 100 }
}

fn at(seconds: u64) -> SystemTime {
    WallTime::since_1970(Duration::from_secs(seconds)).into()
}

fn run<D: Disk>(disk: &D, objects: &Objects, output: &Path, now: u64) -> Result<Outcome, PublicationError> {
    let settings = settings();
    let before = published(output, &settings.base)?;
    put(disk, objects, before, output, &settings, at(now))
}

/// Contents long enough for a delta of one object to be smaller than a snapshot of several.
fn with(objects: &mut Objects, name: u8, content: Option<u8>) {
    let uri = format!("rsync://host.example.net/module/{}/object-{name}.roa", name % 2);
    match content {
        Some(content) => objects.insert(uri, Bytes::from(vec![content; 300])).unwrap(),
        None => {
            objects.remove(&Rsync::from_string(uri).unwrap());
        }
    }
}

fn state(of: &[(u8, u8)]) -> Objects {
    let mut objects = Objects::default();
    for (name, content) in of {
        with(&mut objects, *name, Some(*content));
    }
    objects
}

/// What is served over rsync.
fn tree(output: &Path) -> Option<Objects> {
    let current = output.join("rsync/current");
    current.symlink_metadata().is_ok().then(|| Objects::read(&current).unwrap())
}

#[derive(Default)]
struct RelyingParty {
    at: Option<(Uuid, u64)>,
    objects: Objects,
    deltas_used: usize,
}

impl RelyingParty {
    /// Reads all that is new; false if there is no notification.
    fn update(&mut self, output: &Path) -> bool {
        let folder = output.join("rrdp");
        let Ok(notification) = fs::read(folder.join("notification.xml")) else { return false };
        let mut notification = NotificationFile::parse(notification.as_slice()).unwrap();
        assert!(notification.sort_and_verify_deltas(None));
        let (session, serial) = (notification.session_id(), notification.serial());
        let have = self.at.filter(|(of, _)| *of == session).map(|(_, serial)| serial);
        let first = notification.deltas().first().map(|delta| delta.serial());
        match have {
            Some(have) if have == serial => {}
            Some(have) if first.is_some_and(|first| first <= have + 1) => {
                for info in notification.deltas().iter().filter(|delta| delta.serial() > have) {
                    let delta = Delta::parse(fetch(&folder, info).as_slice()).unwrap();
                    assert_eq!((delta.session_id(), delta.serial()), (session, info.serial()));
                    self.apply(delta);
                }
            }
            _ => {
                let snapshot = Snapshot::parse(fetch(&folder, notification.snapshot()).as_slice()).unwrap();
                assert_eq!((snapshot.session_id(), snapshot.serial()), (session, serial));
                self.objects = Objects::default();
                for element in snapshot.into_elements() {
                    let (uri, bytes) = element.unpack();
                    self.objects.insert(uri.to_string(), bytes).unwrap();
                }
            }
        }
        self.at = Some((session, serial));
        true
    }

    fn apply(&mut self, delta: Delta) {
        self.deltas_used += 1;
        for element in delta.into_elements() {
            match element {
                DeltaElement::Publish(element) => {
                    let (uri, bytes) = element.unpack();
                    assert!(self.objects.get(&uri).is_none());
                    self.objects.insert(uri.to_string(), bytes).unwrap();
                }
                DeltaElement::Update(element) => {
                    let (uri, hash, bytes) = element.unpack();
                    assert!(hash.matches(&self.objects.get(&uri).unwrap().bytes));
                    self.objects.insert(uri.to_string(), bytes).unwrap();
                }
                DeltaElement::Withdraw(element) => {
                    let (uri, hash) = element.unpack();
                    assert!(hash.matches(&self.objects.remove(&uri).unwrap().bytes));
                }
            }
        }
    }
}

fn fetch(folder: &Path, file: &UriAndHash) -> Vec<u8> {
    let bytes = fs::read(folder.join(file.uri().as_str().strip_prefix(BASE).unwrap())).unwrap();
    assert_eq!(Hash::from_data(&bytes), file.hash());
    bytes
}

/// A disk on which a run is killed after some steps; if the next one is to write a file, half of it is written.
struct Dying {
    left: Cell<u64>,
}

impl Dying {
    fn step(&self) -> io::Result<()> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| io::Error::other("killed"))?;
        self.left.set(left);
        Ok(())
    }
}

impl Disk for Dying {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.step().and_then(|()| Files.make_folder(path))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Err(killed) = self.step() {
            Files.write(path, &bytes[..bytes.len() / 2])?;
            return Err(killed);
        }
        Files.write(path, bytes)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step().and_then(|()| Files.hard_link(from, to))
    }

    fn symlink(&self, target: &Path, at: &Path) -> io::Result<()> {
        self.step().and_then(|()| Files.symlink(target, at))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.step().and_then(|()| Files.sync_folder(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step().and_then(|()| Files.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step().and_then(|()| Files.remove(path))
    }
}

/// Names and times of modification of all that is in a folder.
fn listing(folder: &Path) -> Vec<(String, SystemTime)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            all.push((path.display().to_string(), metadata.modified().unwrap()));
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each batch changes objects; `true` lets the second relying party look.
    #[test]
    fn relying_parties_get_what_was_in_the_folder(
        batches in vec((vec((0_u8..8, option::of(0_u8..4)), 1..6), any::<bool>()), 1..10),
        kills in vec(option::of(0_u64..60), 10),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path();
        let (mut always, mut sometimes) = (RelyingParty::default(), RelyingParty::default());
        let mut objects = Objects::default();
        for (now, ((batch, looks), kill)) in batches.into_iter().zip(kills).enumerate() {
            let before = objects.clone();
            for (name, content) in batch {
                with(&mut objects, name, content);
            }
            let now = 1000 + now as u64 * 200;
            if let Some(left) = kill {
                let _ = run(&Dying { left: Cell::new(left) }, &objects, output, now);
                if always.update(output) {
                    prop_assert!(always.objects == before || always.objects == objects);
                }
            }
            run(&Files, &objects, output, now).unwrap();
            prop_assert!(always.update(output));
            prop_assert_eq!(&always.objects, &objects);
            let published = tree(output);
            prop_assert_eq!(published.as_ref(), Some(&objects));
            if looks {
                sometimes.update(output);
                prop_assert_eq!(&sometimes.objects, &objects);
            }
            prop_assert_eq!(run(&Files, &objects, output, now).unwrap(), Outcome::Unchanged);
        }
    }
}

#[test]
fn a_run_killed_after_any_step_leaves_a_whole_publication() {
    let states =
        [(1, 2), (9, 3)].map(|(content, name)| state(&[(0, 0), (1, content), (name, 2), (4, 4), (5, 5), (6, 6)]));
    for left in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path();
        run(&Files, &state(&[(7, 7)]), output, 1000).unwrap();
        run(&Files, &states[0], output, 2000).unwrap();
        let mut party = RelyingParty::default();
        assert!(party.update(output));
        // Late enough for what the second run retired to be removed.
        let survived = run(&Dying { left: Cell::new(left) }, &states[1], output, 9000).is_ok();
        assert!(party.update(output), "after {left} steps");
        assert!(states.contains(&party.objects), "after {left} steps");
        assert!(states.contains(&tree(output).unwrap()), "after {left} steps");
        run(&Files, &states[1], output, 9000).unwrap();
        assert!(party.update(output));
        assert!(party.objects == states[1] && tree(output).as_ref() == Some(&states[1]), "after {left} steps");
        assert_eq!(party.deltas_used, 1, "after {left} steps");
        if survived {
            assert!(left > 10, "a run has more steps than that");
            return;
        }
    }
}

#[test]
fn a_run_without_a_change_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let objects = state(&[(0, 0), (1, 1)]);
    run(&Files, &state(&[(0, 0)]), folder.path(), 1000).unwrap();
    run(&Files, &objects, folder.path(), 1001).unwrap();
    let before = listing(folder.path());
    assert_eq!(run(&Files, &objects, folder.path(), 1002).unwrap(), Outcome::Unchanged);
    assert_eq!(listing(folder.path()), before);
}

#[test]
fn old_files_are_kept_for_the_grace_and_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path();
    run(&Files, &state(&[(0, 0)]), output, 1000).unwrap();
    let old = fs::canonicalize(output.join("rsync/current")).unwrap();
    let objects = state(&[(0, 1), (1, 1)]);
    run(&Files, &objects, output, 2000).unwrap();
    run(&Files, &objects, output, 2599).unwrap();
    assert!(old.exists());
    run(&Files, &objects, output, 2600).unwrap();
    assert!(!old.exists());
    assert_eq!(tree(output), Some(objects));
    assert_eq!(fs::read_to_string(output.join("retired")).unwrap(), "");
}

#[test]
fn deltas_are_together_not_larger_than_the_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let objects = |content| state(&[(0, content), (1, 0), (2, 0), (3, 0)]);
    for content in 0..20 {
        run(&Files, &objects(content), folder.path(), 1000).unwrap();
        let rrdp = folder.path().join("rrdp");
        let notification = fs::read(rrdp.join("notification.xml")).unwrap();
        let notification = NotificationFile::parse(notification.as_slice()).unwrap();
        let deltas: usize = notification.deltas().iter().map(|delta| fetch(&rrdp, delta).len()).sum();
        assert!(deltas <= fetch(&rrdp, notification.snapshot()).len());
        assert_eq!(notification.deltas().is_empty(), content == 0);
    }
}

#[test]
fn a_state_that_readers_cannot_use_is_named_and_a_new_session_follows_it() {
    let objects = state(&[(0, 0), (1, 1)]);
    let spoil: [fn(&Path); 4] = [
        |rrdp| fs::write(rrdp.join("notification.xml"), "<notification").unwrap(),
        |rrdp| fs::remove_file(rrdp.join("notification.xml")).unwrap(),
        |rrdp| fs::write(snapshot_of(rrdp), "<snapshot").unwrap(),
        |rrdp| fs::remove_file(snapshot_of(rrdp)).unwrap(),
    ];
    for spoil in spoil {
        let folder = tempfile::tempdir().unwrap();
        let mut party = RelyingParty::default();
        let Outcome::Published { session: old, .. } = run(&Files, &objects, folder.path(), 1000).unwrap() else {
            panic!("published")
        };
        assert!(party.update(folder.path()));
        spoil(&folder.path().join("rrdp"));
        let before = listing(folder.path());
        let refused = run(&Files, &objects, folder.path(), 1001).unwrap_err();
        assert!(matches!(refused, PublicationError::State { .. }), "{refused}");
        assert!(refused.to_string().contains("--new-session"), "{refused}");
        assert_eq!(listing(folder.path()), before);
        let anew = put(&Files, &objects, None, folder.path(), &settings(), at(1001)).unwrap();
        let Outcome::Published { session, serial, .. } = anew else { panic!("published") };
        assert!(session != old && serial == 1);
        assert!(party.update(folder.path()));
        assert_eq!(party.objects, objects);
    }
}

fn snapshot_of(rrdp: &Path) -> std::path::PathBuf {
    let notification = fs::read(rrdp.join("notification.xml")).unwrap();
    let notification = NotificationFile::parse(notification.as_slice()).unwrap();
    rrdp.join(notification.snapshot().uri().as_str().strip_prefix(BASE).unwrap())
}

#[test]
fn a_tree_that_was_touched_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let objects = state(&[(0, 0), (1, 1)]);
    run(&Files, &objects, folder.path(), 1000).unwrap();
    let file = folder.path().join("rsync/current/host.example.net/module/0/object-0.roa");
    fs::write(file, "another").unwrap();
    assert_eq!(run(&Files, &objects, folder.path(), 1001).unwrap(), Outcome::Completed);
    assert_eq!(tree(folder.path()), Some(objects));
}

/// The second one does not even look at the objects, which it might publish when they are old.
#[test]
fn two_runs_at_once_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let held = super::lock(&Files, folder.path()).unwrap();
    let nowhere = folder.path().join("objects");
    let refused = publish(&Files, &nowhere, folder.path(), &settings(), at(0));
    assert!(matches!(refused, Err(PublicationError::Busy(_))), "{refused:?}");
    drop(held);
    assert!(super::lock(&Files, folder.path()).is_ok());
}
