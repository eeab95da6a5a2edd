//! The open store.

use std::sync::{
    PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use redb::{Database, ReadableDatabase};

use super::ground::Ground;
use super::group_commit::{GroupCommit, Job, Turn};
use super::{Settings, Snapshot, Writes};
use crate::StoreError;
use crate::incarnation::{self, Incarnation, Lineage, Opening, Rollback, StoreId};
use crate::seal::{Chance, Sealer};

/// The store of one node. All methods block until their changes are on the disk; call them from a thread that may wait.
#[derive(Debug)]
pub struct Store {
    /// Absent while a recovery runs, and after one that failed.
    pub(super) database: RwLock<Option<Database>>,
    pub(super) ground: Ground,
    pub(super) sealer: Sealer,
    pub(super) chance: Chance,
    /// The file's path, for errors.
    pub(super) place: String,
    pub(super) id: StoreId,
    pub(super) opening: Opening,
    pub(super) sequence: AtomicU64,
    pub(super) group: GroupCommit,
    /// See [`Store::is_confirmed`].
    pub(super) confirmed: AtomicBool,
}

/// Changes that become durable together or not at all. [`Store::write`] makes it.
pub struct Transaction<'s> {
    pub(crate) rows: Writes<'s>,
    /// The incarnation of the store once this is committed.
    pub(crate) incarnation: Incarnation,
    /// How far the audit log goes, once that was looked up: the index of its next record, and the hash of the last.
    pub(crate) audit_end: Option<(u64, [u8; 32])>,
}

impl core::fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Transaction(for commit {})", self.incarnation.sequence)
    }
}

