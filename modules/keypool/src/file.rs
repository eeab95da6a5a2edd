//! The file of the bindings: read by everybody, written by one program at a time, as a whole.

use std::{
    fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use theta_names::FileStamp;

use crate::Bindings;

/// The largest file in bytes.
const MOST: u64 = 64 << 20;
/// Who may read and write the first file, of whom the process lets (its umask): its owner, and the group, whose programs share the pool.
const FIRST_MODE: u32 = 0o660;
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
        // Whoever may not write the file that another user has made may lock it all the same.
        let lock = lock.or_else(|error| File::open(&path).map_err(|_| error)).map_err(failed)?;
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

    /// Writes all bindings. When it returns they are in place, and whoever reads meanwhile has the old ones or the new ones; who may read and
    /// write the file stays as it was. If it gives something, the system does not say that they will be there after a power cut.
    ///
    /// # Errors
    /// [`BindingsError`]: then the old ones are there.
    pub fn write(&self, bindings: &Bindings) -> Result<Option<BindingsError>, BindingsError> {
        let path = &self.file.0;
        let form = |reason| BindingsError::Form { path: path.clone(), reason };
        let text = bindings.to_text().map_err(form)?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > MOST {
            return Err(form(format!("it would have {} bytes, and a file has at most {MOST}", text.len())));
        }
        let new = self.file.beside("new");
        let failed = |path: &Path, what| {
            let path = path.to_owned();
            move |reason| BindingsError::System { path, what, reason }
        };
        let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let folder = File::open(parent).map_err(failed(parent, "open it"))?;
        // What a program has left that ended while it wrote may be another user's.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&new, "remove it")(error)),
            _ => {}
        }
        let old = fs::metadata(path).ok();
        let mode = if old.is_some() { 0o600 } else { FIRST_MODE };
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new);
        let mut file = file.map_err(failed(&new, "make it"))?;
        let written = old.map_or(Ok(()), |old| take_after(&file, &old));
        let written = written.and_then(|()| file.write_all(text.as_bytes())).and_then(|()| file.sync_all());
        drop(file);
        let placed = written
            .map_err(failed(&new, "write it"))
            .and_then(|()| fs::rename(&new, path).map_err(failed(&new, "put it in the place of the old one")));
        if placed.is_err() {
            let _ = fs::remove_file(&new);
        }
        placed?;
        // The name is on disk only with its folder. The bindings are read as new by now, so nothing is undone.
        Ok(folder.sync_all().map_err(failed(parent, "write it to the disk, after a change of its bindings")).err())
    }
}

