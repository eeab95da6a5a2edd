//! Whether a node's store may be believed, for those who do not open it.

use std::sync::Arc;

use bytes::Bytes;
use theta_store::Store;

use crate::announcement;

/// How a node's store stands with its peers; clones are of the same store.
#[derive(Clone, Debug)]
pub struct StoreStanding(Arc<Store>);

impl StoreStanding {
    pub(crate) const fn new(store: Arc<Store>) -> Self {
        Self(store)
    }

    /// Whether enough peers have confirmed that this is the store that they know, and not an old copy: what
    /// [`Custodian::is_trusted`](crate::Custodian::is_trusted) said last.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.0.is_confirmed()
    }

    /// What tells peers how far the store is now.
    #[must_use]
    pub fn announcement(&self) -> Bytes {
        announcement(&self.0.incarnation())
    }
}
