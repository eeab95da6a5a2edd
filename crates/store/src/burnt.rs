//! Ids of what must never happen twice: instances, nonces, presignatures.
//!
//! An id is *burnt* before anything that it stands for leaves the node. An id is remembered until its day is below the
//! watermark; from then on its day is refused, so a forgotten id stays refused for ever. The id must be derived from
//! its day (the day of a request, or on which a nonce was drawn), and that day is never the day of the burning:
//! otherwise an id could come back under another day after it was forgotten. While an id is remembered, it is refused
//! under every day.

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Settings, Table};
use crate::{Incarnation, Store, StoreError, Transaction};

/// The id of something that may happen once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BurnId {
    /// The day from which the id is derived, in days since 1970.
    pub day: u32,
    /// A digest of everything that identifies it, its day included.
    pub id: [u8; 32],
}

/// Proof that this call and no other burnt an id, durably. It cannot be copied; what must happen once takes it by
/// value.
#[derive(Debug, PartialEq, Eq)]
pub struct Fresh {
    id: BurnId,
    incarnation: Incarnation,
}

impl Fresh {
    /// The id that was burnt.
    #[must_use]
    pub const fn id(&self) -> &BurnId {
        &self.id
    }

    /// The incarnation of the store at the burning. Send it along with what the id allows, so that peers remember it
    /// ([`crate::Witness`]).
    #[must_use]
    pub const fn incarnation(&self) -> &Incarnation {
        &self.incarnation
    }
}

/// Why an id is not fresh.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BurnError {
    /// The id was burnt before.
    #[error("this was used before and is never used again")]
    AlreadyBurnt,
    /// The id's day is so old that its ids have been forgotten.
    #[error("day {day} is before day {watermark}, and what is so old is refused")]
    BelowWatermark {
        /// The id's day.
        day: u32,
        /// The first day that is not refused.
        watermark: u32,
    },
    /// An error of the store: the id must be taken for burnt.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Burns an id. When this returns it is on the disk; calls of many threads share one commit.
    ///
    /// # Errors
    /// [`BurnError`]: then what the id stands for must not happen.
    pub fn burn(&self, id: BurnId) -> Result<Fresh, BurnError> {
        self.write_grouped(move |transaction| transaction.burn(id))?
    }

    /// Burns many ids in one commit; each succeeds or fails on its own.
    ///
    /// # Errors
    /// [`StoreError`] if none has an answer; otherwise each id has its own.
    pub fn burn_all(&self, ids: Vec<BurnId>) -> Result<Vec<Result<Fresh, BurnError>>, StoreError> {
        self.write_grouped(move |transaction| ids.into_iter().map(|id| transaction.burn(id)).collect())
    }

    /// The first day that is not refused.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn burn_watermark(&self) -> Result<u32, StoreError> {
        Settings::watermark(&self.snapshot()?)
    }
}

impl Transaction<'_> {
    /// Burns an id. [`Fresh`] is valid only once this transaction is committed.
    ///
    /// # Errors
    /// [`BurnError`]: then what the id stands for must not happen.
    pub fn burn(&mut self, id: BurnId) -> Result<Fresh, BurnError> {
        let watermark = Settings::watermark(&self.rows)?;
        if id.day < watermark {
            return Err(BurnError::BelowWatermark { day: id.day, watermark });
        }
        if self.rows.row(Table::Burnt, &id.id)?.is_some() {
            return Err(BurnError::AlreadyBurnt);
        }
        self.rows.put(Table::Burnt, &id.id, encoder(4).u32(id.day).finish())?;
        Ok(Fresh { id, incarnation: self.incarnation })
    }

    /// Refuses all ids of days before `day` from now on, and forgets at most `most` of them: of ids that begin with their
    /// day, the oldest. Returns whether there may be more to forget. A watermark below the present one does not change it:
    /// it never falls.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn raise_burn_watermark(&mut self, day: u32, most: usize) -> Result<bool, StoreError> {
        let watermark = Settings::watermark(&self.rows)?.max(day);
        Settings::set_watermark(&mut self.rows, watermark)?;
        let mut old = Vec::new();
        self.rows.visit(Table::Burnt, &[], &[], &mut |id, record| {
            // An unreadable record is kept: keeping an id does no harm.
            let is_old = decode_day(record.expose()).is_ok_and(|burnt| burnt < watermark);
            old.extend(is_old.then(|| id.to_vec()));
            Ok(is_old && old.len() < most)
        })?;
        old.iter().try_for_each(|id| self.rows.remove(Table::Burnt, id))?;
        Ok(old.len() == most)
    }
}

/// The day of a burnt id.
pub(crate) fn decode_day(record: &[u8]) -> Result<u32, StoreError> {
    let mut decoder = Decoder::new(Table::Burnt.name(), record)?;
    let day = decoder.u32()?;
    decoder.finish(day)
}
