//! Nonces that are used up, on record before they sign.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use theta_groups::Transcript;
use theta_protocols::frost::{Supply, Used};
use theta_schemes::keys::KeyId;
use theta_store::{BurnError, BurnId, Store, StoreError};

/// For how many days nonces are good that a coordinator was given ahead of time, and for how long the store remembers which were used: that
/// of their drawing, and this many after it.
const GOOD_FOR_DAYS: u32 = 1;
/// Records that are forgotten in one commit: the store does nothing else meanwhile.
const FORGOTTEN_AT_ONCE: usize = 1_024;

/// Puts on record, in a node's store, which nonces are used up: before they sign, so that a process which is resumed from a picture of its
/// memory, beside a disk that went on, signs with none of them again. (Such a process believes of the store what was so before; the store
/// notices, and burns nothing.)
///
/// Nothing is on record of nonces that were never used, and the nonces themselves are in memory only.
#[derive(Clone, Debug)]
pub struct Burner {
    store: Arc<Store>,
    /// The day below which everything is refused, as far as is known here.
    watermark: Arc<AtomicU32>,
    /// Whether records of such days may be left.
    behind: Arc<AtomicBool>,
}

impl Burner {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        let watermark = store.burn_watermark().unwrap_or_default();
        Self { store, watermark: Arc::new(watermark.into()), behind: Arc::new(true.into()) }
    }

    /// The day that nonces drawn today are good under: today, unless the store refuses that day already, after a restore or because its
    /// clock was ahead once. What is new was never burnt, under whatever day; and it is remembered until that day is forgotten.
    #[must_use]
    pub fn day(&self, today: u32) -> u32 {
        today.max(self.watermark.load(Relaxed))
    }

    /// Burns nonces of these keys, in one commit; `today` in days since 1970. What comes back, in the same order, is for the machines that
    /// asked: the nonces if they have not been used before and are not too old, as far as the store can tell.
    ///
    /// # Errors
    /// [`StoreError`]: none of them may sign. They are wiped.
    pub fn burn(&self, used: Vec<(KeyId, Used)>, today: u32) -> Result<Vec<Supply>, StoreError> {
        self.forget(today.saturating_sub(GOOD_FOR_DAYS))?;
        let ids = used.iter().map(|(key, used)| burn_id(key, used)).collect();
        let burnt = self.store.burn_all(ids)?;
        let supply = |((_, used), burnt): ((KeyId, Used), _)| match burnt {
            Ok(_) => Ok(used.into()),
            Err(BurnError::AlreadyBurnt | BurnError::BelowWatermark { .. }) => Ok(used.refused()),
            Err(BurnError::Store(error)) => Err(error),
        };
        used.into_iter().zip(burnt).map(supply).collect()
    }

    /// Forgets some of what was burnt before that day, and refuses all of it from now on by its day.
    fn forget(&self, day: u32) -> Result<(), StoreError> {
        let rises = self.watermark.fetch_max(day, Relaxed) < day;
        if rises || self.behind.load(Relaxed) {
            let change = |transaction: &mut theta_store::Transaction<'_>| {
                transaction.raise_burn_watermark_in_parts(day, FORGOTTEN_AT_ONCE)
            };
            self.behind.store(self.store.write(change)?, Relaxed);
        }
        Ok(())
    }
}

/// The key, and what was published of the nonces: no others have the same commitments. It begins with the day, so that the oldest are
/// forgotten first; what is left of the hash has 28 bytes.
fn burn_id(key: &KeyId, used: &Used) -> BurnId {
    let hash = Transcript::new("theta/custody/used-nonces/v1")
        .with("key id", key.as_bytes())
        .with("commitments", &used.nonces.encoded_commitments());
    let mut id = hash.finish32();
    id.iter_mut().zip(used.day.to_be_bytes()).for_each(|(byte, day)| *byte = day);
    BurnId { day: used.day, id }
}
