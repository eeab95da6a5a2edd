//! One run: what an issuer left in a folder becomes what readers get.
//!
//! The output has
//!
//! - `rrdp/notification.xml`, and `rrdp/SESSION/SERIAL/RANDOM/` with a snapshot and a delta: for a web server;
//! - `rsync/current`, a link to the folder beside it that is served: for an rsync server;
//! - `retired`, what is kept for readers of before; `lock`, which a run holds.
//!
//! A run that is killed leaves what was published, or what it was to publish; the next one finishes.

#[cfg(test)]
mod sequences;

use std::{
    collections::BTreeSet,
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rpki::{
    rrdp::DeltaElement,
    uri::{Https, Rsync},
};
use uuid::Uuid;

use crate::{
    check::{self, CheckError},
    disk::Disk,
    objects::{Objects, ReadError},
    retired,
    rrdp::{self, Published, StateError},
    tree,
};

/// How to publish.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The URI of the output's folder `rrdp`, as a web server serves it; it ends with a slash. Another one than before takes a new session.
    pub base: Https,
    /// Begin a new session, whatever is published: relying parties read everything once more. It is for a state that cannot be continued.
    pub new_session: bool,
    /// Manifests that may be missing although the certificate of an authority says that they are in the folder.
    pub without: Vec<Rsync>,
    /// How long files that nothing leads to any more are kept for readers that were led to them before.
    pub grace: Duration,
    /// How many deltas the notification lists at most; fewer, if they are together larger than the snapshot.
    pub most_deltas: usize,
}

/// Why nothing was published. What was published before still is, unless the message is about a file of the output: then a part of the new
/// state may be out, whole in itself, and the next run completes it.
#[derive(Debug, thiserror::Error)]
pub enum PublicationError {
    /// The objects cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The objects do not fit together.
    #[error("{0}")]
    Check(#[from] CheckError),
    /// The base does not end with a slash.
    #[error("{0}: the base of a publication ends with a slash")]
    Base(Https),
    /// A file of the output cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Output {
        /// The file, or the folder that it is in.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// What is published cannot be read, so that nothing can follow it.
    #[error(
        "{}: what is published there cannot be continued: {reason}; bring the files back, or publish once with --new-session",
        .output.display()
    )]
    State {
        /// The output.
        output: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another run is at it.
    #[error("{}: another run publishes there", .0.display())]
    Busy(PathBuf),
}

/// What a run did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// All was published already.
    Unchanged,
    /// All was published over RRDP already, and is now in the tree for rsync as well: a run was killed, or the tree was touched.
    Completed,
    /// The objects are a new serial of a session.
    Published {
        /// The session.
        session: Uuid,
        /// The serial, from 1.
        serial: u64,
        /// How many objects are new.
        new: usize,
        /// How many have another content.
        changed: usize,
        /// How many are gone.
        gone: usize,
    },
}

/// What a run did, and what it found.
#[derive(Debug)]
pub struct Report {
    /// What it did.
    pub outcome: Outcome,
    /// What is wrong with objects that were published as they are: points that nobody has renewed, or that are missing.
    pub warnings: Vec<CheckError>,
}

/// Checks the objects of a folder and publishes them.
///
/// # Errors
///
/// If they cannot be read, do not fit together or do not follow what is published, if that cannot be read, or if they cannot be written.
pub fn publish<D: Disk>(
    disk: &D,
    objects: &Path,
    output: &Path,
    settings: &Settings,
    now: SystemTime,
) -> Result<Report, PublicationError> {
    if !settings.base.as_str().ends_with('/') {
        return Err(PublicationError::Base(settings.base.clone()));
    }
    // All is read under the lock: a slow run would else publish what was in the folder before a faster one did.
    let _lock = lock(disk, output)?;
    let objects = Objects::read(objects)?;
    // Who begins anew is held to what was published all the same, as far as it can be read.
    let (before, seen) = match (published(output, &settings.base), settings.new_session) {
        (Ok(before), false) => (before, None),
        (Ok(before), true) => (None, before.map(|before| before.objects)),
        (Err(PublicationError::State { .. }), true) => (None, tree::served(&output.join("rsync"))),
        (Err(error), _) => return Err(error),
    };
    let known = before.as_ref().map(|before| &before.objects).or(seen.as_ref());
    let checked = check::check(&objects, known, &settings.without, now)?;
    let outcome = put(disk, &objects, before, output, settings, now)?;
    Ok(Report { outcome, warnings: checked.warnings })
}