/// Gives a file the owner, the group and the mode of the one that it takes the place of. Where the system does not let the process give the
/// group, whoever is in the process's own has no more rights than others.
fn take_after(file: &File, old: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    let mut mode = old.mode() & 0o777;
    if own.gid() != old.gid() && fchown(file, None, Some(old.gid())).is_err() {
        mode = (mode & 0o707) | ((mode & 0o007) << 3);
    }
    if own.uid() != old.uid() {
        // Only a privileged process may. The file of another user is this one's then, with the same mode.
        let _ = fchown(file, Some(old.uid()), None);
    }
    file.set_permissions(Permissions::from_mode(mode))
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

    use rustix::{
        process::{Gid, Uid, geteuid},
        thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
    };

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

    /// Does this as a user without rights, if the tests run as one that has all.
    fn without_rights<T: Send>(act: impl FnOnce() -> T + Send) -> T {
        if !geteuid().is_root() {
            return act();
        }
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // Of this thread alone, as Linux has it.
                let (user, group) = (Uid::from_raw(65_534), Gid::from_raw(65_534));
                set_thread_groups(&[]).unwrap();
                set_thread_res_gid(group, group, group).unwrap();
                set_thread_res_uid(user, user, user).unwrap();
                act()
            });
            thread.join().unwrap()
        })
    }

    /// A folder that others may write.
    fn common() -> (tempfile::TempDir, BindingsFile) {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let file = BindingsFile::new(dir.path().join("bindings.toml"));
        (dir, file)
    }

    fn one() -> Bindings {
        let mut bindings = Bindings::default();
        bindings.put(binding(1));
        bindings
    }

    #[test]
    fn who_may_read_and_write_the_file_stays_as_it_was() {
        let (_dir, file) = common();
        let mode = || fs::metadata(file.path()).unwrap().mode() & 0o7777;
        let locked = file.lock(Duration::ZERO).unwrap();
        locked.write(&Bindings::default()).unwrap();
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap().trim();
        assert_eq!(mode(), 0o660 & !u32::from_str_radix(umask, 8).unwrap());
        for kept in [0o600, 0o664, 0o640] {
            fs::set_permissions(file.path(), Permissions::from_mode(kept)).unwrap();
            locked.write(&one()).unwrap();
            assert_eq!(mode(), kept);
        }
        if geteuid().is_root() {
            std::os::unix::fs::chown(file.path(), Some(1234), Some(5678)).unwrap();
            locked.write(&Bindings::default()).unwrap();
            let now = fs::metadata(file.path()).unwrap();
            assert_eq!((now.uid(), now.gid(), mode()), (1234, 5678, 0o640));
        }
    }

    /// A group that cannot be kept gets nothing that is not everybody's.
    #[test]
    fn another_group_has_no_rights_of_the_first() {
        let (_dir, file) = common();
        file.lock(Duration::ZERO).unwrap().write(&one()).unwrap();
        fs::set_permissions(file.path(), Permissions::from_mode(0o664)).unwrap();
        without_rights(|| file.lock(Duration::ZERO).unwrap().write(&one()).unwrap());
        let now = fs::metadata(file.path()).unwrap();
        let expected = if geteuid().is_root() { 0o644 } else { 0o664 };
        assert_eq!((now.mode() & 0o7777, file.read().unwrap()), (expected, one()));
    }

    #[test]
    fn what_another_user_has_left_is_in_nobodys_way() {
        let (dir, file) = common();
        for (name, mode) in [("bindings.toml.lock", 0o444), ("bindings.toml.new", 0o400)] {
            fs::write(dir.path().join(name), "").unwrap();
            fs::set_permissions(dir.path().join(name), Permissions::from_mode(mode)).unwrap();
        }
        without_rights(|| {
            let locked = file.lock(Duration::ZERO).unwrap();
            assert!(matches!(file.lock(Duration::ZERO), Err(BindingsError::Busy { .. })), "it is a lock");
            locked.write(&one()).unwrap();
        });
        assert_eq!(file.read().unwrap(), one());
    }

    /// The new file follows no name that somebody else has put there.
    #[test]
    fn a_name_that_leads_elsewhere_is_not_followed() {
        let (dir, file) = common();
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "as it was").unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.path().join("bindings.toml.new")).unwrap();
        file.lock(Duration::ZERO).unwrap().write(&one()).unwrap();
        assert_eq!((fs::read_to_string(elsewhere).unwrap(), file.read().unwrap()), ("as it was".to_owned(), one()));
    }

    /// A folder that can be changed and not opened: whoever hears of an error has nothing changed.
    #[test]
    fn an_error_says_that_the_old_bindings_are_there() {
        let (dir, file) = common();
        file.lock(Duration::ZERO).unwrap().write(&Bindings::default()).unwrap();
        fs::set_permissions(file.path(), Permissions::from_mode(0o666)).unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o333)).unwrap();
        let error = without_rights(|| file.lock(Duration::ZERO).unwrap().write(&one()).unwrap_err());
        assert!(error.to_string().contains("cannot open it"), "{error}");
        assert_eq!(without_rights(|| file.read().unwrap()), Bindings::default());
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    }

    /// Bindings that nobody could read again are not written.
    #[test]
    fn what_would_be_too_long_to_be_read_is_not_written() {
        let (_dir, file) = common();
        let locked = file.lock(Duration::ZERO).unwrap();
        locked.write(&one()).unwrap();
        let mut bindings = one();
        // Each of them takes six times as much in the file.
        let shown = crate::Shown { id: Some(vec![7; 1024]), label: Some("\u{1}".repeat(1024)) };
        for number in 0_u16..4_200 {
            let mut long = binding(2);
            long.key_id[..2].copy_from_slice(&number.to_be_bytes());
            (long.private, long.public) = (shown.clone(), Some(shown.clone()));
            bindings.put(long);
        }
        let error = locked.write(&bindings).unwrap_err().to_string();
        assert!(error.contains("cannot be written") && error.contains("at most 67108864"), "{error}");
        assert_eq!(file.read().unwrap(), one());
    }
}
