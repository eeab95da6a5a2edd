//! Recovery from a failure of the disk: the same store is opened again in place.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Acquire, Release};

use redb::{Database, ReadableDatabase};

use super::open::whole_database;
use super::{Settings, Snapshot, Store};
use crate::StoreError;

impl Store {
    /// Whether the disk failed, so that nothing can be read or written until [`Store::recover`] succeeds.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.ground.has_failed()
    }

    /// Bytes that are free for the store on its file system; `None` where that is not known.
    #[must_use]
    pub fn free_space(&self) -> Option<u64> {
        self.ground.free_space()
    }

    /// The store's file, if it is in one.
    pub(super) fn path(&self) -> Option<&std::path::Path> {
        self.ground.path()
    }

    /// Opens the database again after a failure of the disk, if the disk works again, for example because there is
    /// space. Without a failure it does nothing. It reads the whole file, and after a failed sync it writes the file
    /// once more: call it once a second at most.
    ///
    /// The store is the same afterwards, in the same opening: it has everything that was committed, and all or nothing
    /// of the commit that failed.
    ///
    /// # Errors
    /// [`StoreError`] if the disk does not work yet, or its content is not what this process left there.
    pub fn recover(&self) -> Result<(), StoreError> {
        if !self.ground.has_failed() {
            return Ok(());
        }
        // No other thread writes meanwhile, and none begins to read.
        let _exclusive = self.group.exclusive();
        let mut place = self.database_mut();
        if place.is_some() && !self.ground.has_failed() {
            return Ok(());
        }
        drop(place.take());
        self.ground.restore().map_err(|error| StoreError::io(self.place.as_str(), error))?;
        // Whatever is there now is judged by the last opening and commit that it records.
        self.ground.note_head().map_err(|error| StoreError::io(self.place.as_str(), error))?;
        let damaged = StoreError::Damaged(self.place.clone());
        let opened = catch_unwind(AssertUnwindSafe(|| self.open_again())).unwrap_or(Err(damaged));
        match opened {
            Ok((database, sequence)) => {
                self.sequence.store(sequence, Release);
                *place = Some(database);
                Ok(())
            }
            Err(error) => {
                self.ground.set_failed();
                Err(error)
            }
        }
    }

    /// The database and its last commit, if they continue what this process did.
    fn open_again(&self) -> Result<(Database, u64), StoreError> {
        let database = whole_database(self.ground.clone(), &self.place)?;
        let transaction = database.begin_read().map_err(StoreError::database)?;
        let snapshot = Snapshot { transaction, sealer: &self.sealer };
        let (opening, sequence) = (Settings::last_opening(&snapshot)?, Settings::sequence(&snapshot)?);
        // The commit that failed may be there; no other can have followed it.
        let known = self.sequence.load(Acquire);
        let continues = opening == Some(self.opening) && (known..=known.saturating_add(1)).contains(&sequence);
        drop(snapshot);
        if !continues {
            return Err(StoreError::NotContinued(self.place.clone()));
        }
        Ok((database, sequence))
    }
}

#[cfg(test)]
mod tests {
    use theta_groups::Secret;

    use crate::{BurnError, BurnId, SealingKey, Store, StoreError};

    /// A real file stays locked while the database is exchanged, and the store goes on.
    #[test]
    fn a_file_stays_ours_and_tells_how_much_room_there_is() {
        let key = SealingKey::key(Secret::new([7; 32]));
        let burnt = |id| BurnId { day: 1, id: [id; 32] };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("theta.redb");
        let store = Store::create(&path, &key).unwrap();
        assert!(store.free_space().unwrap() > 0);
        store.burn(burnt(1)).unwrap();
        store.ground.set_failed();
        store.recover().unwrap();
        assert!(matches!(Store::open(&path, &key), Err(StoreError::Locked(_))));
        assert!(matches!(store.burn(burnt(1)), Err(BurnError::AlreadyBurnt)));
        store.burn(burnt(2)).unwrap();
        drop(store);
        let store = Store::open(&path, &key).unwrap();
        assert!(matches!(store.burn(burnt(2)), Err(BurnError::AlreadyBurnt)));
    }
}
