//! A request that has nothing left to wait for.

use std::sync::Arc;

use theta_authority::{Granted, InstanceId, Request};
use theta_custody::{KeyEntry, KeyTable, ResolveError, SlotRefusal};

/// A granted request whose key is in use at this node and whose slots are certified for it. Nothing that depends on a
/// secret is done for any other request. Only [`Orchestrator::certify`](crate::Orchestrator::certify) makes one.
#[derive(Debug)]
#[must_use]
pub struct Certified {
    request: Request,
    entry: Arc<KeyEntry>,
    generation: u64,
}

/// Why a granted request is not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotServed {
    /// There is no such key here, or none that is in use.
    #[error(transparent)]
    Key(#[from] ResolveError),
    /// Its slot is not certified for it.
    #[error(transparent)]
    Slot(#[from] SlotRefusal),
}

impl Certified {
    /// Uses up the permission.
    pub(crate) fn of(granted: Granted<Request>, keys: &KeyTable) -> Result<Self, ResolveError> {
        Self::after_waiting(granted.into_request(), keys)
    }

    /// A request that was granted and has waited until its slots were certified.
    pub(crate) fn after_waiting(request: Request, keys: &KeyTable) -> Result<Self, ResolveError> {
        let (entry, generation) = request.entry(keys)?;
        Ok(Self { request, entry, generation })
    }

    /// The version of the key that answers.
    #[must_use]
    pub const fn entry(&self) -> &Arc<KeyEntry> {
        &self.entry
    }

    /// The request that was allowed.
    #[must_use]
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// Returns a computation of the instance's id under the present key. The caller chooses where and when to run it,
    /// since the request may be long.
    pub fn identification(&self) -> impl FnOnce() -> InstanceId + Send + 'static {
        let (key, epoch) = (self.entry.key_id, self.entry.epoch);
        let (statement, seed) = (self.request.statement().clone(), self.request.seed().cloned());
        move || InstanceId::of(&key, epoch, &statement, seed.as_ref())
    }

    pub(crate) fn into_parts(self) -> (Request, Arc<KeyEntry>, u64) {
        (self.request, self.entry, self.generation)
    }
}
