//! Whether a node's store is confirmed, for code that has no access to the store itself.

use std::sync::Arc;

use bytes::Bytes;
use theta_store::Store;

use crate::announcement;

/// The standing of a node's store with its peers; clones refer to the same store.
#[derive(Clone, Debug)]
pub struct StoreStanding(Arc<Store>);

impl StoreStanding {
    pub(crate) const fn new(store: Arc<Store>) -> Self {
        Self(store)
    }

    /// Whether enough peers have confirmed that this is the store that they know, and not an old copy: the last answer
    /// of [`Custodian::is_trusted`](crate::Custodian::is_trusted).
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.0.is_confirmed()
    }

    /// The message that tells peers the present incarnation of the store.
    #[must_use]
    pub fn announcement(&self) -> Bytes {
        announcement(&self.0.incarnation())
    }
}
