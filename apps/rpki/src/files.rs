//! Files that an agent reads: regular ones, to a length. A pipe would keep it waiting, and a link would lead it to files of others.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use rustix::fs::{Mode, OFlags};

/// Whether a link in a file's place is followed. Links to folders on the way always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// Where the operator names the file.
    Followed,
    /// Where it is found in a folder.
    Refused,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// The system's reason.
    #[error(transparent)]
    System(#[from] io::Error),
    /// It is a folder, a pipe, a device.
    #[error("it is no regular file")]
    Irregular,
    /// It is too long.
    #[error("it has more than {0} bytes")]
    Long(u64),
}

/// Reads a file of so many bytes at most.
///
/// # Errors
/// [`FileError`].
pub(crate) fn read(path: &Path, links: Links, most: u64) -> Result<Vec<u8>, FileError> {
    // Whoever opens a pipe waits for its writer, unless it says that it will not.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let flags = if links == Links::Refused { flags | OFlags::NOFOLLOW } else { flags };
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?);
    if !file.metadata()?.is_file() {
        return Err(FileError::Irregular);
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile, so what is read is counted.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most { Err(FileError::Long(most)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, process::Command, sync::mpsc, thread, time::Duration};

    use super::*;

    #[test]
    fn regular_files_are_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), b"four").unwrap();
        symlink(at("file"), at("link")).unwrap();
        assert_eq!(read(&at("file"), Links::Refused, 4).unwrap(), b"four");
        assert!(matches!(read(&at("file"), Links::Refused, 3), Err(FileError::Long(3))));
        assert_eq!(read(&at("link"), Links::Followed, 4).unwrap(), b"four");
        assert!(matches!(read(&at("link"), Links::Refused, 4), Err(FileError::System(_))));
        assert!(matches!(read(&at("none"), Links::Refused, 4), Err(FileError::System(_))));
        assert!(matches!(read(folder.path(), Links::Refused, 4), Err(FileError::Irregular)));
    }

    #[test]
    fn a_pipe_does_not_keep_it_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (said, heard) = mpsc::channel();
        thread::spawn(move || said.send(matches!(read(&pipe, Links::Refused, 4), Err(FileError::Irregular))));
        assert_eq!(heard.recv_timeout(Duration::from_secs(10)), Ok(true));
    }
}
