//! Backup and restore.
//!
//! A backup has, as of one moment, the keys, the shares, the secret of the node's identity in ceremonies, the signing
//! rules' state, the generations of keys' states, the used requests, the quarantines and the audit log. A store restored from it does
//! not know what happened since, so it refuses whatever may have happened: it has a new store id, it refuses all days
//! before one that a person names, and every signing rule begins above a slot that a person names.

mod container;
mod contents;

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    path::Path,
};

use theta_groups::Secret;
use theta_names::{Epoch, KeyName, Version};

use crate::audit::{AuditChain, AuditRecord};
use crate::database::{Settings, Table, Writes};
use crate::identity::decode_identity;
use crate::key::{
    EpochRecord, KeyRecord, VersionRecord, decode_generation, decode_share, decode_until, parse_share_key,
};
use crate::slots::{decode_digest, decode_mark, mark_record};
use crate::{Frozen, Incarnation, Options, Quarantined, SealingKey, SlotRule, Store, StoreError};

use container::{Opened, Sealed};
use contents::Origin;

/// The bounds below which a restored store refuses. There is no default: only a person can know what happened since the
/// backup.
#[derive(Clone, Debug)]
pub struct RestoreFloors {
    /// Ids of days before this one are refused, in days since 1970: tomorrow, unless the store was out of use for
    /// longer. Days of ids that the backup itself knows are refused in any case.
    pub burn_day: u32,
    /// The highest slot of each rule that may have been signed: slots up to it are refused.
    pub slots: BTreeMap<SlotRule, u64>,
    /// The same for all other rules, future ones included.
    pub other_slots: u64,
}

/// What was written into a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackedUp {
    /// How many keys.
    pub keys: u64,
    /// How many records the audit log has, those included that were removed before.
    pub audit_records: u64,
}

/// What is in a backup.
#[derive(Clone, Debug)]
pub struct BackupReport {
    /// The store at the time of the backup.
    pub origin: Incarnation,
    /// The keys.
    pub keys: Vec<KeyRecord>,
    /// How many shares there are.
    pub shares: usize,
    /// Versions and epochs whose share does not belong to the public data.
    pub unfit: Vec<(KeyName, Version, Epoch)>,
    /// How many records the audit log ever had, including removed ones; the chain of those in the backup is whole.
    pub audit_records: u64,
}

impl Store {
    /// Writes a backup of this moment, sealed by `key`, which may differ from the store's. The store remains in use
    /// meanwhile.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read or `writer` fails.
    pub fn backup(&self, writer: impl Write, key: &SealingKey) -> Result<BackedUp, StoreError> {
        let snapshot = self.snapshot()?;
        let origin = Origin::read(&snapshot, self.incarnation())?;
        let sealed = Sealed::new(writer, self.id(), key, self.chance())?;
        contents::write(sealed, &snapshot, &origin)
    }

    /// Makes a new store in a new file from a backup that `backup_key` opens, sealed by `key`.
    ///
    /// # Errors
    /// [`StoreError`]: the file exists, or the backup is damaged or cut short; then no file remains.
    pub fn restore(
        reader: impl Read,
        backup_key: &SealingKey,
        path: &Path,
        key: &SealingKey,
        floors: &RestoreFloors,
    ) -> Result<Self, StoreError> {
        let opened = Opened::new(reader, backup_key)?;
        Self::create_file_with(path, key, |rows| fill(rows, opened, floors))
    }

    /// As [`Store::restore`], on any storage, which must be empty.
    ///
    /// # Errors
    /// As [`Store::restore`].
    pub fn restore_on(
        reader: impl Read,
        backup_key: &SealingKey,
        backend: impl redb::StorageBackend,
        key: &SealingKey,
        floors: &RestoreFloors,
        options: Options,
    ) -> Result<Self, StoreError> {
        let opened = Opened::new(reader, backup_key)?;
        Self::create_with(backend, key, options, |rows| fill(rows, opened, floors))
    }
}

fn damaged(table: Table) -> StoreError {
    StoreError::Record { table: table.name(), problem: "a key of the table is not one" }
}

