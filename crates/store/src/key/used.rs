//! Requests that are used up: those of ceremonies that have begun here. What was approved or signed for one of them stands for
//! that one ceremony, and is remembered for longer than it is valid.

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Table};
use crate::{Store, StoreError, Transaction};

/// For how long a used request is remembered after its use, in seconds: 33 days. An approval that was valid at its use is so for
/// 31 days at most; clocks differ.
pub const USED_REMEMBERED: u64 = 33 * 86_400;

impl Store {
    /// Whether the request of this digest was used up here, as far as is remembered.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn is_used(&self, request: &[u8; 32]) -> Result<bool, StoreError> {
        Ok(self.snapshot()?.row(Table::Used, request)?.is_some())
    }
}

impl Transaction<'_> {
    /// Uses up the request of this digest, once or again, and forgets those that nobody can use any more. `now` is in seconds since
    /// 1970; 0 stands for a time that is not known yet: what is used up then is never forgotten.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn use_up(&mut self, request: &[u8; 32], now: u64) -> Result<(), StoreError> {
        // What cannot be read is kept: to remember too much harms nobody.
        self.rows
            .retain(Table::Used, |_, record| decode_until(record).map_or(true, |until| until == 0 || until > now))?;
        if self.rows.row(Table::Used, request)?.is_some() {
            return Ok(());
        }
        let until = if now == 0 { 0 } else { now.saturating_add(USED_REMEMBERED) };
        self.rows.put(Table::Used, request, encoder(8).u64(until).finish())
    }
}

/// Until when a request is remembered; 0 is for ever.
pub(crate) fn decode_until(record: &[u8]) -> Result<u64, StoreError> {
    let mut decoder = Decoder::new(Table::Used.name(), record)?;
    let until = decoder.u64()?;
    decoder.finish(until)
}
