//! Who may ask this node for what: the policy in force, its memory and its record.
//!
//! Each request is decided here before anything is done for it ([`Authority::decide`]). The decision itself is
//! `theta-policy`'s; this is what it needs of the world: the file, the clock, the store, and words for the refused.

mod asked;
mod audit;
mod disk;
mod file;
mod grants;
mod metrics;
mod quotas;
mod refusal;
mod refused;
mod slots;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use prometheus_client::registry::Registry;
use theta_custody::StoreSlots;
use theta_names::Operation;
use theta_network::Fingerprint;
use theta_orchestration::{Asker, InstanceId, SlotClaim, SlotRefusal};
use theta_policy::{Policy, PolicyHandle, Recording, Reload, Request, Unidentified};
use theta_statements::audit::AuditRecord;
use theta_statements::{Ask, Name, UnixTime};
use theta_store::Store;
use tonic::Status;

pub use self::file::{PolicyLoadError, load_policy};
pub(crate) use self::{
    asked::{Asked, Presented, key_ref},
    quotas::Place,
    watch::watch,
};
use self::{
    audit::{AuditLog, AuditUnavailable, Ticket},
    disk::Disk,
    file::PolicyFile,
    grants::{Granted, Grants},
    metrics::AuthorityMetrics,
    quotas::{QuotaError, Quotas},
    refused::Refused,
};
use crate::grpc::refusal::unknown_instance;

/// Decides about requests, by the policy file of this node alone.
#[derive(Debug)]
pub(crate) struct Authority {
    group: String,
    node: u16,
    file: PolicyFile,
    policy: PolicyHandle<StoreSlots>,
    store: Arc<Store>,
    audit: AuditLog,
    grants: Grants,
    refused: Refused,
    quotas: Quotas,
    metrics: AuthorityMetrics,
    disk: Disk,
}

/// An allowed request.
#[derive(Debug)]
pub(crate) struct Grant {
    granted: Granted,
    /// What must be certified before anything that hangs on a secret leaves for it.
    pub(crate) slots: Vec<SlotClaim>,
    /// The rule that allowed it.
    rule: Option<Name>,
}

impl Grant {
    /// Why nothing is signed although the policy allowed it.
    pub(crate) fn uncertified(&self, slots: &SlotRefusal, in_time: bool) -> Status {
        refusal::uncertified(&self.granted, self.rule.as_ref(), slots, in_time)
    }
}

