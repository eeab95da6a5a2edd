//! The holders of a key among whom somebody cheated, on record.

use std::borrow::Cow;
use std::sync::Arc;

use theta_names::{Epoch, KeyName, Version};
use theta_protocols::{Stock, ecdsa};
use theta_rounds::PartyId;
use theta_store::{Quarantined, Store, StoreError};

use super::KeyEntry;
use crate::CustodyError;

/// Puts in a node's store which holders of a key compute no more together, as soon as the key's [`Stock`] knows it, and before the thread that has found
/// it does anything else. So whoever restarts the node gets no further guess at what the honest among them hide. New shares of the key end it.
#[derive(Clone, Debug)]
pub struct Quarantines(Arc<Store>);

impl Quarantines {
    pub(crate) const fn new(store: Arc<Store>) -> Self {
        Self(store)
    }

    /// Puts a set of a key's holders on record; returns when that is durable. Returns whether it is on record: not if the key has new shares by
    /// now, nor if there are [`theta_store::key::MOST_QUARANTINED`] sets of it.
    ///
    /// # Errors
    /// [`CustodyError`]: the store failed, or has no such key any more.
    pub fn record(&self, key: &KeyEntry, found: &ecdsa::Quarantine) -> Result<bool, CustodyError> {
        let ecdsa::Quarantine { holders, phase, party } = found;
        let (holders, phase) = (holders.clone(), phase.to_string());
        let found = Quarantined { holders, phase, culprit: party.map(PartyId::share) };
        self.0.write(|transaction| Ok(transaction.quarantine(&key.name, key.version, key.epoch, &found)?))
    }
}

/// A stock for a sharing, with nothing in it. It knows which holders are in quarantine as the store does, and as a stock `before` it of the same
/// sharing, if there is one: what the store had no room for, or failed to record, is in memory alone, and a share that is lost and recovered is still
/// the same share.
pub(super) fn new_stock(
    store: &Store,
    name: &KeyName,
    (version, epoch): (Version, Epoch),
    before: Option<&Stock>,
) -> Result<Arc<Stock>, StoreError> {
    let of_store = |Quarantined { holders, phase, culprit }| ecdsa::Quarantine {
        holders,
        phase: Cow::Owned(phase),
        party: culprit.map(PartyId::of_share),
    };
    let known = store.quarantined(name, version, epoch)?;
    let remembered = before.map(Stock::quarantined).unwrap_or_default();
    Ok(Arc::new(Stock::knowing(known.into_iter().map(of_store).chain(remembered), before)))
}

#[cfg(test)]
mod tests {
    use theta_groups::Secret;
    use theta_names::ShareIndex;
    use theta_store::{Options, SealingKey, disk::SimulatedDisk};

    use super::*;

    #[test]
    fn what_is_in_memory_alone_outlives_its_stock() {
        let sealing = SealingKey::key(Secret::new([7; 32]));
        let store = Store::create_on(SimulatedDisk::default().backend(), &sealing, Options::default()).unwrap();
        let holders = [1, 2].map(|number| ShareIndex::try_from(number).unwrap()).to_vec();
        let found = ecdsa::Quarantine { holders, phase: Cow::Borrowed("a check"), party: None };
        let before = Stock::knowing([found.clone()], None);
        let (name, sharing): (KeyName, _) = ("key".parse().unwrap(), (Version::FIRST, Epoch::FIRST));
        let stock = |before| new_stock(&store, &name, sharing, before).unwrap().quarantined();
        assert_eq!(stock(Some(&before)), [found]);
        assert!(stock(None).is_empty());
    }
}
