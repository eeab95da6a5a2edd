//! Requests about the keys of a node: ceremonies, changes of state, whether its store is trusted.

use theta_authority::Granted;
use theta_custody::CeremonyReport;
use theta_statements::{CeremonyRequest, StateChange};
use tokio::sync::watch;

use super::{ChangeKeyError, HoldError, Orchestrator, custody::Order};

impl Orchestrator {
    /// Begins a ceremony at this node, or joins the one of this request; returns how it stands. Nodes that were not
    /// asked join when enough others hold it.
    ///
    /// # Errors
    /// [`HoldError`]: the custodian says why not, or there is none.
    pub async fn hold(&self, granted: Granted<CeremonyRequest>) -> Result<CeremonyReport, HoldError> {
        Ok(self.ask_custodian(|reply| Order::Hold(granted.into_request(), reply)).await??)
    }

    /// How a ceremony stands, by its id; `None` if it is not known here.
    pub async fn ceremony(&self, id: [u8; 32]) -> Option<CeremonyReport> {
        self.ask_custodian(|reply| Order::Report(id, reply)).await.ok().flatten()
    }

    /// The ceremonies that run here, and those that ended lately.
    pub async fn ceremonies(&self) -> Vec<CeremonyReport> {
        self.ask_custodian(Order::Reports).await.unwrap_or_default()
    }

    /// Follows a ceremony; `None` if it is not known here. The last value that the receiver sees is of a ceremony that is over,
    /// unless the node stops; after it the channel is closed.
    pub async fn watch_ceremony(&self, id: [u8; 32]) -> Option<watch::Receiver<CeremonyReport>> {
        self.ask_custodian(|reply| Order::Watch(id, reply)).await.ok().flatten()
    }

    /// Changes the state of a key or of one version of it, at this node alone. Requests that run and whose key serves no more
    /// end with [`InstanceError::Key`](crate::InstanceError::Key).
    ///
    /// # Errors
    /// [`ChangeKeyError`]: the custodian says why not, or there is none.
    pub async fn change_key(&self, granted: Granted<StateChange>) -> Result<(), ChangeKeyError> {
        Ok(self.ask_custodian(|reply| Order::Change(granted.into_request(), reply)).await??)
    }

    /// Whether enough peers have confirmed that this node's store is the one that they know, and not an old copy. A node with
    /// fixed keys has nothing to confirm. What is for a slot is refused without it
    /// ([`Orchestrator::certify`], and the gate before it); to ask is for those who want to say so sooner.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.shared().is_trusted()
    }

    /// Why the store failed, if it did: then this node refuses all requests until it has recovered, which it tries by itself.
    #[must_use]
    pub fn store_failure(&self) -> Option<String> {
        self.shared().failure.get()
    }
}