/// What is allowed, and the record that has to be on the disk before anything comes of it.
type Decided = (Grant, Option<Ticket>);

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthorityError {
    #[error(transparent)]
    Policy(#[from] PolicyLoadError),
    #[error("the thread of the audit log cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

impl Grant {
    /// Who was allowed it.
    pub(crate) const fn client(&self) -> &Name {
        &self.granted.client
    }
}

impl Authority {
    /// Reads the policy file and opens the log. Blocks.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub(crate) fn open(
        group: &str,
        node: u16,
        file: &Path,
        store: Arc<Store>,
        registry: &mut Registry,
    ) -> Result<Arc<Self>, AuthorityError> {
        let stamped = PolicyFile::new(file);
        let policy = load_policy(file)?;
        if policy.is_empty() {
            tracing::error!(file = %file.display(), "{}", refusal::how_to_begin(file));
        }
        tracing::info!(file = %file.display(), digest = %policy.digest(), rules = policy.rules().count(), "policy in force");
        let audit = AuditLog::start(Arc::clone(&store))?;
        let metrics = AuthorityMetrics::register(registry, audit.recorded());
        let disk = Disk::register(registry);
        disk.look(&store);
        Ok(Arc::new(Self {
            group: group.to_owned(),
            node,
            file: stamped,
            policy: PolicyHandle::new(policy, StoreSlots::new(Arc::clone(&store))),
            store,
            audit,
            grants: Grants::default(),
            refused: Refused::default(),
            quotas: Quotas::default(),
            metrics,
            disk,
        }))
    }

    /// The policy in force.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy.current()
    }

    /// The group's name, as requests and consents have it.
    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    /// Where the policy is read from.
    pub(crate) fn policy_file(&self) -> &Path {
        self.file.path()
    }

    /// The node's store.
    pub(crate) const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Decides about a request, and records what it decided: durably before this returns where the request lets something
    /// out, unless the rule that allows it says `record = "soon"`.
    ///
    /// # Errors
    /// The refusal, for the client: which rule, and what would help.
    pub(crate) async fn decide(self: &Arc<Self>, presented: Presented, asked: Asked) -> Result<Grant, Status> {
        let (grant, ticket) = self.decided(presented, asked).await?;
        if let Some(ticket) = ticket {
            self.audit.durable(ticket).await.map_err(|error| refusal::unrecorded(&error))?;
        }
        tracing::Span::current().record("client", grant.granted.client.as_str());
        Ok(grant)
    }

    async fn decided(self: &Arc<Self>, presented: Presented, asked: Asked) -> Result<Decided, Status> {
        if asked.takes_long(&self.policy.current()) {
            let this = Arc::clone(self);
            tokio::task::spawn_blocking(move || this.decide_now(&presented, &asked)).await.unwrap_or_else(|error| {
                tracing::error!(%error, "a decision panicked");
                Err(Status::internal("bug: a decision panicked; please report it"))
            })
        } else {
            self.decide_now(&presented, &asked)
        }
    }

    /// May block: on the disk, for slots.
    fn decide_now(&self, presented: &Presented, asked: &Asked) -> Result<Decided, Status> {
        self.audit.check().map_err(|error| refusal::unrecorded(&error))?;
        let (policy, now) = (self.policy.current(), now());
        let enclosed = asked.enclosed()?;
        let ask = asked.ask(&self.group, &enclosed.approvals);
        let signed = enclosed.signed.as_ref();
        let request = presented
            .asks(&policy, signed, ask, now)
            .map_err(|error| self.refuse_stranger(&policy, &ask, now, &error))?;
        let decision = policy.decide(&request, now, self.policy.state());
        let ticket = self.record(&policy, &request, now, &decision);
        if !decision.allowed {
            return Err(refusal::denied(&request, &decision));
        }
        let first = asked.recorded_first || (asked.lets_out() && decision.recording == Recording::First);
        let granted = Granted {
            client: request.client().clone(),
            key: asked.key.clone(),
            operation: asked.operation,
            label: asked.label.clone(),
        };
        let grant = Grant { granted, slots: decision.slots, rule: decision.rule };
        Ok((grant, ticket.filter(|_| first)))
    }

    /// A place among the running instances for a statement of so many bytes, on the account of whoever was allowed the request.
    /// `load`: how many instances run, of how many at most.
    ///
    /// # Errors
    /// The refusal: it has as many as the policy gives it, or the node is nearly full and others come first.
    pub(crate) fn account(&self, grant: &Grant, bytes: usize, load: (usize, usize)) -> Result<Asker, Status> {
        let client = &grant.granted.client;
        let limits = self.policy.current().limits_of(client);
        let place = self.quotas.instance(client, &limits, bytes, load, now()).map_err(|error| self.exhausted(error))?;
        Ok(Asker { name: client.as_str().into(), result_bytes: limits.result_bytes, place: Arc::new(place) })
    }

    /// A place for a stream of this client's.
    ///
    /// # Errors
    /// The refusal: it has as many as the policy gives it.
    pub(crate) fn stream(&self, client: &Name) -> Result<Place, Status> {
        let limits = self.policy.current().limits_of(client);
        self.quotas.stream(client, &limits).map_err(|error| self.exhausted(error))
    }

    fn exhausted(&self, error: QuotaError) -> Status {
        self.metrics.exhausted(error.name());
        error.into()
    }

    /// Remembers whose instance it is.
    pub(crate) fn remember(&self, instance: InstanceId, grant: &Grant) {
        self.grants.add(instance, grant.granted.clone());
    }

    /// Decides whether a client may have the result of an instance, and says which client that is: who was allowed the operation
    /// that made it, if the policy would still have it so. As [`Authority::decide`], it returns when that is on record.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) async fn decide_result(&self, presented: &Presented, instance: InstanceId) -> Result<Name, Status> {
        let (client, ticket) = self.decide_result_now(presented, instance)?;
        if let Some(ticket) = ticket {
            self.audit.durable(ticket).await.map_err(|error| refusal::unrecorded(&error))?;
        }
        Ok(client)
    }

    fn decide_result_now(&self, presented: &Presented, instance: InstanceId) -> Result<(Name, Option<Ticket>), Status> {
        self.audit.check().map_err(|error| refusal::unrecorded(&error))?;
        let (policy, now) = (self.policy.current(), now());
        let stranger = Asked { statement: instance.0.to_vec().into(), ..Asked::new(Operation::Status) };
        let ask = stranger.ask(&self.group, &[]);
        let request = presented
            .asks(&policy, None, ask, now)
            .map_err(|error| self.refuse_stranger(&policy, &ask, now, &error))?;
        let all = self.grants.of(&instance);
        if all.is_empty() {
            return Err(unknown_instance(instance));
        }
        let Some(granted) = all.into_iter().find(|granted| granted.client == *request.client()) else {
            return Err(Status::permission_denied(format!(
                "client {} was not allowed the operation that made this result; send the request itself: it meets the same \
                 instance",
                request.client()
            )));
        };
        let statement = instance.0.to_vec().into();
        let Granted { key, operation, label, .. } = granted;
        let asked = Asked { key, label, statement, ..Asked::new(operation) };
        let ask = asked.ask(&self.group, &[]);
        let request = presented
            .asks(&policy, None, ask, now)
            .map_err(|error| self.refuse_stranger(&policy, &ask, now, &error))?;
        let decision = policy.still_allows(&request, now);
        let ticket = self.record(&policy, &request, now, &decision);
        if !decision.allowed {
            return Err(refusal::denied(&request, &decision));
        }
        Ok((request.client().clone(), ticket.filter(|_| decision.recording == Recording::First)))
    }

    fn record(
        &self,
        policy: &Policy,
        request: &Request<'_>,
        now: UnixTime,
        decision: &theta_policy::Decision,
    ) -> Option<Ticket> {
        self.metrics.decided(decision.allowed, decision.reason.code());
        let record = theta_policy::record(self.node, now, request, decision, policy.digest());
        if decision.allowed {
            return Some(self.audit.append(record));
        }
        self.record_refusal(Some(request.client()), record);
        None
    }

    /// What is refused goes into the log at a bounded rate for each client, and for all strangers together.
    fn record_refusal(&self, client: Option<&Name>, record: AuditRecord) {
        if let Some(record) = self.refused.take(client, record) {
            self.audit.append(record);
        }
    }

    fn refuse_stranger(&self, policy: &Policy, ask: &Ask<'_>, now: UnixTime, error: &Unidentified) -> Status {
        self.metrics.decided(false, "unidentified");
        let record = theta_policy::record_of_stranger(self.node, now, ask.operation, ask.key, error, policy.digest());
        self.record_refusal(None, record);
        refusal::unidentified(error, policy.is_empty().then(|| self.file.path()))
    }

    /// The client whom the policy names by this certificate.
    pub(crate) fn client_of(&self, certificate: &Fingerprint) -> Option<Name> {
        let caller = self.policy.current().caller_by_certificate(*certificate.as_bytes()).ok()?;
        Some(caller.asks(Ask::new("", Operation::Status)).client().clone())
    }

    /// The client whom this shows before anything of the request is read. `None`: a stranger, or somebody whose signature is
    /// still to come.
    pub(crate) fn recognise(&self, presented: &Presented) -> Option<Name> {
        presented.client(&self.policy.current())
    }

    /// Whether somebody without a certificate may connect.
    pub(crate) fn has_tokens(&self) -> bool {
        self.policy.current().has_tokens()
    }

    /// Reads the policy file again and puts it in force if nothing is wrong with it. Blocks.
    ///
    /// # Errors
    /// [`PolicyLoadError`]: the old policy stays in force.
    pub(crate) fn reload(&self) -> Result<Reload, PolicyLoadError> {
        let _turn = self.file.turn();
        let file = self.file.path().display().to_string();
        let reloaded = self.file.text().and_then(|text| Ok(self.policy.reload(&text, &file)?));
        self.metrics.reloaded(reloaded.as_ref().ok());
        match &reloaded {
            Ok(Reload { changed: false, .. }) => tracing::debug!(file, "the policy file says what it said"),
            Ok(reload) => {
                let digest = self.policy.current().digest();
                tracing::info!(file, %digest, gone = ?reload.rules_gone, "a new policy is in force");
                for rule in &reload.signing_rules_gone {
                    tracing::warn!(%rule, "a signing rule is gone: nothing limits its slots any more");
                }
                if self.policy.current().is_empty() {
                    tracing::error!(file, "{}", refusal::how_to_begin(self.file.path()));
                }
            }
            Err(error) => tracing::error!(%error, "the policy file was not taken: the old policy stays in force"),
        }
        reloaded
    }

    /// Reads the file again if it changed. Blocks.
    pub(crate) fn reload_if_changed(&self) {
        if self.file.may_have_changed() {
            // What is wrong with it was logged.
            let _ = self.reload();
        }
    }

    /// Looks after what changes without a request. Blocks.
    pub(crate) fn look_after(&self) {
        self.reload_if_changed();
        self.disk.look(&self.store);
        for record in self.refused.left_over(now()) {
            self.audit.append(record);
        }
    }

    /// Whether requests can be decided and recorded; if so, what the operator should look at all the same.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn standing(&self) -> Result<Option<String>, String> {
        match self.audit.check() {
            Err(AuditUnavailable::Full) | Ok(()) if self.store.has_failed() => {
                Err("the disk of its store does not work: see the node's log".to_owned())
            }
            Err(AuditUnavailable::Full) | Ok(()) => Ok(self.disk.warning()),
            // The disk's words are for the operator alone, but so is this.
            Err(error) => Err(error.to_string()),
        }
    }

    /// Blocks until all decisions so far are in the log.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(crate) fn flush(&self) -> Result<(), Status> {
        self.audit.flush().map_err(|error| refusal::unrecorded(&error))
    }

    /// Writes the rest of the log and ends its thread; every request after this is refused. Blocks.
    pub(crate) fn close(&self) {
        self.audit.close();
    }
}

/// The time of decisions.
pub(crate) fn now() -> UnixTime {
    // Before 1970 nothing is valid that has a beginning.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
