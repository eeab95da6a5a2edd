//! The steps of a run that change files. They are a trait so that tests can end a run between any two of them.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// What a publication does to files. Each call is one step: a run that is killed has done some of them, and perhaps a part of one
/// [`Disk::write`].
pub trait Disk {
    /// Makes a folder and those above it, unless they are there.
    ///
    /// # Errors
    ///
    /// Those of the file system, as for every step.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Writes a file and waits until it is on the disk.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Gives a file one more name.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes a symbolic link at `at`.
    ///
    /// # Errors
    ///
    /// Those of the file system; the link must not exist.
    fn symlink(&self, target: &Path, at: &Path) -> io::Result<()>;

    /// Waits until the names in a folder are on the disk.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    /// Puts a file or link in the place of another, in one step.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file, a link, or a folder with all that is in it.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files;

impl Disk for Files {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn symlink(&self, target: &Path, at: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(target, at)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
    }
}

/// Replaces a file of `folder` in one step: who reads it gets the old one or the new one, whole.
pub(crate) fn replace<D: Disk>(disk: &D, folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = folder.join(format!("{name}.new"));
    disk.write(&new, bytes)?;
    disk.rename(&new, &folder.join(name))?;
    disk.sync_folder(folder)
}
