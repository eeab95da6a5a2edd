//! The audit log: a chain of hashes over records. It only grows, until a person who has kept its beginning elsewhere
//! removes that.
//!
//! The hash of record i covers its index, the hash before it, and its body (BLAKE3 under a context of its own), so the
//! last hash commits to the whole log: a person who keeps it elsewhere detects any later change, and a log that was
//! cut.

use theta_names::AUDIT_CHAIN;

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Settings, Table};
use crate::{Store, StoreError, Transaction};

const TABLE: &str = Table::Audit.name();
/// How many records are removed in one commit, where others wait for theirs.
const PRUNED_AT_ONCE: u64 = 1_024;
/// Of one body, in bytes.
const MOST_BODY: usize = 64 << 10;

/// One record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Counts from 0.
    pub index: u64,
    /// The hash of the record before; zeros before the first.
    pub previous: [u8; 32],
    /// This record's hash.
    pub hash: [u8; 32],
    /// What happened, as the caller that recorded it encoded it.
    pub body: Vec<u8>,
}

/// The index of the record at which a log is no longer whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log is broken at record {0}: it was changed, or records are missing")]
pub struct BrokenChain(pub u64);

/// Checks the records of an exported log one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditChain {
    next: u64,
    head: [u8; 32],
}

impl Default for AuditChain {
    /// The position before the first record.
    fn default() -> Self {
        Self { next: 0, head: [0; 32] }
    }
}

impl AuditChain {
    /// The position before this record; the log before it is taken on trust.
    #[must_use]
    pub const fn before(record: &AuditRecord) -> Self {
        Self { next: record.index, head: record.previous }
    }

    pub(crate) const fn new(next: u64, head: [u8; 32]) -> Self {
        Self { next, head }
    }

    /// The hash of the last record so far, which commits to all of them.
    #[must_use]
    pub const fn head(&self) -> &[u8; 32] {
        &self.head
    }

    /// How many records there were, including removed ones.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.next
    }

    /// Whether there were none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.next == 0
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// [`BrokenChain`] if it does not follow.
    pub fn check(&mut self, record: &AuditRecord) -> Result<(), BrokenChain> {
        let follows = record.index == self.next
            && record.previous == self.head
            && record.hash == hash(record.index, &record.previous, &record.body);
        if !follows {
            return Err(BrokenChain(self.next));
        }
        (self.next, self.head) = (self.next.saturating_add(1), record.hash);
        Ok(())
    }
}

/// The position before the first record that has not been removed.
fn start_of(rows: &impl Rows) -> Result<AuditChain, StoreError> {
    let removed = Settings::audit_start(rows)?;
    Ok(removed.map_or_else(AuditChain::default, |(count, last)| AuditChain::new(count, last)))
}

fn hash(index: u64, previous: &[u8; 32], body: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(AUDIT_CHAIN);
    hasher.update(&index.to_be_bytes()).update(previous).update(body);
    *hasher.finalize().as_bytes()
}

impl AuditRecord {
    pub(crate) fn decode(key: &[u8], record: &[u8]) -> Result<Self, StoreError> {
        let mut decoder = Decoder::new(TABLE, record)?;
        let index = key.try_into().map(u64::from_be_bytes).map_err(|_| decoder.error("a key is not an index"))?;
        let (previous, hash) = (decoder.array()?, decoder.array()?);
        let body = decoder.bytes(MOST_BODY)?.to_vec();
        decoder.finish(Self { index, previous, hash, body })
    }
}

impl Store {
    /// Adds a record to the log, durably before this returns; calls of many threads share one commit.
    ///
    /// # Errors
    /// As [`Transaction::append_audit`].
    pub fn append_audit(&self, body: Vec<u8>) -> Result<AuditRecord, StoreError> {
        self.write_grouped(move |transaction| transaction.append_audit(body))?
    }

