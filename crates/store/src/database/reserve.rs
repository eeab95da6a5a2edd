//! Room for an operator whose disk is full.
//!
//! Nothing can be removed from a store without writing first: opening it writes, and so does every removal. Where other programs, or the
//! store itself, have taken the last of a file system, the audit log could not be made shorter any more. So a file beside the store only
//! takes room, which whoever looks after the store gives up when nothing else is left.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{Store, files};
use crate::StoreError;

/// Bytes of the file. Opening a store and removing 1,024 records of its log write a fraction of that.
const RESERVE: u64 = 4 << 20;
/// The file is made where so many bytes are free: it must not be what fills a disk.
const PLENTY: u64 = 64 * RESERVE;

impl Store {
    /// Makes the file beside the store that takes room in reserve, if it is missing and there is plenty. Whether it is there. A store
    /// without a file has none.
    ///
    /// # Errors
    /// [`StoreError::Io`]: it cannot be written; then nothing of it is left.
    pub fn keep_reserve(&self) -> Result<bool, StoreError> {
        match self.path() {
            Some(store) if self.free_space().is_some() => keep(store, self.free_space().unwrap_or_default()),
            _ => Ok(false),
        }
    }

    /// Whether less is free on the file system than the file in reserve takes.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        self.free_space().is_some_and(|free| free < RESERVE)
    }

    /// Removes the file in reserve of a store, which need not be open: no node must run on it, as that would take the room at once. Whether there was
    /// one.
    ///
    /// # Errors
    /// [`StoreError::Io`]: it cannot be removed.
    pub fn give_up_reserve(store: &Path) -> Result<bool, StoreError> {
        let path = beside(store);
        if !path.exists() {
            return Ok(false);
        }
        fs::remove_file(&path).map_err(|error| StoreError::io(path.display().to_string(), error))?;
        files::sync_folder(store)?;
        Ok(true)
    }
}

fn keep(store: &Path, free: u64) -> Result<bool, StoreError> {
    let path = beside(store);
    if fs::metadata(&path).is_ok_and(|file| file.len() == RESERVE) {
        return Ok(true);
    }
    if free < PLENTY {
        return Ok(false);
    }
    // What a crash left.
    let _ = fs::remove_file(&path);
    let written = files::create(&path).and_then(|mut file| {
        fill(&mut file).map_err(|error| {
            let _ = fs::remove_file(&path);
            StoreError::io(path.display().to_string(), error)
        })
    });
    written.map(|()| true)
}

fn beside(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".reserve");
    name.into()
}

/// Fills the file with what no file system can store in less room.
fn fill(file: &mut File) -> io::Result<()> {
    let mut bytes = blake3::Hasher::new().update(b"thetacrypt: room in reserve").finalize_xof();
    let (mut chunk, mut left) = (vec![0; 1 << 16], RESERVE);
    while left > 0 {
        bytes.fill(&mut chunk);
        file.write_all(&chunk)?;
        left = left.saturating_sub(1 << 16);
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use theta_groups::Secret;

    use super::*;
    use crate::{Options, SealingKey, disk::SimulatedDisk};

    fn key() -> SealingKey {
        SealingKey::key(Secret::new([1; 32]))
    }

    #[test]
    fn there_is_a_reserve_where_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("theta.redb");
        assert!(!keep(&store, PLENTY - 1).unwrap() && !beside(&store).exists());
        assert!(keep(&store, PLENTY).unwrap());
        assert_eq!(fs::metadata(beside(&store)).unwrap().len(), RESERVE);
        assert!(keep(&store, 0).unwrap(), "it is there");
        fs::write(beside(&store), b"what a crash left").unwrap();
        assert!(keep(&store, PLENTY).unwrap());
        assert_eq!(fs::metadata(beside(&store)).unwrap().len(), RESERVE);
        assert!(!Store::create(&store, &key()).unwrap().lacks_room());
        assert!(Store::give_up_reserve(&store).unwrap() && !beside(&store).exists());
        assert!(!Store::give_up_reserve(&store).unwrap(), "it is gone");
    }

    /// How many writes it takes to open a store and to remove its log up to a record, each of which is a few pages at most.
    #[test]
    fn the_reserve_is_more_than_a_removal_needs() {
        let disk = SimulatedDisk::default();
        let store = Store::create_on(disk.backend(), &key(), Options::default()).unwrap();
        for _ in 0..2_000 {
            store.append_audit(vec![7; 1_000]).unwrap();
        }
        drop(store);
        let before = disk.written();
        let store = Store::open_on(disk.backend(), &key(), Options::default()).unwrap();
        store.prune_audit(1_024).unwrap();
        let wrote = disk.written() - before;
        assert!(wrote > 0 && wrote * 2 < RESERVE, "{wrote} bytes");
    }
}
