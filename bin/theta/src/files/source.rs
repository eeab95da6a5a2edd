//! Bytes to read: a file or standard input.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::{
        fd::AsFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use theta_schemes::groups::Secret;

use super::is_dash;
use crate::exit::Failure;

/// Bytes to read: a file or standard input.
pub struct Source {
    /// The name in messages.
    pub(crate) name: PathBuf,
    /// The bytes.
    pub(crate) reader: Box<dyn Read + Send>,
    /// Their number, if it is known.
    pub(crate) length: Option<u64>,
    /// The identity of a regular file.
    pub(super) file: Option<FileId>,
}

/// The identity of a regular file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Of this file.
    pub(super) fn of(found: &fs::Metadata) -> Option<Self> {
        found.is_file().then(|| Self { device: found.dev(), inode: found.ino() })
    }

    /// The identity of the file behind a standard stream, if there is one.
    pub(super) fn of_stream(stream: &impl AsFd) -> Option<Self> {
        let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
        Self::of(&file.metadata().ok()?)
    }
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if is_dash(path) {
            let (name, stdin) = (PathBuf::from("standard input"), io::stdin());
            let file = FileId::of_stream(&stdin);
            return Ok(Self { name, reader: Box::new(stdin), length: None, file });
        }
        let (file, metadata) = opened(path)?;
        Ok(Self::of(path, file, &metadata))
    }

    /// Opens a secret: a file that only its owner can read, or a pipe.
    pub(crate) fn open_private(path: &Path) -> Result<Self, Failure> {
        if is_dash(path) {
            return Self::open(path);
        }
        let (file, metadata) = opened(path)?;
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_file() && mode & 0o077 != 0 {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "{path} is a secret, and others can read or change it (mode {mode:04o}): run chmod 600 {path}, and make a new \
                 one if somebody may have read it"
            )));
        }
        Ok(Self::of(path, file, &metadata))
    }

    fn of(path: &Path, file: File, metadata: &fs::Metadata) -> Self {
        let length = metadata.is_file().then_some(metadata.len());
        Self { name: path.to_owned(), reader: Box::new(file), length, file: FileId::of(metadata) }
    }

    /// Reads a secret of at most `limit` bytes into memory that is wiped.
    pub(crate) fn read_secret(mut self, limit: usize) -> Result<Secret<Vec<u8>>, Failure> {
        // Allocated at once, because a growing vector leaves copies of its content behind.
        let mut bytes = Secret::new(Vec::with_capacity(limit + 1));
        let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let read = self.reader.by_ref().take(bound).read_to_end(bytes.expose_mut());
        read.map_err(|error| Failure::reading(&self.name, &error))?;
        if bytes.expose().len() > limit {
            let name = self.name.display();
            return Err(Failure::Usage(format!("{name} is longer than {limit} bytes: this is not a private key")));
        }
        Ok(bytes)
    }

    /// Reads everything, at most `limit` bytes.
    pub fn read_all(mut self, limit: usize, hint: &str) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let read = self.reader.by_ref().take(bound).read_to_end(&mut bytes);
        read.map_err(|error| Failure::reading(&self.name, &error))?;
        if bytes.len() > limit {
            let name = self.name.display();
            return Err(Failure::Usage(format!("{name} is longer than {limit} bytes: {hint}")));
        }
        Ok(bytes)
    }
}

fn opened(path: &Path) -> Result<(File, fs::Metadata), Failure> {
    let file = File::open(path).map_err(|error| Failure::reading(path, &error))?;
    let metadata = file.metadata().map_err(|error| Failure::reading(path, &error))?;
    if metadata.is_dir() {
        return Err(Failure::Usage(format!("{} is a directory: name a file", path.display())));
    }
    Ok((file, metadata))
}