/// Publishes objects that were checked.
fn put<D: Disk>(
    disk: &D,
    objects: &Objects,
    before: Option<Published>,
    output: &Path,
    settings: &Settings,
    now: SystemTime,
) -> Result<Outcome, PublicationError> {
    let (rrdp, tree) = (output.join("rrdp"), output.join("rsync"));
    let rrdp_failed = |source| PublicationError::Output { path: rrdp.clone(), source };
    let tree_failed = |source| PublicationError::Output { path: tree.clone(), source };
    disk.make_folder(&rrdp).map_err(rrdp_failed)?;
    disk.make_folder(&tree).map_err(tree_failed)?;
    disk.sync_folder(output).map_err(|source| PublicationError::Output { path: output.to_owned(), source })?;
    let (after, mut outcome) = match before {
        Some(before) if before.objects == *objects => (before, Outcome::Unchanged),
        before => {
            let base = &settings.base;
            let after = rrdp::publish(disk, &rrdp, base, before.as_ref(), objects, settings.most_deltas);
            let after = after.map_err(rrdp_failed)?;
            let outcome = counted(&after, &before.map(|before| before.objects).unwrap_or_default());
            (after, outcome)
        }
    };
    let state = format!("{}-{}-", after.session, after.serial);
    if !tree::serves(&tree, &state, objects) {
        // A run that was killed, or whoever changed the tree, may have left a folder of that state: a number makes the name new.
        let mut names = (0_u64..).map(|number| format!("{state}{number}"));
        let name = names.find(|name| tree.join(name).symlink_metadata().is_err()).unwrap_or_default();
        tree::serve(disk, &tree, &name, objects).map_err(tree_failed)?;
        if outcome == Outcome::Unchanged {
            outcome = Outcome::Completed;
        }
    }
    let mut kept: BTreeSet<PathBuf> = after.files.iter().map(|file| Path::new("rrdp").join(file)).collect();
    kept.extend(tree::current(&tree).map(|name| Path::new("rsync").join(name)));
    let swept = retired::sweep(disk, output, &kept, now, settings.grace);
    swept.map_err(|source| PublicationError::Output { path: output.to_owned(), source })?;
    Ok(outcome)
}

fn counted(after: &Published, before: &Objects) -> Outcome {
    let (mut new, mut changed, mut gone) = (0, 0, 0);
    for change in rrdp::changes(before, &after.objects) {
        match change {
            DeltaElement::Publish(_) => new += 1,
            DeltaElement::Update(_) => changed += 1,
            DeltaElement::Withdraw(_) => gone += 1,
        }
    }
    Outcome::Published { session: after.session, serial: after.serial, new, changed, gone }
}

/// What is published, or `None` where nothing is and a first session begins.
fn published(output: &Path, base: &Https) -> Result<Option<Published>, PublicationError> {
    let unusable = |reason| PublicationError::State { output: output.to_owned(), reason };
    match rrdp::read(&output.join("rrdp"), base) {
        // The tree follows the notification: there was one.
        Ok(None) if tree::current(&output.join("rsync")).is_some() => {
            Err(unusable("rrdp/notification.xml is missing, and rsync/current is there".to_owned()))
        }
        Ok(published) => Ok(published),
        Err(StateError::Unusable(reason)) => Err(unusable(reason)),
        Err(StateError::File { path, source }) => Err(PublicationError::Output { path, source }),
    }
}

/// Held until it is dropped, or the process ends.
fn lock<D: Disk>(disk: &D, output: &Path) -> Result<File, PublicationError> {
    let path = output.join("lock");
    let failed = |source| PublicationError::Output { path: path.clone(), source };
    disk.make_folder(output).map_err(failed)?;
    let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(PublicationError::Busy(output.to_owned())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}