    /// The records from `first` on, at most `count`.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn audit(&self, first: u64, count: usize) -> Result<Vec<AuditRecord>, StoreError> {
        let mut records = Vec::new();
        self.snapshot()?.visit(Table::Audit, b"", &first.to_be_bytes(), &mut |key, record| {
            if records.len() < count {
                records.push(AuditRecord::decode(key, record.expose())?);
            }
            Ok(records.len() < count)
        })?;
        Ok(records)
    }

    /// Checks the whole log, from the first record that has not been removed.
    ///
    /// # Errors
    /// `Ok(Err(broken))` with the record at which it is not whole; [`StoreError`] if it cannot be read.
    pub fn check_audit(&self) -> Result<Result<AuditChain, BrokenChain>, StoreError> {
        let snapshot = self.snapshot()?;
        let (mut chain, mut broken) = (start_of(&snapshot)?, None);
        snapshot.visit(Table::Audit, b"", b"", &mut |key, record| {
            broken = chain.check(&AuditRecord::decode(key, record.expose())?).err();
            Ok(broken.is_none())
        })?;
        Ok(broken.map_or(Ok(chain), Err))
    }

    /// Removes the records before this one, but never the last of all, in commits of 1,024 records each, so that
    /// others who write meanwhile wait for one of them at most. Says how many. What was removed when it fails stays removed.
    ///
    /// # Errors
    /// As [`Transaction::prune_audit`].
    pub fn prune_audit(&self, before: u64) -> Result<u64, StoreError> {
        let mut removed = 0_u64;
        loop {
            let next = self.audit_start()?.len().saturating_add(PRUNED_AT_ONCE).min(before);
            let step = self.write(|transaction| transaction.prune_audit(next));
            let step = step.map_err(|error| error.or_full(self.place()))?;
            removed = removed.saturating_add(step);
            if step == 0 || next == before {
                return Ok(removed);
            }
        }
    }

    /// How far the log goes: after its last record.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn audit_end(&self) -> Result<AuditChain, StoreError> {
        let snapshot = self.snapshot()?;
        let Some((key, record)) = snapshot.last(Table::Audit)? else { return start_of(&snapshot) };
        let last = AuditRecord::decode(&key, record.expose())?;
        Ok(AuditChain::new(last.index.saturating_add(1), last.hash))
    }

    /// Where the log begins: after all that was removed.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn audit_start(&self) -> Result<AuditChain, StoreError> {
        start_of(&self.snapshot()?)
    }
}

impl Transaction<'_> {
    /// Adds a record to the log.
    ///
    /// # Errors
    /// [`StoreError`], also if the body is longer than 64 KiB.
    pub fn append_audit(&mut self, body: Vec<u8>) -> Result<AuditRecord, StoreError> {
        if body.len() > MOST_BODY {
            return Err(StoreError::Record { table: TABLE, problem: "a record is longer than 64 KiB" });
        }
        let end = self.audit_end()?;
        let (index, previous) = (end.next, end.head);
        let hash = hash(index, &previous, &body);
        let encoded = encoder(72 + body.len()).raw(&previous).raw(&hash).bytes(&body).finish();
        self.rows.put(Table::Audit, &index.to_be_bytes(), encoded)?;
        self.audit_end = Some((index.saturating_add(1), hash));
        Ok(AuditRecord { index, previous, hash, body })
    }

    /// How far the log goes with what this transaction has added: its last record is looked up once, however many are added.
    fn audit_end(&mut self) -> Result<AuditChain, StoreError> {
        if let Some((next, head)) = self.audit_end {
            return Ok(AuditChain::new(next, head));
        }
        let last = self.rows.last(Table::Audit)?;
        let last = last.map(|(key, record)| AuditRecord::decode(&key, record.expose())).transpose()?;
        let end =
            last.map_or_else(AuditChain::default, |last| AuditChain::new(last.index.saturating_add(1), last.hash));
        self.audit_end = Some((end.next, end.head));
        Ok(end)
    }

    /// How many records there were, including removed ones: the index of the next.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn audit_len(&mut self) -> Result<u64, StoreError> {
        Ok(self.audit_end()?.next)
    }

    /// Removes the records before this index, but never the last of all, to which the next one is linked. Returns how
    /// many.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read or written.
    pub fn prune_audit(&mut self, before: u64) -> Result<u64, StoreError> {
        let Some((last, _)) = self.rows.last(Table::Audit)? else { return Ok(0) };
        let first = before.to_be_bytes().as_slice().min(last.as_slice()).to_vec();
        let Some(record) = self.rows.row(Table::Audit, &first)? else { return Ok(0) };
        let start = AuditChain::before(&AuditRecord::decode(&first, record.expose())?);
        Settings::set_audit_start(&mut self.rows, start.len(), start.head())?;
        self.rows.remove_below(Table::Audit, &first)
    }
}
