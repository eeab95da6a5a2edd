//! The file of the bindings: read by everybody, written by one program at a time, as a whole.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use theta_names::FileStamp;

use crate::Bindings;

/// The largest file in bytes.
const MOST: u64 = 64 << 20;
/// How often a program looks whether another one is done.
const AGAIN: Duration = Duration::from_millis(10);

/// Why the bindings cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BindingsError {
    /// The system refuses.
    #[error("{}: cannot {what}: {reason}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
    /// The file is no longer what was written.
    #[error(
        "{} is damaged: {reason}. No key is given to programs until it is put right: take it from a backup (it has all keys that \
         programs have, also released ones)",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The bindings have no form in a file.
    #[error("{} cannot be written: {reason}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another program is making keys for so long.
    #[error("{} is locked by another program that makes keys, for more than {patience:?}", path.display())]
    Busy {
        /// The file of the lock.
        path: PathBuf,
        /// How long this one has waited.
        patience: Duration,
    },
}

/// The file of the bindings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingsFile(PathBuf);

/// What tells the file from the next one; also whether there is one. Of a file that was just written it equals none: see [`FileStamp`].
#[derive(Clone, Debug, PartialEq)]
pub struct Stamp(Option<FileStamp>);

/// The file, while no other program may write it.
#[derive(Debug)]
pub struct Locked {
    file: BindingsFile,
    lock: File,
}

impl BindingsFile {
    /// The file with this path. It need not exist: then no key has been given to anybody.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What tells this file from the next one. It is looked at before the file is read: then a change is seen twice rather than never.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        Stamp(FileStamp::of(&self.0))
    }

    /// The bindings.
    ///
    /// # Errors
    /// [`BindingsError`] if there is a file that cannot be read, or that is damaged.
    pub fn read(&self) -> Result<Bindings, BindingsError> {
        let failed = |reason| BindingsError::System { path: self.0.clone(), what: "read it", reason };
        let file = match File::open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Bindings::default()),
            Err(error) => return Err(failed(error)),
        };
        let damaged = |reason| BindingsError::Damaged { path: self.0.clone(), reason };
        let mut bytes = Vec::new();
        file.take(MOST.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST {
            return Err(damaged(format!("it has more than {MOST} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| damaged("it is no text".to_owned()))?;
        Bindings::parse(&text).map_err(damaged)
    }

    /// Takes the lock, which is a file beside this one; waits for another program for so long.
    ///
    /// # Errors
    /// [`BindingsError::Busy`], or what the system says.
    pub fn lock(&self, patience: Duration) -> Result<Locked, BindingsError> {
        let path = self.beside("lock");
        let failed = |reason| BindingsError::System { path: path.clone(), what: "lock it", reason };
        let lock = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(failed)?;
        let deadline = Instant::now() + patience;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Locked { file: self.clone(), lock }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(AGAIN),
                Err(TryLockError::WouldBlock) => return Err(BindingsError::Busy { path, patience }),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.0.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name.push(ending);
        self.0.with_file_name(name)
    }
}

impl Locked {
    /// The bindings as they are now.
    ///
    /// # Errors
    /// As [`BindingsFile::read`].
    pub fn read(&self) -> Result<Bindings, BindingsError> {
        self.file.read()
    }

    /// Writes all bindings. When it returns they are on disk, and whoever reads meanwhile has the old ones or the new ones.
    ///
    /// # Errors
    /// [`BindingsError`]: then the old ones are there.
    pub fn write(&self, bindings: &Bindings) -> Result<(), BindingsError> {
        let path = &self.file.0;
        let text = bindings.to_text().map_err(|reason| BindingsError::Form { path: path.clone(), reason })?;
        let new = self.file.beside("new");
        let failed = |what| {
            let path = new.clone();
            move |reason| BindingsError::System { path, what, reason }
        };
        let mut file = File::create(&new).map_err(failed("make it"))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed("write it"))?;
        drop(file);
        fs::rename(&new, path).map_err(failed("put it in the place of the old one"))?;
        // The name is on disk only with its folder.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("write its folder"))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // A child that was forked meanwhile has the same open file: closing it here would not be enough.
        let _ = self.lock.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::bindings::tests::binding;

    #[test]
    fn the_lock_keeps_others_out_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let file = BindingsFile::new(dir.path().join("bindings.toml"));
        assert_eq!(file.read().unwrap(), Bindings::default());
        let writers = (1..=20_u8).map(|number| {
            let file = file.clone();
            thread::spawn(move || {
                let locked = file.lock(Duration::from_secs(30)).unwrap();
                let mut bindings = locked.read().unwrap();
                bindings.put(binding(number));
                locked.write(&bindings).unwrap();
            })
        });
        writers.collect::<Vec<_>>().into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(file.read().unwrap().iter().count(), 20);

        let _held = file.lock(Duration::ZERO).unwrap();
        let error = file.lock(Duration::from_millis(30)).unwrap_err().to_string();
        assert!(error.contains("bindings.toml.lock is locked by another program"), "{error}");
    }

    #[test]
    fn every_change_has_another_stamp() {
        let dir = tempfile::tempdir().unwrap();
        let file = BindingsFile::new(dir.path().join("bindings.toml"));
        let locked = file.lock(Duration::ZERO).unwrap();
        let (mut stamps, mut bindings) = (vec![file.stamp()], Bindings::default());
        for number in 1..=5 {
            bindings.put(binding(number));
            locked.write(&bindings).unwrap();
            assert_ne!(&file.stamp(), stamps.last().unwrap());
            stamps.push(file.stamp());
        }
        assert_ne!(file.stamp(), file.stamp(), "it may be written again before its time is another one");
        let old = SystemTime::now() - Duration::from_secs(100);
        File::options().write(true).open(file.path()).unwrap().set_modified(old).unwrap();
        assert_eq!(file.stamp(), file.stamp());
    }

    /// What a program leaves that ends while it writes does not matter to the next one.
    #[test]
    fn half_of_a_new_file_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = BindingsFile::new(dir.path().join("bindings.toml"));
        let mut bindings = Bindings::default();
        bindings.put(binding(1));
        file.lock(Duration::ZERO).unwrap().write(&bindings).unwrap();
        fs::write(dir.path().join("bindings.toml.new"), "[[bind").unwrap();
        assert_eq!(file.read().unwrap(), bindings);
        bindings.put(binding(2));
        file.lock(Duration::ZERO).unwrap().write(&bindings).unwrap();
        assert_eq!(file.read().unwrap(), bindings);
        assert!(!dir.path().join("bindings.toml.new").exists());
    }

    #[test]
    fn damage_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = BindingsFile::new(dir.path().join("bindings.toml"));
        for bytes in [&b""[..], b"[[binding]]\n", b"\xff\xfe", b"keys = 1\n# The end.\n"] {
            fs::write(file.path(), bytes).unwrap();
            let error = file.read().unwrap_err().to_string();
            assert!(error.contains("bindings.toml is damaged: ") && error.contains("from a backup"), "{error}");
        }
    }
}
