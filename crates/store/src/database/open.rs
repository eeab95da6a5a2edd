//! Creating and opening.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        RwLock,
        atomic::{AtomicBool, AtomicU64},
    },
};

use rand_core::CryptoRng;
use redb::{Builder, Database, DatabaseError, ReadableDatabase, StorageBackend, StorageError, backends::FileBackend};
use theta_groups::Secret;

use super::ground::Ground;
use super::group_commit::GroupCommit;
use super::{Rows, Settings, Snapshot, Store, Table, Writes, files};
use crate::StoreError;
use crate::codec::{Decoder, encoder};
use crate::incarnation::{Opening, StoreId};
use crate::seal::{Chance, Sealer, SealingKey, Wrapped};

/// The format of stores that this build writes and reads.
const FORMAT: u8 = crate::codec::RECORD_VERSION;
const HEAD_KEY: &[u8] = b"store";
/// The size of the database's page cache, in bytes. What is read often is small; most of a store is a log.
const CACHE_LEN: usize = 8 << 20;

/// How a store is opened.
pub struct Options {
    chance: Chance,
    place: String,
    path: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { chance: Chance::System, place: "the store".to_owned(), path: None }
    }
}

impl core::fmt::Debug for Options {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Options({:?}, {:?})", self.chance, self.place)
    }
}

impl Options {
    /// Takes random bytes from `rng` instead of the operating system, so that a simulation can be repeated.
    #[must_use]
    pub fn with_rng(mut self, rng: impl CryptoRng + Send + 'static) -> Self {
        self.chance = Chance::Seeded(std::sync::Mutex::new(Box::new(rng)));
        self
    }

    /// Sets the name by which errors call a store without a file.
    #[must_use]
    pub fn named(mut self, place: &str) -> Self {
        place.clone_into(&mut self.place);
        self
    }
}

impl Options {
    fn of_file(path: &Path) -> Self {
        Self { place: path.display().to_string(), path: Some(path.to_owned()), ..Self::default() }
    }
}

/// The record in clear: which store this is, and its key, wrapped by the sealing key.
#[derive(Debug)]
struct Head {
    id: StoreId,
    wrapped: Wrapped,
}

impl Head {
    fn encode(&self) -> Secret<Vec<u8>> {
        self.wrapped.encode(encoder(160).raw(&self.id.0)).finish()
    }

    fn decode(record: &[u8], place: &str) -> Result<Self, StoreError> {
        if let Some(&found) = record.first()
            && found != FORMAT
        {
            return Err(StoreError::Format { place: place.to_owned(), found, known: FORMAT });
        }
        let mut decoder = Decoder::new(Table::Head.name(), record)?;
        let head = Self { id: StoreId(decoder.array()?), wrapped: Wrapped::decode(&mut decoder)? };
        decoder.finish(head)
    }
}

impl Store {
    /// Makes a new store in a file that does not exist yet, for its owner alone (mode 0600).
    ///
    /// # Errors
    /// [`StoreError`]: the file exists, the folder is open to others, or the disk fails.
    pub fn create(path: &Path, key: &SealingKey) -> Result<Self, StoreError> {
        Self::create_file_with(path, key, |_| Ok(()))
    }

    /// Makes a new store in a new file and fills it in the same commit.
    pub(crate) fn create_file_with(
        path: &Path,
        key: &SealingKey,
        fill: impl FnOnce(&mut Writes<'_>) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let file = files::create(path)?;
        let options = Options::of_file(path);
        let created = FileBackend::new(file)
            .map_err(StoreError::database)
            .and_then(|backend| Self::create_with(backend, key, options, fill))
            .and_then(|store| files::sync_folder(path).map(|()| store));
        if created.is_err() {
            // The rest of the file would only prevent the next attempt.
            let _ = fs::remove_file(path);
        }
        created
    }

    /// Opens a store.
    ///
    /// # Errors
    /// [`StoreError`]: there is no store, others may use it, another process has it open, the sealing key is not its
    /// own, it is of another release, or it is damaged.
    pub fn open(path: &Path, key: &SealingKey) -> Result<Self, StoreError> {
        let file = files::open(path)?;
        let backend = FileBackend::new(file).map_err(StoreError::database)?;
        Self::open_on(backend, key, Options::of_file(path)).map_err(|error| error.or_full(&path.display().to_string()))
    }

    /// Makes a new store on any storage, which must be empty.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub fn create_on(backend: impl StorageBackend, key: &SealingKey, options: Options) -> Result<Self, StoreError> {
        Self::create_with(backend, key, options, |_| Ok(()))
    }

