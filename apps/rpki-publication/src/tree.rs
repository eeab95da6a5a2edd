//! The tree for rsync: a folder for each state, and the link `current` to the one that is served. A reader's rsync enters by the link once, and
//! reads one state to the end.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    disk::Disk,
    objects::{Object, Objects},
};

const CURRENT: &str = "current";

/// The name of the folder that is served, if the link is there and leads to a folder beside it.
pub(crate) fn current(tree: &Path) -> Option<String> {
    let target = fs::read_link(tree.join(CURRENT)).ok()?;
    let name = target.to_str()?.to_owned();
    // A name alone: no way leads out of the tree.
    (!name.is_empty() && !name.contains('/') && name != "." && name != "..").then_some(name)
}

/// Whether exactly these objects are served, as of the state whose name begins with `state`.
pub(crate) fn serves(tree: &Path, state: &str, objects: &Objects) -> bool {
    current(tree).is_some_and(|name| name.starts_with(state))
        && Objects::read(&tree.join(CURRENT)).is_ok_and(|served| served == *objects)
}

/// What is served; `None` if nothing is, or if it cannot be read.
pub(crate) fn served(tree: &Path) -> Option<Objects> {
    current(tree).and_then(|name| Objects::read(&tree.join(name)).ok())
}

/// Makes a folder named `name`, which must be new, with the objects, and serves it. Files of the folder served before that are the same
/// are taken over, with their times: rsync then has nothing to transfer.
pub(crate) fn serve<D: Disk>(disk: &D, tree: &Path, name: &str, objects: &Objects) -> io::Result<()> {
    let folder = tree.join(name);
    let before = current(tree).map(|name| tree.join(name));
    let mut folders = BTreeSet::from([folder.clone()]);
    disk.make_folder(&folder)?;
    for object in objects.iter() {
        let Some(path) = path(&folder, object) else { continue };
        for above in path.ancestors().skip(1).take_while(|above| *above != folder) {
            folders.insert(above.to_owned());
        }
        if let Some(parent) = path.parent() {
            disk.make_folder(parent)?;
        }
        let old = before.as_ref().and_then(|before| self::path(before, object));
        match old.filter(|old| fs::read(old).is_ok_and(|bytes| object.bytes == bytes)) {
            Some(old) => disk.hard_link(&old, &path)?,
            None => disk.write(&path, &object.bytes)?,
        }
    }
    for folder in &folders {
        disk.sync_folder(folder)?;
    }
    // The link must not lead to a name that is not on the disk yet.
    disk.sync_folder(tree)?;
    let link = tree.join(format!("{CURRENT}.new"));
    if fs::symlink_metadata(&link).is_ok() {
        disk.remove(&link)?;
    }
    disk.symlink(Path::new(name), &link)?;
    disk.rename(&link, &tree.join(CURRENT))?;
    disk.sync_folder(tree)
}

/// Where an object is in a folder: its URI without the scheme, in which [`Objects::insert`] lets no segment lead elsewhere.
fn path(folder: &Path, object: &Object) -> Option<PathBuf> {
    object.uri.as_str().get("rsync://".len()..).map(|rest| folder.join(rest))
}
