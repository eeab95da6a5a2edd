//! Unfinished results: they appear under their names only when they are complete, and are removed otherwise.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::{NamedTempFile, TempDir};

use super::{
    parent,
    target::{Target, taken},
};
use crate::{
    exit::Failure,
    interrupt::{Unfinished, Whole},
};

/// An unfinished file. It has a temporary name beside its own, and is removed if it is dropped or a signal ends the
/// process.
pub(crate) struct Draft {
    file: NamedTempFile,
    target: Target,
    unfinished: Unfinished,
}

impl Draft {
    /// See [`Target::draft`].
    pub(super) fn of(target: &Target, private: bool) -> Result<Self, Failure> {
        let (directory, culprit, is_file) = match target {
            Target::Stdout | Target::Stream(_) => (std::env::temp_dir(), std::env::temp_dir(), false),
            Target::File(path) | Target::NewFile(path) => (parent(path), path.clone(), true),
        };
        let mode = if private || !is_file { 0o600 } else { 0o666 };
        Self::begin(&directory, mode, target.clone()).map_err(|error| match error {
            Begin::System(error) => Failure::writing(&culprit, &error),
            Begin::Watch(failure) => failure,
        })
    }

    fn begin(directory: &Path, mode: u32, target: Target) -> Result<Self, Begin> {
        // A signal between making the file and watching it would leave it behind.
        let _whole = Whole::begin().map_err(Begin::Watch)?;
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix(".theta-").permissions(fs::Permissions::from_mode(mode)).tempfile_in(directory);
        let file = file.map_err(Begin::System)?;
        let unfinished = Unfinished::watch(file.path()).map_err(Begin::Watch)?;
        Ok(Self { file, target, unfinished })
    }

    /// The file to write.
    pub(crate) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Moves the finished file to its name and makes it durable, or copies it to the stream that it is for.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        let name = self.target.name();
        let failed = |error: io::Error| Failure::writing(&name, &error);
        let Some(stream) = self.target.stream()? else { return self.place() };
        let file = self.file.as_file_mut();
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut stream = BufWriter::with_capacity(1 << 16, stream);
        io::copy(file, &mut stream).and_then(|_| stream.flush()).map_err(failed)
    }

    fn place(self) -> Result<(), Failure> {
        let Self { file, target, unfinished } = self;
        let name = target.name();
        let failed = |error: io::Error| Failure::writing(&name, &error);
        file.as_file().sync_all().map_err(failed)?;
        let placed = match target {
            Target::NewFile(_) => file.persist_noclobber(&name),
            _ => file.persist(&name),
        };
        placed.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => taken(&name),
            _ => failed(error.error),
        })?;
        drop(unfinished);
        sync_entry(&name).map_err(failed)
    }
}

/// Why there is no draft.
enum Begin {
    System(io::Error),
    Watch(Failure),
}

/// Makes the name of a file or directory durable by syncing the directory that contains it.
fn sync_entry(path: &Path) -> io::Result<()> {
    match File::open(parent(path)).and_then(|directory| directory.sync_all()) {
        // The directory can be written and not read, or its file system cannot sync directories.
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput) => Ok(()),
        result => result,
    }
}

/// Writes a file that must not exist, completely or not at all. With `private` only its owner can read it.
pub(crate) fn write_new(path: &Path, bytes: &[u8], private: bool) -> Result<(), Failure> {
    let mode = if private { 0o600 } else { 0o644 };
    let exists = || Failure::Usage(format!("{} exists already, and is left as it is", path.display()));
    if path.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let mut draft = Draft::of(&Target::NewFile(path.to_owned()), true)?;
    let file = draft.file();
    // The umask changes the mode at creation; it does not change this one.
    let written = file.set_permissions(fs::Permissions::from_mode(mode)).and_then(|()| file.write_all(bytes));
    written.map_err(|error| Failure::writing(path, &error))?;
    draft.place().map_err(|failure| if path.symlink_metadata().is_ok() { exists() } else { failure })
}

/// Makes a directory for its owner alone.
pub(crate) fn new_directory(path: &Path) -> Result<(), Failure> {
    fs::DirBuilder::new().mode(0o700).create(path).map_err(|error| Failure::writing(path, &error))
}

/// An unfinished directory. It has a temporary name beside its own, and is removed with its contents if it
/// is dropped or a signal ends the process.
pub(crate) struct DraftDirectory {
    directory: TempDir,
    target: PathBuf,
    unfinished: Unfinished,
}

impl DraftDirectory {
    /// For a directory that must not exist, with this mode. `repair` says what the caller can do if it does.
    pub(crate) fn new(target: &Path, mode: u32, repair: &str) -> Result<Self, Failure> {
        if target.symlink_metadata().is_ok() {
            let name = target.display();
            return Err(Failure::Usage(format!("{name} exists already, and is left as it is: {repair}")));
        }
        let _whole = Whole::begin()?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".theta-group-").permissions(fs::Permissions::from_mode(mode));
        let made = builder.tempdir_in(parent(target));
        let directory = made.map_err(|error| Failure::writing(target, &error))?;
        let unfinished = Unfinished::watch(directory.path())?;
        Ok(Self { directory, target: target.to_owned(), unfinished })
    }

    /// Its temporary path.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Moves one finished file of it to the name, where there is still nothing, and removes the rest.
    pub(crate) fn keep_file(self, file: &str) -> Result<(), Failure> {
        let Self { directory, target, unfinished } = self;
        let failed = |error: io::Error| Failure::writing(&target, &error);
        let file = tempfile::TempPath::try_from_path(directory.path().join(file)).map_err(failed)?;
        file.persist_noclobber(&target).map_err(|error| failed(error.error))?;
        drop((directory, unfinished));
        sync_entry(&target).map_err(failed)
    }

    /// Moves the finished directory to its name.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        let Self { directory, target, unfinished } = self;
        let failed = |error: io::Error| Failure::writing(&target, &error);
        fs::rename(directory.path(), &target).map_err(failed)?;
        // Nothing is left under the temporary name: there is nothing to remove.
        let _ = directory.keep();
        drop(unfinished);
        sync_entry(&target).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_draft_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target::File(dir.path().join("out"));
        drop(target.draft(true).unwrap());
        let directory = DraftDirectory::new(&dir.path().join("group"), 0o700, "").unwrap();
        fs::write(directory.path().join("x"), "x").unwrap();
        drop(directory);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        target.write(b"secret", true).unwrap();
        let mode = fs::metadata(dir.path().join("out")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_name_that_was_taken_meanwhile_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let draft = Target::NewFile(path.clone()).draft(false).unwrap();
        fs::write(&path, "somebody else's").unwrap();
        assert!(draft.commit().unwrap_err().to_string().contains("exists already"));
        assert!(write_new(&path, b"x", true).unwrap_err().to_string().contains("exists already"));
        assert_eq!(fs::read(&path).unwrap(), b"somebody else's");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
