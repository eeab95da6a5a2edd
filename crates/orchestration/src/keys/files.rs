//! Reads key files.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use theta_groups::Secret;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName, KeyNameError};

use super::KeyFilesError;

/// No key file is longer: 65,535 verification keys of 96 bytes in hexadecimal, and the rest.
const MAX_FILE_LEN: u64 = 32 << 20;
const PUBLIC: &str = "pub";
const SHARE: &str = "share";

/// Reads all pairs of a folder, by name.
pub(super) fn read(folder: &Path) -> Result<Vec<(KeyName, AnyPublicKey, AnyKeyShare)>, KeyFilesError> {
    stems(folder)?.into_iter().map(|stem| pair(folder, &stem)).collect()
}

/// The names that have a public file or a share. Other files in the folder are none of our business.
fn stems(folder: &Path) -> Result<BTreeSet<String>, KeyFilesError> {
    let io_error = |error| KeyFilesError::Io { path: folder.to_owned(), error };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(io_error(error)),
    };
    let mut stems = BTreeSet::new();
    for entry in entries {
        let path = entry.map_err(io_error)?.path();
        if ![Some(OsStr::new(PUBLIC)), Some(OsStr::new(SHARE))].contains(&path.extension()) {
            continue;
        }
        match path.file_stem().and_then(OsStr::to_str) {
            Some(stem) => stems.insert(stem.to_owned()),
            None => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Err(KeyFilesError::FileName { path, error: KeyNameError(name) });
            }
        };
    }
    Ok(stems)
}

fn pair(folder: &Path, stem: &str) -> Result<(KeyName, AnyPublicKey, AnyKeyShare), KeyFilesError> {
    let public_path = folder.join(format!("{stem}.{PUBLIC}"));
    let share_path = folder.join(format!("{stem}.{SHARE}"));
    if let Err(error) = stem.parse::<KeyName>() {
        let path = if public_path.exists() { public_path } else { share_path };
        return Err(KeyFilesError::FileName { path, error });
    }
    for (present, missing) in [(&public_path, &share_path), (&share_path, &public_path)] {
        if !missing.exists() {
            return Err(KeyFilesError::Unpaired { present: present.clone(), missing: missing.clone() });
        }
    }
    let text = read_text(&public_path, false)?;
    let (name, public) = AnyPublicKey::from_text(text.expose())
        .map_err(|error| KeyFilesError::Content { path: public_path.clone(), error })?;
    check_name(public_path, stem, &name, PUBLIC)?;
    let text = read_text(&share_path, true)?;
    let (share_name, share) = AnyKeyShare::from_text(text.expose(), &public)
        .map_err(|error| KeyFilesError::Content { path: share_path.clone(), error })?;
    check_name(share_path, stem, &share_name, SHARE)?;
    Ok((name, public, share))
}

fn check_name(path: PathBuf, stem: &str, name: &KeyName, extension: &'static str) -> Result<(), KeyFilesError> {
    if name.as_str() == stem { Ok(()) } else { Err(KeyFilesError::OtherName { path, name: name.clone(), extension }) }
}

/// Reads a file of bounded size into memory that is wiped. The permissions are those of the file that is open, so that it
/// cannot be exchanged in between.
fn read_text(path: &Path, secret: bool) -> Result<Secret<String>, KeyFilesError> {
    let io_error = |error| KeyFilesError::Io { path: path.to_owned(), error };
    let file = File::open(path).map_err(io_error)?;
    let metadata = file.metadata().map_err(io_error)?;
    if secret {
        check_private(path, &metadata)?;
    }
    if metadata.len() > MAX_FILE_LEN {
        return Err(KeyFilesError::TooLarge { path: path.to_owned(), limit: MAX_FILE_LEN });
    }
    // Room for all from the start: a buffer that grows leaves copies of the secret behind.
    let room = usize::try_from(metadata.len()).unwrap_or(0).saturating_add(1);
    let mut text = Secret::new(String::with_capacity(room));
    file.take(metadata.len()).read_to_string(text.expose_mut()).map_err(io_error)?;
    Ok(text)
}

#[cfg(unix)]
fn check_private(path: &Path, metadata: &fs::Metadata) -> Result<(), KeyFilesError> {
    use std::os::unix::fs::PermissionsExt;

    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(KeyFilesError::Readable { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
fn check_private(_: &Path, _: &fs::Metadata) -> Result<(), KeyFilesError> {
    Ok(())
}
