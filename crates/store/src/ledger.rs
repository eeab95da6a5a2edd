//! The group's ledger as this node has it, and what this node has said about the entry that comes next.

use theta_groups::Secret;

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Settings, Table};
use crate::{Store, StoreError, Transaction};

/// The longest entry or vote, in bytes.
const MOST_RECORD: usize = 1 << 22;

fn record(bytes: &[u8]) -> Secret<Vec<u8>> {
    encoder(bytes.len().saturating_add(4)).bytes(bytes).finish()
}

fn content(table: Table, record: &Secret<Vec<u8>>) -> Result<Vec<u8>, StoreError> {
    let mut decoder = Decoder::new(table.name(), record.expose())?;
    let bytes = decoder.bytes(MOST_RECORD)?.to_vec();
    decoder.finish(bytes)
}

impl Store {
    /// Which ledger the entries are of.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn ledger_id(&self) -> Result<Option<[u8; 32]>, StoreError> {
        Settings::ledger_id(&self.snapshot()?)
    }

    /// Whether this node may have said in the ledger what the store does not know.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn lacks_ledger_votes(&self) -> Result<bool, StoreError> {
        Settings::lacks_ledger_votes(&self.snapshot()?)
    }

    /// The warrants that served when this node stopped, as they were given to [`Transaction::set_ledger_warrants`].
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn ledger_warrants(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        Settings::ledger_warrants(&self.snapshot()?, MOST_RECORD)
    }

    /// The entry of a height.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn ledger_entry(&self, height: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let row = self.snapshot()?.row(Table::Ledger, &height.to_be_bytes())?;
        row.map(|row| content(Table::Ledger, &row)).transpose()
    }

    /// The entries after a height by rising height, until they are so many bytes; one at least if there is one.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn ledger_entries(&self, after: u64, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        let first = after.saturating_add(1).to_be_bytes();
        self.snapshot()?.visit(Table::Ledger, b"", &first, &mut |_, row| {
            let entry = content(Table::Ledger, &row)?;
            bytes = bytes.saturating_add(entry.len());
            let fits = bytes <= most || entries.is_empty();
            if fits {
                entries.push(entry);
            }
            Ok(fits)
        })?;
        Ok(entries)
    }

    /// What this node has said about the next entry, in the order in which it said it.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn ledger_votes(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        let rows = self.snapshot()?.all(Table::LedgerVotes, b"")?;
        rows.iter().map(|(_, row)| content(Table::LedgerVotes, row)).collect()
    }
}

impl Transaction<'_> {
    /// Begins a ledger, and forgets the one before. `lacks_votes` says that this node may have spoken in it already.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn begin_ledger(&mut self, id: &[u8; 32], lacks_votes: bool) -> Result<(), StoreError> {
        self.rows.remove_all(Table::Ledger, b"")?;
        self.rows.remove_all(Table::LedgerVotes, b"")?;
        Settings::set_ledger_warrants(&mut self.rows, &[])?;
        Settings::set_ledger_id(&mut self.rows, id)?;
        self.set_lacks_ledger_votes(lacks_votes)
    }

    /// Notes whether this node may have said in the ledger what the store does not know.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn set_lacks_ledger_votes(&mut self, lacks: bool) -> Result<(), StoreError> {
        Settings::set_lacks_ledger_votes(&mut self.rows, lacks)
    }

    /// Keeps these warrants in place of those before: under them machines vote in the places of others.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn set_ledger_warrants(&mut self, warrants: &[Vec<u8>]) -> Result<(), StoreError> {
        Settings::set_ledger_warrants(&mut self.rows, warrants)
    }

    /// Adds the entry of a height, and forgets what was said about it.
    ///
    /// # Errors
    /// [`StoreError`], also if the height has an entry.
    pub fn append_ledger(&mut self, height: u64, entry: &[u8]) -> Result<(), StoreError> {
        let key = height.to_be_bytes();
        if self.rows.row(Table::Ledger, &key)?.is_some() {
            return Err(StoreError::Record { table: Table::Ledger.name(), problem: "an entry would be replaced" });
        }
        self.rows.put(Table::Ledger, &key, record(entry))?;
        self.rows.remove_all(Table::LedgerVotes, b"").map(drop)
    }

    /// Records what this node is about to say about the next entry.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn record_ledger_vote(&mut self, vote: &[u8]) -> Result<(), StoreError> {
        let last = self.rows.last(Table::LedgerVotes)?.map(|(key, _)| key);
        let last = last.and_then(|key| key.try_into().ok()).map_or(0, u64::from_be_bytes);
        self.rows.put(Table::LedgerVotes, &last.saturating_add(1).to_be_bytes(), record(vote))
    }
}
