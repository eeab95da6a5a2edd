//! Requests about a node's keys: ceremonies, changes of state, trust in its store.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use theta_authority::{BringWarrant, Granted, ListCeremonies, WatchCeremony};
use theta_custody::{CeremonyReport, ChangeReport, Members, MembersState};
use theta_statements::{CancelRequest, CeremonyRequest, MemberRequest, StateChange, TakeBackRequest};
use tokio::sync::watch;

use super::{ChangeKeyError, ChangeMembersError, HoldError, NoCustodian, Orchestrator, custody::Order};

impl Orchestrator {
    /// Asks the group for a ceremony; returns its state. It begins when as many nodes as it takes were asked and their
    /// policies grant it: see `spec/ledger.md`. The `reason` is what the client signed, and others approved, for the ledger.
    ///
    /// # Errors
    /// [`HoldError`]: the custodian's refusal, or there is no custodian.
    pub async fn hold(&self, granted: Granted<CeremonyRequest>, reason: Vec<u8>) -> Result<CeremonyReport, HoldError> {
        Ok(self.ask_custodian(|reply| Order::Hold(granted.into_request(), reason, reply)).await??)
    }

    /// Asks the group to let a ceremony come to nothing; returns its state.
    ///
    /// # Errors
    /// As [`Orchestrator::hold`].
    pub async fn cancel(&self, granted: Granted<CancelRequest>, reason: Vec<u8>) -> Result<CeremonyReport, HoldError> {
        Ok(self.ask_custodian(|reply| Order::Cancel(granted.into_request(), reason, reply)).await??)
    }

    /// The ceremonies that run here, and those that ended lately.
    pub async fn ceremonies(&self, granted: Granted<ListCeremonies>) -> Vec<CeremonyReport> {
        let ListCeremonies = granted.into_request();
        self.ask_custodian(Order::Reports).await.unwrap_or_default()
    }

    /// Follows a ceremony; `None` if it is not known here. Unless the node stops, the last value that the receiver sees
    /// is of a ceremony that has ended; then the channel is closed.
    pub async fn watch_ceremony(&self, granted: Granted<WatchCeremony>) -> Option<watch::Receiver<CeremonyReport>> {
        let WatchCeremony(id) = granted.into_request();
        self.ask_custodian(|reply| Order::Watch(id, reply)).await.ok().flatten()
    }

    /// Asks the group to change the state of a key or of one version of it, and says how that stands; to disable takes effect
    /// here at once. Running requests whose key is no longer in use end with
    /// [`InstanceError::Key`](crate::InstanceError::Key). The `reason` is as for [`Orchestrator::hold`].
    ///
    /// # Errors
    /// [`ChangeKeyError`]: the custodian's refusal, or there is no custodian.
    pub async fn change_key(
        &self,
        granted: Granted<StateChange>,
        reason: Vec<u8>,
    ) -> Result<ChangeReport, ChangeKeyError> {
        Ok(self.ask_custodian(|reply| Order::Change(granted.into_request(), reason, reply)).await??)
    }

    /// Asks the group for a change of its members, or says how far it is if it was asked for before. The `reason` is what the client
    /// signed, and others approved, for the ledger.
    ///
    /// # Errors
    /// [`ChangeMembersError`]: it cannot be read, the store failed, or there is no custodian.
    pub async fn change_members(
        &self,
        granted: Granted<MemberRequest>,
        reason: Vec<u8>,
    ) -> Result<MembersState, ChangeMembersError> {
        Ok(self.ask_custodian(|reply| Order::Members(granted.into_request(), reason, reply)).await??)
    }

    /// Takes back a change of the members that the group has not decided: this node votes against it.
    ///
    /// # Errors
    /// As [`Orchestrator::change_members`].
    pub async fn take_back(&self, granted: Granted<TakeBackRequest>) -> Result<MembersState, ChangeMembersError> {
        Ok(self.ask_custodian(|reply| Order::TakeBack(granted.into_request(), reply)).await??)
    }

    /// Brings the group a warrant, or says how far it is.
    ///
    /// # Errors
    /// As [`Orchestrator::change_members`].
    pub async fn bring_warrant(&self, granted: Granted<BringWarrant>) -> Result<MembersState, ChangeMembersError> {
        Ok(self.ask_custodian(|reply| Order::Warrant(granted.into_request().warrant, reply)).await??)
    }

    /// Whether enough peers have confirmed that this node's store is the one that they know, and not an old copy. A
    /// node with fixed keys has nothing to confirm. [`Orchestrator::certify`] and the gate refuse requests for slots
    /// without it; this method is for callers that want to refuse them sooner.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.shared().is_trusted()
    }

    /// The members as the ledger has them, from now on; nothing in a group that was not founded with cards.
    #[must_use]
    pub fn members(&self) -> watch::Receiver<Option<Members>> {
        self.shared().members.subscribe()
    }

    /// Takes over which peers the transport has, after they were changed.
    pub fn follow_transport(&self) {
        self.shared().follow_transport();
    }

    /// Why this machine serves no requests though all of it works: it is not its member's any more, or not yet.
    #[must_use]
    pub fn departure(&self) -> Option<String> {
        self.shared().departure.get()
    }

    /// This machine serves no requests from now on, and says why: what it shows is not what the group knows of its member.
    pub fn stand_down(&self, why: String) {
        self.shared().departure.set(why);
    }

    /// Whether this node has not caught up yet with what the group has decided, so that it may not know keys that there are.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.shared().behind.load(Relaxed)
    }

    /// Takes certified entries of the ledger, encoded, from whoever had them; returns the height that this node has reached. With none it
    /// says how far it is.
    ///
    /// # Errors
    /// [`NoCustodian`].
    pub async fn take_entries(&self, entries: Vec<Bytes>) -> Result<u64, NoCustodian> {
        self.ask_custodian(|reply| Order::Entries(entries, reply)).await
    }

    /// Why the store failed, if it did: then this node refuses all requests until it has recovered, which it tries by
    /// itself.
    #[must_use]
    pub fn store_failure(&self) -> Option<String> {
        self.shared().failure.get()
    }
}
