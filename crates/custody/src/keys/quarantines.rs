//! The holders of a key among whom somebody cheated, on record.

use std::borrow::Cow;
use std::sync::Arc;

use theta_names::{Epoch, KeyName, Version};
use theta_protocols::{Stock, ecdsa};
use theta_rounds::PartyId;
use theta_store::{Quarantined, Store, StoreError};

use super::KeyEntry;
use crate::CustodyError;

/// Puts in a node's store which holders of a key compute no more together, before anything else is done with the key. So whoever restarts the node
/// gets no further guess at what the honest among them hide. New shares of the key end it.
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

/// The stock of a sharing that this node has nothing of in memory. It knows what the store does.
pub(super) fn new_stock(
    store: &Store,
    name: &KeyName,
    version: Version,
    epoch: Epoch,
) -> Result<Arc<Stock>, StoreError> {
    let of_store = |Quarantined { holders, phase, culprit }| ecdsa::Quarantine {
        holders,
        phase: Cow::Owned(phase),
        party: culprit.map(PartyId::of_share),
    };
    let known = store.quarantined(name, version, epoch)?;
    Ok(Arc::new(Stock::knowing(known.into_iter().map(of_store))))
}