impl Store {
    /// Makes changes that become durable together before this returns, or not at all if `change` fails. One transaction
    /// runs at a time; keep it short.
    ///
    /// # Errors
    /// The error of `change`; [`StoreError`] if the commit fails: then the changes may or may not be durable, which
    /// shows when the store is opened again or [recovers](Store::recover).
    pub fn write<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let _exclusive = self.group.exclusive();
        let mut transaction = self.begin()?;
        let answer = change(&mut transaction)?;
        self.commit(transaction)?;
        Ok(answer)
    }

    /// A change that shares its commit with those of other threads. It must check before it writes: if it fails, it has
    /// written nothing.
    pub(crate) fn write_grouped<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let receiver = self.group.add(change);
        loop {
            match self.group.wait(&receiver) {
                Turn::Answered(answer) => return answer,
                // Dropping the leadership passes it on, also after an error.
                Turn::Lead(jobs, _leadership) => self.commit_all(jobs)?,
            }
        }
    }

    /// Makes the changes in one commit and answers all of them.
    fn commit_all(&self, jobs: Vec<Job>) -> Result<(), StoreError> {
        let _exclusive = self.group.exclusive();
        let mut transaction = self.begin()?;
        let answers: Vec<_> = jobs.into_iter().map(|job| job(&mut transaction)).collect();
        let committed = self.commit(transaction);
        answers.into_iter().for_each(|deliver| deliver(committed.clone()));
        Ok(())
    }

    fn begin(&self) -> Result<Transaction<'_>, StoreError> {
        // A commit from a stale memory image would overwrite what is in the file.
        // (If the file cannot be read, the write reports it.)
        if matches!(self.ground.is_continued(), Ok(false)) {
            self.ground.set_failed();
            return Err(StoreError::NotContinued(self.place.clone()));
        }
        let transaction = self.with_database(|database| database.begin_write().map_err(StoreError::database))?;
        let rows = Writes { transaction, sealer: &self.sealer, chance: &self.chance, changed: false, broken: false };
        let sequence = self.sequence.load(Ordering::Acquire).saturating_add(1);
        Ok(Transaction { rows, incarnation: Incarnation { sequence, ..self.incarnation() }, audit_end: None })
    }

    /// Makes the changes durable, if there are any.
    fn commit(&self, transaction: Transaction<'_>) -> Result<(), StoreError> {
        let Transaction { mut rows, incarnation, .. } = transaction;
        if rows.broken {
            return Err(StoreError::database(redb::StorageError::PreviousIo));
        }
        if !rows.changed {
            return Ok(());
        }
        Settings::set_sequence(&mut rows, incarnation.sequence)?;
        rows.transaction.commit().map_err(StoreError::database)?;
        self.sequence.store(incarnation.sequence, Ordering::Release);
        Ok(())
    }

    /// The state of the store now, without later commits.
    pub(crate) fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        let transaction = self.with_database(|database| database.begin_read().map_err(StoreError::database))?;
        Ok(Snapshot { transaction, sealer: &self.sealer })
    }

    pub(crate) const fn chance(&self) -> &Chance {
        &self.chance
    }

    /// The file's path, or the name of a store without a file.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The store's id.
    #[must_use]
    pub const fn id(&self) -> StoreId {
        self.id
    }

    /// The incarnation of the store (which store, which opening, how many commits): this is what peers remember.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        Incarnation { store_id: self.id, opening: self.opening, sequence: self.sequence.load(Ordering::Acquire) }
    }

    /// Whether this store may be taken for the latest of all its copies, so that it may decide what must be decided
    /// only once. It is, until the caller that asks the peers (a custodian) says otherwise with
    /// [`Store::set_confirmed`]. Only this process knows it; it is not on the disk.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.confirmed.load(Ordering::Acquire)
    }

    /// Sets what the peers say of this store: see [`Store::is_confirmed`].
    pub fn set_confirmed(&self, confirmed: bool) {
        self.confirmed.store(confirmed, Ordering::Release);
    }

    /// The store that this one was restored from.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn restored_from(&self) -> Result<Option<StoreId>, StoreError> {
        Settings::restored_from(&self.snapshot()?)
    }

    /// Compares what a peer remembers of this store with its history. Before the node does anything that must not be
    /// done twice, it has to check the memory of enough peers that one of them is honest.
    ///
    /// # Errors
    /// `Ok(Err(rollback))` if this store does not continue what the peer saw; [`StoreError`] if the history cannot be
    /// read.
    pub fn check_remembered(&self, remembered: &Incarnation) -> Result<Result<(), Rollback>, StoreError> {
        let openings = Settings::openings(&self.snapshot()?, remembered.opening.generation, 2)?;
        Ok(incarnation::check_remembered(remembered, &openings, &self.incarnation()))
    }

    /// The links that show a peer how the store came from the remembered opening to the present one; `None` if the peer
    /// remembers the present one, or another store.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn lineage(&self, remembered: &Incarnation) -> Result<Option<Lineage>, StoreError> {
        let claim = remembered.opening;
        if remembered.store_id != self.id || claim == self.opening {
            return Ok(None);
        }
        let from = claim.generation.min(self.opening.generation);
        let openings = Settings::openings(&self.snapshot()?, from, usize::MAX)?;
        Ok(Lineage::of(claim.link, &openings, self.incarnation()))
    }

    /// Gives unused space back to the file system. No other thread may use the store meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub fn compact(&mut self) -> Result<(), StoreError> {
        match self.database_mut().as_mut() {
            Some(database) => database.compact().map(drop).map_err(StoreError::database),
            None => Err(StoreError::Failed),
        }
    }

    /// Calls `f` with the database; transactions that it begins outlive this call.
    pub(super) fn with_database<T>(
        &self,
        ask: impl FnOnce(&Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // The database is only exchanged as a whole, so a thread that panicked left it intact.
        let database: RwLockReadGuard<'_, _> = self.database.read().unwrap_or_else(PoisonError::into_inner);
        database.as_ref().map_or(Err(StoreError::Failed), ask)
    }

    pub(super) fn database_mut(&self) -> RwLockWriteGuard<'_, Option<Database>> {
        self.database.write().unwrap_or_else(PoisonError::into_inner)
    }
}
