//! What must never happen twice: instances, nonces, presignatures.
//!
//! An id is *burnt* before what it stands for leaves the node. Ids are remembered until their day is below the watermark,
//! and from then on refused by their day: to forget an id is to refuse it for ever. The day is part of what the id is made
//! from (the request's date, or the day the nonce was drawn), never that of the burning: else one id would come back under
//! another day when the first was forgotten. While it is remembered, an id is refused under every day.

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Settings, Table};
use crate::{Incarnation, Store, StoreError, Transaction};

/// Something that may happen once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BurnId {
    /// The day that the id commits to, in days since 1970.
    pub day: u32,
    /// A digest of all that makes it what it is.
    pub id: [u8; 32],
}

/// Proof that an id was burnt by this call and no other, durably. It cannot be copied; what must happen once takes it by
/// value.
#[derive(Debug, PartialEq, Eq)]
pub struct Fresh {
    id: BurnId,
    incarnation: Incarnation,
}

impl Fresh {
    /// What was burnt.
    #[must_use]
    pub const fn id(&self) -> &BurnId {
        &self.id
    }

    /// The store when it was: to be sent along with what it allows, so that peers remember it ([`crate::Witness`]).
    #[must_use]
    pub const fn incarnation(&self) -> &Incarnation {
        &self.incarnation
    }
}

/// Why an id is not fresh.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BurnError {
    /// It happened before.
    #[error("this was used before and is never used again")]
    AlreadyBurnt,
    /// So old that what happened then is not remembered.
    #[error("day {day} is before day {watermark}, and what is so old is refused")]
    BelowWatermark {
        /// The id's day.
        day: u32,
        /// The first day that is not refused.
        watermark: u32,
    },
    /// Nothing is known: the id must be taken for burnt.
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

    /// Burns many ids in one commit, each for itself.
    ///
    /// # Errors
    /// [`StoreError`] for all of them; else each has its own answer.
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
    /// Burns an id. [`Fresh`] says so when this transaction is committed: use it only then.
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

    /// Refuses all ids of days before this one from now on, and forgets them. Gives how many were forgotten. A lower
    /// watermark than the present one changes nothing: it never falls.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn raise_burn_watermark(&mut self, day: u32) -> Result<u64, StoreError> {
        if day <= Settings::watermark(&self.rows)? {
            return Ok(0);
        }
        Settings::set_watermark(&mut self.rows, day)?;
        // What cannot be read is kept: to keep an id harms nobody.
        self.rows.retain(Table::Burnt, |_, record| decode_day(record).map_or(true, |burnt| burnt >= day))
    }

    /// The same, for ids that begin with their day, in parts: forgets `most` ids at most, the oldest first, and says whether there may
    /// be more to forget. All of them are refused from now on.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn raise_burn_watermark_in_parts(&mut self, day: u32, most: usize) -> Result<bool, StoreError> {
        let watermark = Settings::watermark(&self.rows)?.max(day);
        Settings::set_watermark(&mut self.rows, watermark)?;
        let mut old = Vec::new();
        self.rows.visit(Table::Burnt, &[], &[], &mut |id, record| {
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
