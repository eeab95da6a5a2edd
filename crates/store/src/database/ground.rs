//! What a database stands on, and outlives it: after an error the database is opened again on the same open file.
//!
//! The database refuses everything after one failed read or write, since it cannot know what happened. A full disk would
//! thus stop a node until somebody starts it again. The file stays open and locked while the database is exchanged, so that
//! no other process and no other file can come in between.

use std::{
    fmt, io,
    ops::Bound,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release},
    },
};

use redb::{BackendError, StorageBackend};

/// Copied at a time when the whole file is written again.
const CHUNK: usize = 1 << 20;
/// A database is not opened again on a file system with less free space, in bytes: its next commit would fail as well.
const ROOM: u64 = 1 << 20;

/// The storage of a store, shared by the databases that are opened on it one after the other.
#[derive(Clone)]
pub(super) struct Ground(Arc<Soil>);

struct Soil {
    storage: Box<dyn StorageBackend>,
    /// The file, if it is one.
    path: Option<PathBuf>,
    /// An operation failed since the database was opened.
    failed: AtomicBool,
    /// A sync failed: what the system shows need not be what is on the disk.
    unsynced: AtomicBool,
}

impl Drop for Soil {
    fn drop(&mut self) {
        // It only gives up locks, which end with the process in any case.
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
        Self(Arc::new(Soil { storage, path, failed: AtomicBool::new(false), unsynced: AtomicBool::new(false) }))
    }

    /// Whether an operation failed, so that the database above works no more.
    pub(super) fn has_failed(&self) -> bool {
        self.0.failed.load(Acquire)
    }

    /// Notes that the database could not be opened.
    pub(super) fn set_failed(&self) {
        self.0.failed.store(true, Release);
    }

    /// Bytes of the file system that are free for this process; `None` where that is not known.
    pub(super) fn free_space(&self) -> Option<u64> {
        self.0.path.as_deref().and_then(free_space)
    }

    /// Makes it fit for another database: what the system shows of the file is what the disk has.
    ///
    /// A system that could not write pages out may show them as written ever after (Linux marks them clean), and a later sync
    /// that succeeds says nothing about them. So after a failed sync everything is written once more.
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
        self.note(self.0.storage.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        let done = self.0.storage.sync_data();
        self.0.unsynced.fetch_or(done.is_err(), AcqRel);
        self.note(done)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note(self.0.storage.write(offset, data))
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
