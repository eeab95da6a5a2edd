//! Reading and writing records, which are sealed if their table is.

use core::ops::Bound;

use redb::{ReadTransaction, ReadableTable, TableError, TableHandle as _, WriteTransaction};
use theta_groups::Secret;

use super::Table;
use crate::StoreError;
use crate::seal::{Chance, Sealer, Unsealed};

/// A record's key and the record.
pub(crate) type Row = (Vec<u8>, Secret<Vec<u8>>);

/// Called with each record; returns whether it wants the next one.
pub(crate) type Visit<'a> = dyn FnMut(&[u8], Secret<Vec<u8>>) -> Result<bool, StoreError> + 'a;

/// A source of records: a snapshot, or a transaction under way.
pub(crate) trait Rows {
    /// The record of this key.
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<Secret<Vec<u8>>>, StoreError>;

    /// Shows `visit` all records whose keys begin with `prefix` and are not below `from`, in ascending order, until it
    /// returns `false`.
    fn visit(&self, table: Table, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// The record of the highest key.
    fn last(&self, table: Table) -> Result<Option<Row>, StoreError>;

    /// All records whose keys begin with `prefix`.
    fn all(&self, table: Table, prefix: &[u8]) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        self.visit(table, prefix, prefix, &mut |key, record| {
            rows.push((key.to_vec(), record));
            Ok(true)
        })?;
        Ok(rows)
    }
}

/// The state of the store at one moment.
pub(crate) struct Snapshot<'s> {
    pub(super) transaction: ReadTransaction,
    pub(super) sealer: &'s Sealer,
}

/// A transaction that writes.
pub(crate) struct Writes<'s> {
    pub(super) transaction: WriteTransaction,
    pub(super) sealer: &'s Sealer,
    pub(super) chance: &'s Chance,
    /// Whether there is anything to commit.
    pub(super) changed: bool,
    /// Whether a write failed, so that none of this may be committed.
    pub(super) broken: bool,
}

impl Writes<'_> {
    /// Writes the record, sealed if the table is.
    pub(crate) fn put(&mut self, table: Table, key: &[u8], record: Secret<Vec<u8>>) -> Result<(), StoreError> {
        self.changed = true;
        let done = self.try_put(table, key, record);
        self.broken |= done.is_err();
        done
    }

    fn try_put(&self, table: Table, key: &[u8], record: Secret<Vec<u8>>) -> Result<(), StoreError> {
        let mut rows = self.transaction.open_table(table.definition()).map_err(StoreError::database)?;
        if table.is_sealed() {
            let sealed = self.sealer.seal(table.name(), key, record, self.chance)?;
            rows.insert(key, sealed.as_slice()).map_err(StoreError::database)?;
        } else {
            rows.insert(key, record.expose().as_slice()).map_err(StoreError::database)?;
        }
        Ok(())
    }

    /// Removes the record, if it is there.
    pub(crate) fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        self.changed = true;
        let done = self.try_remove(table, key);
        self.broken |= done.is_err();
        done
    }

    fn try_remove(&self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        let mut rows = self.transaction.open_table(table.definition()).map_err(StoreError::database)?;
        rows.remove(key).map_err(StoreError::database)?;
        Ok(())
    }

    /// Whether the table was ever opened to write. To look into one that was not makes it, with nothing in it.
    pub(crate) fn has(&self, table: Table) -> Result<bool, StoreError> {
        let mut tables = self.transaction.list_tables().map_err(StoreError::database)?;
        Ok(tables.any(|known| known.name() == table.name()))
    }

    /// Removes the records whose keys begin with `prefix`, and says how many. It reads those alone.
    pub(crate) fn remove_all(&mut self, table: Table, prefix: &[u8]) -> Result<u64, StoreError> {
        let end = successor(prefix);
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.remove_between(table, (Bound::Included(prefix), end))
    }

    /// Removes the records whose keys are below this one, and says how many. It reads those alone.
    pub(crate) fn remove_below(&mut self, table: Table, end: &[u8]) -> Result<u64, StoreError> {
        self.remove_between(table, (Bound::Unbounded, Bound::Excluded(end)))
    }

    fn remove_between(&mut self, table: Table, keys: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<u64, StoreError> {
        self.changed = true;
        let done = remove_between(&self.transaction, table, keys);
        self.broken |= done.is_err();
        done
    }

    /// Removes the records that `keep` does not keep, and says how many. They are seen as they are stored.
    pub(crate) fn retain(
        &mut self,
        table: Table,
        mut keep: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64, StoreError> {
        self.changed = true;
        let mut removed = 0;
        let count = |kept: bool| {
            removed += u64::from(!kept);
            kept
        };
        let done = retain(&self.transaction, table, &mut keep, count);
        self.broken |= done.is_err();
        done.map(|()| removed)
    }
}

fn retain(
    transaction: &WriteTransaction,
    table: Table,
    keep: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    mut count: impl FnMut(bool) -> bool,
) -> Result<(), StoreError> {
    let mut rows = transaction.open_table(table.definition()).map_err(StoreError::database)?;
    rows.retain(|key, value| count(keep(key, value))).map_err(StoreError::database)
}

/// The lowest of the byte strings that are above all that begin with `prefix`; `None` if there is none.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut above = prefix.get(..=last)?.to_vec();
    *above.last_mut()? += 1;
    Some(above)
}

