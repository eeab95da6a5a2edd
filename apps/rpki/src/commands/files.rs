//! Files that people name: read as a whole, written as a whole or not at all.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use theta_groups::Secret;

use super::failure::{Failure, MOST_FILE};

/// Only its owner may read it.
pub(crate) const PRIVATE: u32 = 0o600;
/// Everybody may read it.
pub(crate) const PUBLIC: u32 = 0o644;
/// The file of a private key is shorter.
const MOST_KEY: u16 = 4096;

/// Reads a text.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    // One byte more than there may be tells a file that is too long.
    let opened = File::open(path).and_then(|file| file.take(MOST_FILE.saturating_add(1)).read_to_string(&mut text));
    opened.map_err(|reason| Failure::Read { path: path.to_owned(), reason })?;
    let fits = u64::try_from(text.len()).is_ok_and(|length| length <= MOST_FILE);
    if fits { Ok(text) } else { Err(Failure::Long(path.to_owned())) }
}

/// Reads a private key, which nobody but its owner may be able to read, into memory that is wiped.
pub(crate) fn read_secret(path: &Path) -> Result<Secret<Vec<u8>>, Failure> {
    let failed = |reason| Failure::Read { path: path.to_owned(), reason };
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.is_file() && found.permissions().mode() & 0o077 != 0 {
        return Err(Failure::Exposed(path.to_owned()));
    }
    // Allocated at once, because a growing vector leaves copies of its content behind.
    let mut bytes = Secret::new(Vec::with_capacity(usize::from(MOST_KEY) + 1));
    file.take(u64::from(MOST_KEY)).read_to_end(bytes.expose_mut()).map_err(failed)?;
    Ok(bytes)
}

/// The files of a folder that an agent would read, which end with .toml, in order.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |reason| Failure::Read { path: folder.to_owned(), reason };
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(failed)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    Ok(paths)
}

/// Writes a file that must not exist, with this mode.
pub(crate) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        return Err(Failure::Exists(path.to_owned()));
    }
    let placed = draft(path, bytes, Permissions::from_mode(mode))?.persist_noclobber(path);
    placed.map(drop).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Exists(path.to_owned()),
        _ => Failure::Write { path: path.to_owned(), reason: error.error },
    })
}

/// Writes a file in the place of one that is there, and leaves its mode as it is.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |reason| Failure::Write { path: path.to_owned(), reason };
    // The file behind a symbolic link is replaced, not the link.
    let behind = fs::canonicalize(path).map_err(failed)?;
    let permissions = fs::metadata(&behind).map_err(failed)?.permissions();
    let placed = draft(&behind, bytes, permissions)?.persist(&behind);
    placed.map(drop).map_err(|error| failed(error.error))
}

/// A finished file under another name beside its own.
fn draft(path: &Path, bytes: &[u8], permissions: Permissions) -> Result<NamedTempFile, Failure> {
    let failed = |reason| Failure::Write { path: path.to_owned(), reason };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".theta-").tempfile_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    // The umask changes the mode at creation; it does not change this one.
    file.as_file().set_permissions(permissions).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    Ok(file)
}
