//! Used requests: those whose ceremonies have begun here. An approval or signature of a request is good for that one
//! ceremony, and the use is remembered for longer than the approval is valid.

use crate::codec::{Decoder, encoder};
use crate::database::{Rows as _, Table};
use crate::{Store, StoreError, Transaction};

/// For how long the use of a request is remembered, in seconds: 33 days. An approval that was valid at its use stays
/// valid for 31 days at most; the rest allows for clocks that differ.
pub const USED_REMEMBERED: u64 = 33 * 86_400;

/// How many remembered requests each use looks at.
const LOOKED_AT: usize = 16;

impl Store {
    /// Whether the request of this digest was used here, as far as is remembered.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn is_used(&self, request: &[u8; 32]) -> Result<bool, StoreError> {
        Ok(self.snapshot()?.row(Table::Used, request)?.is_some())
    }

    /// When the request of this digest was used, in seconds since 1970, 0 if the time was not known then; `None` if it was not.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn used_at(&self, request: &[u8; 32]) -> Result<Option<u64>, StoreError> {
        let row = self.snapshot()?.row(Table::Used, request)?;
        let at = |until: u64| until.saturating_sub(USED_REMEMBERED);
        row.map(|record| decode_until(record.expose()).map(at)).transpose()
    }
}

impl Transaction<'_> {
    /// Marks the request of this digest as used, and forgets some that nobody can use any more: of the sixteen after this one, in
    /// the order of their digests, which is an order by chance. So each use costs the same however many are remembered, and those that
    /// have ended are few: more are looked at than come. A second use changes nothing. `now` is in seconds since 1970; 0 means that the time is not known yet, and a request used then
    /// is never forgotten.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn use_up(&mut self, request: &[u8; 32], now: u64) -> Result<(), StoreError> {
        self.forget_some(request, now)?;
        if self.rows.row(Table::Used, request)?.is_some() {
            return Ok(());
        }
        self.put_used(request, now)
    }

    /// The same, and it counts as used now if it was used before.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn use_up_again(&mut self, request: &[u8; 32], now: u64) -> Result<(), StoreError> {
        self.forget_some(request, now)?;
        self.put_used(request, now)
    }

    fn put_used(&mut self, request: &[u8; 32], now: u64) -> Result<(), StoreError> {
        let until = if now == 0 { 0 } else { now.saturating_add(USED_REMEMBERED) };
        self.rows.put(Table::Used, request, encoder(8).u64(until).finish())
    }

    /// Forgets some that nobody can use any more, of those behind this one.
    fn forget_some(&mut self, request: &[u8; 32], now: u64) -> Result<(), StoreError> {
        let zero = [0; 32];
        let mut looked_at = Vec::new();
        // Behind the last one come the first.
        for from in [request, &zero] {
            self.rows.visit(Table::Used, &[], from, &mut |digest, record| {
                // An unreadable record is kept: remembering too much does no harm.
                let is_over = decode_until(record.expose()).is_ok_and(|until| until != 0 && until <= now);
                looked_at.push((digest.to_vec(), is_over));
                Ok(looked_at.len() < LOOKED_AT)
            })?;
            if looked_at.len() >= LOOKED_AT {
                break;
            }
        }
        for (digest, _) in looked_at.iter().filter(|(_, is_over)| *is_over) {
            self.rows.remove(Table::Used, digest)?;
        }
        Ok(())
    }
}

/// The time until which a request is remembered, in seconds since 1970; 0 means for ever.
pub(crate) fn decode_until(record: &[u8]) -> Result<u64, StoreError> {
    let mut decoder = Decoder::new(Table::Used.name(), record)?;
    let until = decoder.u64()?;
    decoder.finish(until)
}
