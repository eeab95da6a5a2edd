//! The policy file: read at the start, and again whenever it changes.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use theta_names::FileStamp;
use theta_policy::{MOST_FILE, Policy, PolicyFileError};

/// The policy in place of a file that does not exist: it names nobody, so everything is refused.
const NOTHING: &str = "format = 1\n";

/// Why a policy file was not put in force.
#[derive(Debug, thiserror::Error)]
pub enum PolicyLoadError {
    /// The file cannot be read.
    #[error("cannot read the policy file {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The policy in the file is not valid.
    #[error(transparent)]
    File(#[from] PolicyFileError),
}

/// Reads and checks a policy file as a node does. A file that does not exist gives a policy that allows nobody
/// anything.
///
/// # Errors
/// [`PolicyLoadError`].
pub fn load_policy(path: &Path) -> Result<Policy, PolicyLoadError> {
    let text = read(path)?.unwrap_or_else(|| NOTHING.to_owned());
    Ok(Policy::parse(&text, &path.display().to_string())?)
}

/// The text of the file, if there is one.
fn read(path: &Path) -> Result<Option<String>, PolicyLoadError> {
    let failed = |source| PolicyLoadError::Read { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut text = String::new();
    // One byte more than is allowed, so that the parser can refuse a longer file.
    let most = u64::try_from(MOST_FILE).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

/// What is known of the file.
#[derive(Debug)]
struct Seen {
    /// As it was when it was last read, or found to be gone.
    taken: Option<FileStamp>,
    /// As it was at the last look.
    last: Option<FileStamp>,
}

/// The file as it was when it was last examined.
#[derive(Debug)]
pub(crate) struct PolicyFile {
    path: PathBuf,
    seen: Mutex<Seen>,
    reading: Mutex<()>,
    /// Whether the log has said that the file is gone.
    gone: AtomicBool,
}

impl PolicyFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            seen: Mutex::new(Seen { taken: FileStamp::of(path), last: None }),
            reading: Mutex::new(()),
            gone: AtomicBool::new(FileStamp::of(path).is_none()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has changed since it was read, and not since the last call: it may be written in several steps, and a part of a policy may be a
    /// policy as well, without its last rules. A deleted file counts as unchanged: the policy that was read from it stays in force.
    pub(crate) fn has_changed(&self) -> bool {
        let now = FileStamp::of(&self.path);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut seen.last, now);
        let is_settled = before.zip(now).is_some_and(|(before, now)| before.looks_like(&now));
        // A stamp of a file that has just changed equals none, so that it is read again until it has been left alone for a while.
        let has_changed = is_settled && seen.taken != now;
        if has_changed {
            seen.taken = now;
        }
        has_changed
    }

    /// Logs once that the file was deleted, and once that it is there again.
    pub(crate) fn tell_whether_gone(&self) {
        let gone = FileStamp::of(&self.path).is_none();
        match (self.gone.swap(gone, Ordering::Relaxed), gone) {
            (false, true) => tracing::error!(
                file = %self.path.display(),
                "the policy file is gone: the policy that was read from it stays in force until the node stops, and the next \
                 start refuses everything; put the file back"
            ),
            (true, false) => tracing::info!(file = %self.path.display(), "the policy file is there"),
            _ => {}
        }
    }

    /// A warning for the operator about the file.
    pub(crate) fn warning(&self) -> Option<String> {
        let gone = self.gone.load(Ordering::Relaxed);
        gone.then(|| "its policy file is gone, and the next start refuses everything: put it back".to_owned())
    }

    /// A lock to hold from reading the file until its policy is in force; otherwise an older reading could be put in
    /// force last.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text of the file, which must be there.
    pub(crate) fn text(&self) -> Result<String, PolicyLoadError> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "it is gone");
        read(&self.path)?.ok_or_else(|| PolicyLoadError::Read { path: self.path.clone(), source: gone() })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        time::{Duration, SystemTime},
    };

    use super::*;

    #[test]
    fn a_file_that_does_not_exist_allows_nothing_and_a_broken_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        assert!(load_policy(&path).unwrap().is_empty());
        fs::write(&path, "format = 1\n[[rule]]\n").unwrap();
        let error = load_policy(&path).unwrap_err().to_string();
        assert!(error.contains("policy.toml:2: missing field"), "{error}");
        fs::write(&path, vec![b' '; MOST_FILE + 5]).unwrap();
        assert!(matches!(load_policy(&path), Err(PolicyLoadError::File(_))));
        assert!(matches!(load_policy(folder.path()), Err(PolicyLoadError::Read { .. })));
    }

    #[test]
    fn changes_are_seen_and_a_file_that_is_gone_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        let file = PolicyFile::new(&path);
        let looks = |file: &PolicyFile| [file.has_changed(), file.has_changed()];
        assert_eq!(looks(&file), [false, false], "there is none");
        fs::write(&path, "format = 1").unwrap();
        assert_eq!(looks(&file), [false, true], "it is taken when it stays as it is");
        let old = SystemTime::now() - Duration::from_secs(100);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        assert_eq!(looks(&file), [false, true]);
        assert_eq!(looks(&file), [false, false]);
        // A program writes it in pieces, which are valid one by one.
        for more in ["\n", "\n\n", "\n\n\n"] {
            fs::write(&path, format!("format = 1{more}")).unwrap();
            assert!(!file.has_changed(), "it is being written");
        }
        assert!(file.has_changed());
        fs::remove_file(&path).unwrap();
        assert_eq!(looks(&file), [false, false]);
        assert!(file.text().unwrap_err().to_string().contains("it is gone"));
    }
}
