//! The folder that agents read, and whoever publishes: `sha256/DIGITS` for what is signed by its digest, `rsync/HOST/MODULE/PATH` for what is to
//! be published.

use std::{
    collections::BTreeSet,
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::state::put_whole;

/// Agents and publishers of others may read what is written.
const PUBLIC: u32 = 0o644;

/// The folder.
#[derive(Clone, Debug)]
pub struct Output(PathBuf);

/// Writes a file so that readers find all of it or what was there before, and it is on the disk when this returns. Names of unfinished files begin with
/// a dot, which publishers pass over.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let mut draft = tempfile::Builder::new().prefix(".theta-").tempfile_in(folder)?;
    put_whole(draft.as_file_mut(), bytes)?;
    draft.as_file().set_permissions(Permissions::from_mode(PUBLIC))?;
    draft.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

impl Output {
    /// The folder at this path, which is made when something is written.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn content(&self, digest: &str) -> PathBuf {
        self.0.join("sha256").join(digest)
    }

    /// Where something is published. The addresses are those of the registry's data, which are addresses of rsync.
    fn place(&self, address: &str) -> io::Result<PathBuf> {
        let good = |part: &str| !part.is_empty() && !part.starts_with('.');
        let path = address.strip_prefix("rsync://").map(|path| path.trim_end_matches('/'));
        let path = path.filter(|path| path.split('/').all(good));
        let path = path.ok_or_else(|| io::Error::other(format!("{address} is no address of a file")))?;
        Ok(self.0.join("rsync").join(path))
    }

    /// Puts something where it is found by its SHA-256, which it returns in hexadecimal digits.
    ///
    /// # Errors
    /// The system's reason.
    pub fn put(&self, bytes: &[u8]) -> io::Result<String> {
        let digest = hex::encode(Sha256::digest(bytes));
        let path = self.content(&digest);
        if !path.is_file() {
            write(&path, bytes)?;
        }
        Ok(digest)
    }

    /// What has this SHA-256, if it is there.
    #[must_use]
    pub fn find(&self, digest: &str) -> Option<Vec<u8>> {
        fs::read(self.content(digest)).ok()
    }

    /// What is published at an address, if something is.
    #[must_use]
    pub fn published(&self, address: &str) -> Option<Vec<u8>> {
        fs::read(self.place(address).ok()?).ok()
    }

    /// Publishes something at an address, if it is not there already.
    ///
    /// # Errors
    /// The system's reason.
    pub fn publish(&self, address: &str, bytes: &[u8]) -> io::Result<()> {
        if self.published(address).is_some_and(|before| before == bytes) {
            return Ok(());
        }
        write(&self.place(address)?, bytes)
    }

    /// Whether something could be published at an address.
    ///
    /// # Errors
    /// The system's reason.
    pub fn try_place(&self, address: &str) -> io::Result<()> {
        let place = self.place(address)?;
        let folder = place.parent().unwrap_or(&self.0);
        fs::create_dir_all(folder)?;
        tempfile::Builder::new().prefix(".theta-").tempfile_in(folder).map(drop)
    }

    /// Takes away what else is in a folder that an authority publishes.
    ///
    /// # Errors
    /// The system's reason.
    pub fn keep_only(&self, folder: &str, files: &BTreeSet<String>) -> io::Result<()> {
        let folder = self.place(folder)?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // A folder may be another authority's.
            if !name.starts_with('.') && !files.contains(&name) && entry.file_type()?.is_file() {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Takes away what is found by its SHA-256 and is needed no more.
    ///
    /// # Errors
    /// The system's reason.
    pub fn sweep(&self, needed: &BTreeSet<String>) -> io::Result<()> {
        let folder = self.0.join("sha256");
        if !folder.is_dir() {
            return Ok(());
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && !needed.contains(&name) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}
