//! Nonces that are used up, on record before they sign.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use theta_groups::Transcript;
use theta_protocols::frost::{Supply, Used};
use theta_schemes::keys::KeyId;
use theta_store::{BurnError, BurnId, Store, StoreError};

/// For how many days nonces are good that a coordinator was given ahead of time, and for how long the store remembers which were used: that
/// of their drawing, and this many after it.
const GOOD_FOR_DAYS: u32 = 1;

/// Puts on record, in a node's store, which nonces are used up: before they sign, so that a process which is resumed from a picture of its
/// memory, beside a disk that went on, signs with none of them again.
///
/// Nothing is on record of nonces that were never used, and the nonces themselves are in memory only.
#[derive(Clone, Debug)]
pub struct Burner {
    store: Arc<Store>,
    /// The day up to which records have been forgotten.
    watermark: Arc<AtomicU32>,
}

impl Burner {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, watermark: Arc::default() }
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

    /// Forgets what was burnt before that day, and refuses it from now on by its day.
    fn forget(&self, day: u32) -> Result<(), StoreError> {
        if self.watermark.fetch_max(day, Relaxed) < day {
            self.store.write(|transaction| transaction.raise_burn_watermark(day))?;
        }
        Ok(())
    }
}

/// The key, and what was published of the nonces: no others have the same commitments.
fn burn_id(key: &KeyId, used: &Used) -> BurnId {
    let id = Transcript::new("theta/custody/used-nonces/v1")
        .with("key id", key.as_bytes())
        .with("commitments", &used.nonces.encoded_commitments());
    BurnId { day: used.day, id: id.finish32() }
}
