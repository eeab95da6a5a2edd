//! Records used nonces and presignatures before they sign.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use theta_groups::Transcript;
use theta_protocols::{Supply, Used};
use theta_schemes::keys::KeyId;
use theta_store::{BurnError, BurnId, Store, StoreError};

/// For how many days nonces that a coordinator was given ahead of time are good, and for how long the store remembers
/// which were used: the day on which they were drawn, and this many days after it.
const GOOD_FOR_DAYS: u32 = 1;
/// How many records one commit forgets: the store does nothing else meanwhile.
const FORGOTTEN_AT_ONCE: usize = 1_024;

/// Records in a node's store which nonces and presignatures are used up, before they sign. So a process that is resumed from an image of
/// its memory, while its disk has gone on, signs with none of them again. (Such a process has an outdated view of the
/// store; the store notices that, and burns nothing.)
///
/// Nonces that were never used are not recorded, and the nonces themselves are in memory only.
#[derive(Clone, Debug)]
pub struct Burner {
    store: Arc<Store>,
    /// The day below which everything is refused, as far as this process knows.
    watermark: Arc<AtomicU32>,
    /// Whether records of days below that may be left.
    behind: Arc<AtomicBool>,
}

/// What came of putting material on record.
#[derive(Debug)]
#[must_use]
pub struct Burnt {
    /// The answers for the machines that asked, in their order: the material, or that it may not sign. None waits in vain.
    pub supplies: Vec<Supply>,
    /// The store's failure, if there was one: then none of it may sign.
    pub failure: Option<StoreError>,
}

impl Burner {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        let watermark = store.burn_watermark().unwrap_or_default();
        Self { store, watermark: Arc::new(watermark.into()), behind: Arc::new(true.into()) }
    }

    /// The day under which nonces drawn today are recorded: today, unless the store refuses that day already, after a
    /// restore or because its clock was once ahead. New nonces were never burnt under any day, and their use is
    /// remembered until that day is forgotten.
    #[must_use]
    pub fn day(&self, today: u32) -> u32 {
        today.max(self.watermark.load(Relaxed))
    }

    /// The day before which material is too old to sign.
    #[must_use]
    pub fn oldest(&self, today: u32) -> u32 {
        today.saturating_sub(GOOD_FOR_DAYS).max(self.watermark.load(Relaxed))
    }

    /// Burns nonces of these keys, in one commit; `today` is in days since 1970. They sign if the store shows that they are unused and not too old;
    /// otherwise they are wiped.
    pub fn burn(&self, used: Vec<(KeyId, Used)>, today: u32) -> Burnt {
        let ids = used.iter().map(|(key, used)| burn_id(key, used)).collect();
        let (may_sign, failure) = match self.record(ids, today) {
            Ok(may_sign) => (may_sign, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        // What the store says nothing of is refused.
        let may_sign = may_sign.into_iter().chain(core::iter::repeat(false));
        let supply = |((_, used), may_sign): ((KeyId, Used), bool)| {
            if may_sign { Supply::from(used) } else { used.refused() }
        };
        Burnt { supplies: used.into_iter().zip(may_sign).map(supply).collect(), failure }
    }

    /// Puts ids on record. Returns which of them were not there.
    fn record(&self, ids: Vec<BurnId>, today: u32) -> Result<Vec<bool>, StoreError> {
        self.forget(today.saturating_sub(GOOD_FOR_DAYS))?;
        let burnt = self.store.burn_all(ids)?.into_iter();
        let is_new = burnt.map(|burnt| match burnt {
            Ok(_) => Ok(true),
            Err(BurnError::AlreadyBurnt | BurnError::BelowWatermark { .. }) => Ok(false),
            Err(BurnError::Store(error)) => Err(error),
        });
        is_new.collect()
    }

    /// Refuses all days before `day` from now on, and forgets some of the records of those days.
    fn forget(&self, day: u32) -> Result<(), StoreError> {
        let rises = self.watermark.fetch_max(day, Relaxed) < day;
        if rises || self.behind.load(Relaxed) {
            let change = |transaction: &mut theta_store::Transaction<'_>| {
                transaction.raise_burn_watermark(day, FORGOTTEN_AT_ONCE)
            };
            self.behind.store(self.store.write(change)?, Relaxed);
        }
        Ok(())
    }
}

/// A hash of the key and of what is public of the material (commitments, or the presignature's name), which no other has. The first four bytes are replaced by the day, so
/// that the oldest are forgotten first; 28 bytes of the hash are left.
fn burn_id(key: &KeyId, used: &Used) -> BurnId {
    let hash =
        Transcript::new("theta/custody/used-nonces/v1").with("key id", key.as_bytes()).with("name", &used.name());
    let mut id = hash.finish32();
    id.iter_mut().zip(used.day().to_be_bytes()).for_each(|(byte, day)| *byte = day);
    BurnId { day: used.day(), id }
}
