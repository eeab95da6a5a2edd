//! What no reader is led to any more, and is kept for a while for readers that were led to it before.
//!
//! The file `retired` has a line for each: the second (of Unix time) from which on it was not used, and its path. If the file is lost, or
//! a line of it is no such line, the time begins again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use theta_names::WallTime;

use crate::disk::{Disk, replace};

const LIST: &str = "retired";

/// Removes what has not been used for `grace`. `kept` is what is used: paths from the output folder.
pub(crate) fn sweep<D: Disk>(
    disk: &D,
    output: &Path,
    kept: &BTreeSet<PathBuf>,
    now: SystemTime,
    grace: Duration,
) -> io::Result<()> {
    let now = WallTime::from(now).seconds();
    let before = listed(&output.join(LIST));
    let mut after = BTreeMap::new();
    for path in candidates(output)?.into_iter().filter(|path| !kept.contains(path)) {
        // A time that has not come is one of a clock that was wrong.
        let since = before.get(&path).copied().filter(|since| *since <= now).unwrap_or(now);
        if now - since >= grace.as_secs() && before.contains_key(&path) {
            disk.remove(&output.join(&path))?;
        } else {
            after.insert(path, since);
        }
    }
    remove_empty(disk, &output.join("rrdp"))?;
    if after == before {
        return Ok(());
    }
    let lines: String = after.iter().map(|(path, since)| format!("{since} {}\n", path.display())).collect();
    replace(disk, output, LIST, lines.as_bytes())
}

fn listed(list: &Path) -> BTreeMap<PathBuf, u64> {
    let text = fs::read_to_string(list).unwrap_or_default();
    let line = |line: &str| {
        let (since, path) = line.split_once(' ')?;
        Some((PathBuf::from(path), since.parse::<u64>().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// The files of sessions, and the folders of the tree: what grows old. Paths are from the output folder.
fn candidates(output: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for name in names(&output.join("rsync"))? {
        if output.join("rsync").join(&name).symlink_metadata()?.is_dir() {
            found.insert(Path::new("rsync").join(name));
        }
    }
    let mut folders = vec![PathBuf::from("rrdp")];
    while let Some(folder) = folders.pop() {
        for name in names(&output.join(&folder))? {
            let path = folder.join(name);
            if output.join(&path).symlink_metadata()?.is_dir() {
                folders.push(path);
            } else if folder != Path::new("rrdp") {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

/// The names in a folder; none if it is not there yet.
fn names(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(PathBuf::from(entry?.file_name()))).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Removes the folders below `folder` in which there is nothing, or nothing but such folders.
fn remove_empty<D: Disk>(disk: &D, folder: &Path) -> io::Result<()> {
    for name in names(folder)? {
        let path = folder.join(name);
        if path.symlink_metadata()?.is_dir() {
            remove_empty(disk, &path)?;
            if names(&path)?.is_empty() {
                disk.remove(&path)?;
            }
        }
    }
    Ok(())
}
