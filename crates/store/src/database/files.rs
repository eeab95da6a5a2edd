//! The file of a store and its permissions.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

use crate::StoreError;

/// Creates the file of a new store, for its owner alone.
pub(super) fn create(path: &Path) -> Result<File, StoreError> {
    check_folder(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => StoreError::Exists(path.display().to_string()),
        _ => StoreError::io(path.display().to_string(), error),
    })
}

/// Opens the file of an existing store.
pub(super) fn open(path: &Path) -> Result<File, StoreError> {
    let place = || path.display().to_string();
    check_folder(path).map_err(|error| match error {
        StoreError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => StoreError::Missing(place()),
        other => other,
    })?;
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing(place()),
        _ => StoreError::io(place(), error),
    })?;
    check_private(path, &file)?;
    let len = file.metadata().map_err(|error| StoreError::io(place(), error))?.len();
    // An empty file would be taken for a new database.
    if len == 0 { Err(StoreError::Unfinished(place())) } else { Ok(file) }
}

/// Makes the folder's entry for the file durable: otherwise a crash can lose a file whose content is safe.
pub(super) fn sync_folder(path: &Path) -> Result<(), StoreError> {
    let folder = folder(path);
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| StoreError::io(folder.display().to_string(), error))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Refuses a file that others may use. The permissions are read from the open file, so that it cannot be exchanged in
/// between.
#[cfg(unix)]
pub(crate) fn check_private(path: &Path, file: &File) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt;

    let place = path.display().to_string();
    let metadata = file.metadata().map_err(|error| StoreError::io(place.as_str(), error))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(StoreError::FileMode { place, mode }) }
}

/// Refuses a folder in which others may replace the store by another file. In a sticky folder (`/tmp`) nobody can
/// replace a file of another owner.
#[cfg(unix)]
fn check_folder(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder(path);
    let place = folder.display().to_string();
    let metadata = fs::metadata(folder).map_err(|error| StoreError::io(place.as_str(), error))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o022 == 0 || mode & 0o1000 != 0 {
        Ok(())
    } else {
        Err(StoreError::FolderMode { place, mode: mode & 0o777 })
    }
}

#[cfg(not(unix))]
pub(crate) fn check_private(_: &Path, _: &File) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(not(unix))]
fn check_folder(path: &Path) -> Result<(), StoreError> {
    fs::metadata(folder(path)).map(drop).map_err(|error| StoreError::io(path.display().to_string(), error))
}
