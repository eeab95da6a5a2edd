//! Used requests: those whose ceremonies have begun here. An approval or signature of a request is good for that one
//! ceremony, and the use is remembered for longer than the approval is valid.

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Table};
use crate::{Store, StoreError, Transaction};

/// For how long the use of a request is remembered, in seconds: 33 days. An approval that was valid at its use stays
/// valid for 31 days at most; the rest allows for clocks that differ.
pub const USED_REMEMBERED: u64 = 33 * 86_400;

impl Store {
    /// Whether the request of this digest was used here, as far as is remembered.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn is_used(&self, request: &[u8; 32]) -> Result<bool, StoreError> {
        Ok(self.snapshot()?.row(Table::Used, request)?.is_some())
    }
}

impl Transaction<'_> {
    /// Marks the request of this digest as used, and forgets requests that nobody can use any more. A second use
    /// changes nothing. `now` is in seconds since 1970; 0 means that the time is not known yet, and a request used then
    /// is never forgotten.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn use_up(&mut self, request: &[u8; 32], now: u64) -> Result<(), StoreError> {
        // An unreadable record is kept: remembering too much does no harm.
        self.rows
            .retain(Table::Used, |_, record| decode_until(record).map_or(true, |until| until == 0 || until > now))?;
        if self.rows.row(Table::Used, request)?.is_some() {
            return Ok(());
        }
        let until = if now == 0 { 0 } else { now.saturating_add(USED_REMEMBERED) };
        self.rows.put(Table::Used, request, encoder(8).u64(until).finish())
    }
}

/// The time until which a request is remembered, in seconds since 1970; 0 means for ever.
pub(crate) fn decode_until(record: &[u8]) -> Result<u64, StoreError> {
    let mut decoder = Decoder::new(Table::Used.name(), record)?;
    let until = decoder.u64()?;
    decoder.finish(until)
}