/// Writes the contents of the backup into a new store, with these bounds.
fn fill<R: Read>(rows: &mut Writes<'_>, opened: Opened<R>, floors: &RestoreFloors) -> Result<(), StoreError> {
    let mut rules: BTreeMap<SlotRule, u64> = floors.slots.keys().map(|rule| (rule.clone(), 0)).collect();
    let mut check = Check::default();
    let origin = contents::read(opened, &mut |table, key, record| {
        check.row(table, &key, &record, &mut |_, _, _, _| true)?;
        match table {
            Table::Marks => {
                let rule = SlotRule::parse(&key).ok_or_else(|| damaged(table))?;
                let mark = rules.entry(rule).or_default();
                *mark = (*mark).max(decode_mark(record.expose())?);
            }
            Table::Slots => {
                let (prefix, _) = key.split_last_chunk::<8>().ok_or_else(|| damaged(table))?;
                rules.entry(SlotRule::parse(prefix).ok_or_else(|| damaged(table))?).or_default();
            }
            _ => {}
        }
        rows.put(table, &key, record)
    })?;
    if let Some(log) = &check.log {
        Settings::set_audit_start(rows, log.start.len(), log.start.head())?;
    }
    let inherited = origin.slot_floor.unwrap_or(0);
    for (rule, mark) in &mut rules {
        let floor = floors.slots.get(rule).copied().unwrap_or(floors.other_slots);
        *mark = (*mark).max(floor).max(inherited);
        rows.put(Table::Marks, &rule.prefix(), mark_record(*mark))?;
    }
    rows.retain(Table::Slots, |key, _| {
        let parts = key.split_last_chunk().map(|(prefix, slot)| (SlotRule::parse(prefix), u64::from_be_bytes(*slot)));
        let Some((Some(rule), slot)) = parts else { return true };
        rules.get(&rule).is_none_or(|mark| slot > *mark)
    })?;
    let other_slots = floors.other_slots.max(inherited);
    Settings::set_slot_floor(rows, other_slots)?;
    Settings::set_watermark(rows, floors.burn_day.max(origin.next_day))?;
    Settings::set_restored_from(rows, origin.incarnation.store_id)
}

/// Reads a whole backup and checks it: every record decodes, the audit log is whole, and `fits` accepts each share, for
/// which it gets the key, version and epoch with their public data.
///
/// # Errors
/// [`StoreError`] if the backup is damaged, cut short, or of another release.
pub fn check_backup(reader: impl Read, key: &SealingKey, fits: &mut Fits<'_>) -> Result<BackupReport, StoreError> {
    let mut check = Check::default();
    let origin =
        contents::read(Opened::new(reader, key)?, &mut |table, key, record| check.row(table, &key, &record, fits))?;
    let Check { keys, shares, unfit, log } = check;
    let (keys, audit_records) = (keys.into_values().collect(), log.map_or(0, |log| log.end.len()));
    Ok(BackupReport { origin: origin.incarnation, keys, shares, unfit, audit_records })
}

/// What was read so far. Keys come before shares.
#[derive(Default)]
struct Check {
    keys: BTreeMap<KeyName, KeyRecord>,
    shares: usize,
    unfit: Vec<(KeyName, Version, Epoch)>,
    log: Option<Log>,
}

/// The audit log in the backup, from its first record (earlier ones may have been removed) to the last that was read.
struct Log {
    start: AuditChain,
    end: AuditChain,
}

/// Whether a share fits the public data of its key, version and epoch.
pub type Fits<'a> = dyn FnMut(&KeyRecord, &VersionRecord, &EpochRecord, &Secret<Vec<u8>>) -> bool + 'a;

impl Check {
    fn row(
        &mut self,
        table: Table,
        key: &[u8],
        record: &Secret<Vec<u8>>,
        fits: &mut Fits<'_>,
    ) -> Result<(), StoreError> {
        let record = record.expose();
        match table {
            Table::Keys => {
                let record = KeyRecord::decode(record)?;
                self.keys.insert(record.name.clone(), record);
            }
            Table::Shares => self.share(key, &decode_share(record)?, fits)?,
            Table::Slots => {
                decode_digest(record)?;
            }
            Table::Marks => {
                decode_mark(record)?;
            }
            Table::Audit => {
                let broken = StoreError::Record { table: table.name(), problem: "the log is not whole" };
                let record = AuditRecord::decode(key, record)?;
                let start = AuditChain::before(&record);
                self.log.get_or_insert(Log { start, end: start }).end.check(&record).map_err(|_| broken)?;
            }
            Table::Identity => {
                decode_identity(key, record)?;
            }
            Table::Generations => {
                decode_generation(record)?;
            }
            Table::Frozen => {
                Frozen::decode(key, record)?;
            }
            Table::Quarantined => {
                Quarantined::decode(record)?;
            }
            Table::Used => {
                decode_until(record)?;
            }
            _ => return Err(damaged(table)),
        }
        Ok(())
    }

    fn share(&mut self, key: &[u8], share: &Secret<Vec<u8>>, fits: &mut Fits<'_>) -> Result<(), StoreError> {
        let (name, version, epoch) = parse_share_key(key).ok_or_else(|| damaged(Table::Shares))?;
        let record = self.keys.get(&name);
        let known = record.and_then(|key| {
            let version = key.version(version)?;
            Some((key, version, version.epoch(epoch)?))
        });
        let (key_record, version_record, epoch_record) =
            known.ok_or(StoreError::Record { table: Table::Shares.name(), problem: "a share is of no key" })?;
        if !fits(key_record, version_record, epoch_record, share) {
            self.unfit.push((name, version, epoch));
        }
        self.shares += 1;
        Ok(())
    }
}
