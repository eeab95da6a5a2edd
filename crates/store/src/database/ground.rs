//! The storage below a database. It outlives the database: after an error the database is opened again on the same open
//! file.
//!
//! The database refuses all work after one failed read or write, since its state is unknown then. A full disk would
//! thus stop a node until a person restarts it. The file stays open and locked while the database is exchanged, so that
//! no other process and no other file can take its place.

use std::{
    fmt, io,
    ops::Bound,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release},
    },
};

use redb::{BackendError, StorageBackend};

/// How many bytes are copied at a time when the whole file is written again.
const CHUNK: usize = 1 << 20;
/// A database is not opened again on a file system with less free space, in bytes: its next commit would fail as well.
const ROOM: u64 = 1 << 20;

/// The length of the file's head, in bytes: every commit changes it.
const HEAD: usize = 512;

/// The storage of a store, shared by the databases that are opened on it one after another.
#[derive(Clone)]
pub(super) struct Ground(Arc<Soil>);

struct Soil {
    storage: Box<dyn StorageBackend>,
    /// The file's path, if it is a file.
    path: Option<PathBuf>,
    /// Whether an operation failed since the database was opened.
    failed: AtomicBool,
    /// Whether a sync failed: then what the system shows need not be on the disk.
    unsynced: AtomicBool,
    /// The head of the file as this process left it.
    head: Mutex<[u8; HEAD]>,
}

impl Drop for Soil {
    fn drop(&mut self) {
        // Closing only gives up locks, which end with the process in any case.
        let _ = self.storage.close();
    }
}

impl fmt::Debug for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.storage.fmt(f)
    }
}

impl Ground {
    pub(super) fn new(storage: impl StorageBackend, path: Option<PathBuf>) -> Self {
        let storage = Box::new(storage);
        let (failed, unsynced) = (AtomicBool::new(false), AtomicBool::new(false));
        Self(Arc::new(Soil { storage, path, failed, unsynced, head: Mutex::new([0; HEAD]) }))
    }

    /// Whether an operation failed, so that the database above no longer works.
    pub(super) fn has_failed(&self) -> bool {
        self.0.failed.load(Acquire)
    }

    /// Notes that the database could not be opened.
    pub(super) fn set_failed(&self) {
        self.0.failed.store(true, Release);
    }

    /// Remembers the head of the file, which this process has just opened.
    pub(super) fn note_head(&self) -> io::Result<()> {
        let head = self.read_head()?;
        *self.head() = head;
        Ok(())
    }

    /// Whether the file is as this process left it. It is not if the process was resumed from an image of its memory
    /// while the file had changed since that image.
    pub(super) fn is_continued(&self) -> io::Result<bool> {
        Ok(self.read_head()? == *self.head())
    }

    /// Refuses to write over what another process has left, even when a database is closed.
    fn check_continued(&self) -> io::Result<()> {
        if self.is_continued()? { Ok(()) } else { Err(io::Error::other("the file is not as this process left it")) }
    }

    /// The head of the file, with zeros behind it if the file is shorter.
    fn read_head(&self) -> io::Result<[u8; HEAD]> {
        let mut head = [0; HEAD];
        // It is read before every write, and only a store that is being made is shorter: nobody asks for the length first.
        match self.0.storage.read(0, &mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            read => return self.note(read.map(|()| head)),
        }
        head = [0; HEAD];
        let len = usize::try_from(self.note(self.0.storage.len())?).unwrap_or(HEAD).min(HEAD);
        self.note(self.0.storage.read(0, head.get_mut(..len).unwrap_or_default()))?;
        Ok(head)
    }

    fn head(&self) -> MutexGuard<'_, [u8; HEAD]> {
        self.0.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file's path, if it is a file.
    pub(super) fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// How many bytes of the file system are free for this process; `None` where that is not known.
    pub(super) fn free_space(&self) -> Option<u64> {
        self.0.path.as_deref().and_then(free_space)
    }

    /// Prepares the storage for another database: makes sure that what the system shows of the file is on the disk.
    ///
    /// A system that could not write pages out may show them as written ever after (Linux marks them clean), and a
    /// later sync that succeeds says nothing about them. So after a failed sync the whole file is written once more.
    pub(super) fn restore(&self) -> io::Result<()> {
        if let Some(free) = self.free_space().filter(|free| *free < ROOM) {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("{free} bytes are free on its file system"),
            ));
        }
        if self.0.unsynced.load(Acquire) {
            let (len, mut place, mut chunk) = (self.0.storage.len()?, 0, vec![0; CHUNK]);
            while place < len {
                let left = usize::try_from(len.saturating_sub(place)).unwrap_or(CHUNK).min(CHUNK);
                let part = chunk.get_mut(..left).unwrap_or_default();
                self.0.storage.read(place, part)?;
                self.0.storage.write(place, part)?;
                place = place.saturating_add(left as u64);
            }
            self.0.storage.sync_data()?;
            self.0.unsynced.store(false, Release);
        }
        self.0.failed.store(false, Release);
        Ok(())
    }

    fn note<T>(&self, done: io::Result<T>) -> io::Result<T> {
        self.0.failed.fetch_or(done.is_err(), AcqRel);
        done
    }
}

#[cfg(unix)]
fn free_space(path: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(path).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}

#[cfg(not(unix))]
fn free_space(_: &Path) -> Option<u64> {
    None
}

impl StorageBackend for Ground {
    fn len(&self) -> io::Result<u64> {
        self.note(self.0.storage.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.note(self.0.storage.read(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note(self.check_continued())?;
        self.note(self.0.storage.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        let done = self.0.storage.sync_data();
        self.0.unsynced.fetch_or(done.is_err(), AcqRel);
        self.note(done)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note(self.check_continued())?;
        self.note(self.0.storage.write(offset, data))?;
        // Most writes do not touch the head.
        if let Some(from) = usize::try_from(offset).ok().filter(|from| *from < HEAD) {
            let mut head = self.head();
            head.iter_mut().skip(from).zip(data).for_each(|(head, byte)| *head = *byte);
        }
        Ok(())
    }

    /// The file stays open for the next database.
    fn close(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.storage.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.storage.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.storage.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.storage.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.storage.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.storage.query_lock_range(start, end)
    }
}