fn remove_between(
    transaction: &WriteTransaction,
    table: Table,
    keys: (Bound<&[u8]>, Bound<&[u8]>),
) -> Result<u64, StoreError> {
    let mut rows = transaction.open_table(table.definition()).map_err(StoreError::database)?;
    let mut removed = 0;
    let remove = |_: &[u8], _: &[u8]| {
        removed += 1;
        false
    };
    rows.retain_in::<&[u8], _>(keys, remove).map_err(StoreError::database)?;
    Ok(removed)
}

fn unseal(sealer: &Sealer, table: Table, key: &[u8], stored: &[u8]) -> Result<Secret<Vec<u8>>, StoreError> {
    if !table.is_sealed() {
        return Ok(Secret::new(stored.to_vec()));
    }
    sealer.open(table.name(), key, stored).map_err(|error| match error {
        Unsealed::Version(found) => StoreError::RecordVersion { table: table.name(), found },
        Unsealed::NotAuthentic => StoreError::NotAuthentic { table: table.name() },
    })
}

fn row(
    rows: &impl ReadableTable<&'static [u8], &'static [u8]>,
    sealer: &Sealer,
    table: Table,
    key: &[u8],
) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
    let stored = rows.get(key).map_err(StoreError::database)?;
    stored.map(|stored| unseal(sealer, table, key, stored.value())).transpose()
}

fn visit(
    rows: &impl ReadableTable<&'static [u8], &'static [u8]>,
    sealer: &Sealer,
    table: Table,
    prefix: &[u8],
    from: &[u8],
    visit: &mut Visit<'_>,
) -> Result<(), StoreError> {
    let from = from.max(prefix);
    for entry in rows.range::<&[u8]>(from..).map_err(StoreError::database)? {
        let (key, stored) = entry.map_err(StoreError::database)?;
        let key = key.value();
        if !key.starts_with(prefix) || !visit(key, unseal(sealer, table, key, stored.value())?)? {
            break;
        }
    }
    Ok(())
}

fn last(
    rows: &impl ReadableTable<&'static [u8], &'static [u8]>,
    sealer: &Sealer,
    table: Table,
) -> Result<Option<Row>, StoreError> {
    let Some((key, stored)) = rows.last().map_err(StoreError::database)? else { return Ok(None) };
    let key = key.value().to_vec();
    let record = unseal(sealer, table, &key, stored.value())?;
    Ok(Some((key, record)))
}

/// A table that does not exist is one to which nothing was ever written.
macro_rules! table_or {
    ($transaction:expr, $table:expr, $empty:expr) => {
        match $transaction.open_table($table.definition()) {
            Ok(rows) => rows,
            Err(TableError::TableDoesNotExist(_)) => return Ok($empty),
            Err(error) => return Err(StoreError::database(error)),
        }
    };
}

impl Rows for Snapshot<'_> {
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
        row(&table_or!(self.transaction, table, None), self.sealer, table, key)
    }

    fn visit(&self, table: Table, prefix: &[u8], from: &[u8], each: &mut Visit<'_>) -> Result<(), StoreError> {
        visit(&table_or!(self.transaction, table, ()), self.sealer, table, prefix, from, each)
    }

    fn last(&self, table: Table) -> Result<Option<Row>, StoreError> {
        last(&table_or!(self.transaction, table, None), self.sealer, table)
    }
}

impl Rows for Writes<'_> {
    fn row(&self, table: Table, key: &[u8]) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
        row(&table_or!(self.transaction, table, None), self.sealer, table, key)
    }

    fn visit(&self, table: Table, prefix: &[u8], from: &[u8], each: &mut Visit<'_>) -> Result<(), StoreError> {
        visit(&table_or!(self.transaction, table, ()), self.sealer, table, prefix, from, each)
    }

    fn last(&self, table: Table) -> Result<Option<Row>, StoreError> {
        last(&table_or!(self.transaction, table, None), self.sealer, table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_is_above_all_that_begin_so_and_below_the_rest() {
        assert_eq!(successor(b"a"), Some(b"b".to_vec()));
        assert_eq!(successor(b"key\0"), Some(b"key\x01".to_vec()));
        assert_eq!(successor(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(successor(&[0xff, 0xff]), None);
        assert_eq!(successor(b""), None);
    }
}