    /// Makes a new store and fills it in the same commit.
    pub(crate) fn create_with(
        backend: impl StorageBackend,
        key: &SealingKey,
        options: Options,
        fill: impl FnOnce(&mut Writes<'_>) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let Options { chance, place, path } = options;
        if backend.len().map_err(|error| StoreError::io(place.as_str(), error))? != 0 {
            return Err(StoreError::Exists(place));
        }
        let ground = Ground::new(backend, path);
        let database = database(ground.clone(), &place)?;
        let (id, store_key) = (StoreId(chance.array()?), chance.secret()?);
        let wrapped = Wrapped::wrap(&store_key, key, Table::Head.name(), &id.0, &chance)?;
        let sealer = Sealer::new(store_key);
        let opening = Opening::first(&id, chance.array()?);
        let transaction = database.begin_write().map_err(StoreError::database)?;
        let mut rows = Writes { transaction, sealer: &sealer, chance: &chance, changed: false, broken: false };
        rows.put(Table::Head, HEAD_KEY, Head { id, wrapped }.encode())?;
        Settings::add_opening(&mut rows, &opening)?;
        Settings::set_sequence(&mut rows, opening.opened_at)?;
        fill(&mut rows)?;
        rows.transaction.commit().map_err(StoreError::database)?;
        ground.note_head().map_err(|error| StoreError::io(place.as_str(), error))?;
        let sequence = AtomicU64::new(opening.opened_at);
        let (database, group) = (RwLock::new(Some(database)), GroupCommit::default());
        let confirmed = AtomicBool::new(true);
        Ok(Self { database, ground, sealer, chance, place, id, opening, sequence, group, confirmed })
    }

    /// Opens the store on any storage. The whole database is read and its checksums are verified.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(backend: impl StorageBackend, key: &SealingKey, options: Options) -> Result<Self, StoreError> {
        let damaged = StoreError::Damaged(options.place.clone());
        // The database trusts the bookkeeping in the file, and panics where that contradicts itself.
        let opened = catch_unwind(AssertUnwindSafe(|| Self::open_undamaged(backend, key, options)));
        opened.unwrap_or(Err(damaged))
    }

    fn open_undamaged(backend: impl StorageBackend, key: &SealingKey, options: Options) -> Result<Self, StoreError> {
        let Options { chance, place, path } = options;
        if backend.len().map_err(|error| StoreError::io(place.as_str(), error))? == 0 {
            return Err(StoreError::Unfinished(place));
        }
        let ground = Ground::new(backend, path);
        ground.note_head().map_err(|error| StoreError::io(place.as_str(), error))?;
        let database = whole_database(ground.clone(), &place)?;
        let head = read_head(&database, &place)?;
        let store_key = head.wrapped.unwrap(key, Table::Head.name(), &head.id.0, &place)?;
        let sealer = Sealer::new(store_key);
        let transaction = database.begin_write().map_err(StoreError::database)?;
        let mut rows = Writes { transaction, sealer: &sealer, chance: &chance, changed: false, broken: false };
        let lost = || StoreError::Record { table: Table::Openings.name(), problem: "the last opening is missing" };
        let last = Settings::last_opening(&rows)?.ok_or_else(lost)?;
        let opened_at = Settings::sequence(&rows)?.saturating_add(1);
        let opening = last.next(&head.id, chance.array()?, opened_at);
        Settings::add_opening(&mut rows, &opening)?;
        Settings::set_sequence(&mut rows, opened_at)?;
        rows.transaction.commit().map_err(StoreError::database)?;
        ground.note_head().map_err(|error| StoreError::io(place.as_str(), error))?;
        let sequence = AtomicU64::new(opened_at);
        let (database, group) = (RwLock::new(Some(database)), GroupCommit::default());
        let confirmed = AtomicBool::new(true);
        Ok(Self { database, ground, sealer, chance, place, id: head.id, opening, sequence, group, confirmed })
    }

    /// Wraps the store key under another sealing key; records are not sealed again. A person who has the old sealing
    /// key and an old copy of the file can still open that copy, and perhaps remains of it on the disk. If others know
    /// the old key, restore a backup into a new file, which has a new store key.
    ///
    /// # Errors
    /// [`StoreError::WrongKey`] if `old` does not open the store.
    pub fn rewrap(&self, old: &SealingKey, new: &SealingKey) -> Result<(), StoreError> {
        let head = self.with_database(|database| read_head(database, &self.place))?;
        let store_key = head.wrapped.unwrap(old, Table::Head.name(), &head.id.0, &self.place)?;
        let wrapped = Wrapped::wrap(&store_key, new, Table::Head.name(), &head.id.0, &self.chance)?;
        let head = Head { id: head.id, wrapped };
        self.write(|transaction| transaction.rows.put(Table::Head, HEAD_KEY, head.encode()))
    }
}

fn read_head(database: &Database, place: &str) -> Result<Head, StoreError> {
    // The head is in clear: reading it needs no key.
    let nobody = Sealer::new(Secret::new([0; 32]));
    let snapshot = Snapshot { transaction: database.begin_read().map_err(StoreError::database)?, sealer: &nobody };
    let record = snapshot.row(Table::Head, HEAD_KEY)?.ok_or_else(|| StoreError::Unfinished(place.to_owned()))?;
    Head::decode(record.expose(), place)
}

/// The database on its storage, read as a whole and verified by its checksums.
pub(super) fn whole_database(ground: Ground, place: &str) -> Result<Database, StoreError> {
    let mut database = database(ground, place)?;
    // The database trusts a file that was closed well and does not check its checksums. A page that rotted since then
    // could hide a burnt id, or make the database panic later on.
    match database.check_integrity() {
        Ok(true) => Ok(database),
        Ok(false) | Err(DatabaseError::Storage(StorageError::Corrupted(_))) => {
            Err(StoreError::Damaged(place.to_owned()))
        }
        Err(error) => Err(StoreError::database(error)),
    }
}

fn database(backend: impl StorageBackend, place: &str) -> Result<Database, StoreError> {
    let opened = Builder::new().set_cache_size(CACHE_LEN).create_with_backend(backend);
    opened.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::Locked(place.to_owned()),
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
            StoreError::NotAStore(place.to_owned())
        }
        DatabaseError::Storage(StorageError::Io(error)) => StoreError::io(place, error),
        other => StoreError::database(other),
    })
}
