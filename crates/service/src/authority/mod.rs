//! Who may ask this node for what: the policy in force, its memory and its record.
//!
//! Each request is decided here before anything is done for it ([`Authority::decide`]). The decision itself is
//! `theta-policy`'s; this is what it needs of the world: the file, the clock, the store, and words for the refused.

mod asked;
mod audit;
mod file;
mod grants;
mod metrics;
mod quotas;
mod refusal;
mod strangers;
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
use theta_network::Fingerprint;
use theta_orchestration::{Asker, InstanceId};
use theta_policy::{
    Ask, Digest, Name, Operation, Policy, PolicyHandle, Reload, Request, Unidentified, UnixTime, audit::AuditRecord,
};
use theta_store::Store;
use tonic::Status;

pub use self::file::{PolicyLoadError, load_policy};
pub(crate) use self::{
    asked::{Asked, Presented, key_ref},
    quotas::Place,
    watch::watch,
};
use self::{
    audit::{AuditLog, Ticket},
    file::PolicyFile,
    grants::{Granted, Grants},
    metrics::AuthorityMetrics,
    quotas::{QuotaError, Quotas},
    strangers::Strangers,
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
    strangers: Strangers,
    quotas: Quotas,
    metrics: AuthorityMetrics,
}

/// An allowed request.
#[derive(Debug)]
pub(crate) struct Grant {
    granted: Granted,
    /// The name of the signed request, if the client was recognised by one.
    pub(crate) request_id: Option<Digest>,
}

impl Grant {
    /// Whose it is.
    pub(crate) const fn client(&self) -> &Name {
        &self.granted.client
    }
}

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthorityError {
    #[error(transparent)]
    Policy(#[from] PolicyLoadError),
    #[error("the thread of the audit log cannot be started: {0}")]
    Thread(#[from] std::io::Error),
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
        Ok(Arc::new(Self {
            group: group.to_owned(),
            node,
            file: stamped,
            policy: PolicyHandle::new(policy, StoreSlots::new(Arc::clone(&store))),
            store,
            audit,
            grants: Grants::default(),
            strangers: Strangers::default(),
            quotas: Quotas::default(),
            metrics,
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

    /// Decides about a request, and records what it decided.
    ///
    /// # Errors
    /// The refusal, for the client: which rule, and what would help.
    pub(crate) async fn decide(self: &Arc<Self>, presented: Presented, asked: Asked) -> Result<Grant, Status> {
        let decided = if asked.takes_long(&self.policy.current()) {
            let this = Arc::clone(self);
            tokio::task::spawn_blocking(move || this.decide_now(&presented, &asked)).await.unwrap_or_else(|error| {
                tracing::error!(%error, "a decision panicked");
                Err(Status::internal("bug: a decision panicked; please report it"))
            })
        } else {
            self.decide_now(&presented, &asked)
        };
        if let Ok(grant) = &decided {
            tracing::Span::current().record("client", grant.granted.client.as_str());
        }
        decided
    }

    /// May block: on the disk, for slots and for what must be recorded first.
    fn decide_now(&self, presented: &Presented, asked: &Asked) -> Result<Grant, Status> {
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
        if asked.recorded_first {
            self.audit.wait(ticket).map_err(|error| refusal::unrecorded(&error))?;
        }
        let granted = Granted {
            client: request.client().clone(),
            key: asked.key.clone(),
            operation: asked.operation,
            label: asked.label.clone(),
        };
        Ok(Grant { granted, request_id: signed.map(theta_policy::SignedRequest::id) })
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

    /// Decides whether a client may have the result of an instance, and says which client that is: who was allowed the operation that made it, if the policy
    /// would still have it so.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn decide_result(&self, presented: &Presented, instance: InstanceId) -> Result<Name, Status> {
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
        self.record(&policy, &request, now, &decision);
        if decision.allowed { Ok(request.client().clone()) } else { Err(refusal::denied(&request, &decision)) }
    }

    fn record(
        &self,
        policy: &Policy,
        request: &Request<'_>,
        now: UnixTime,
        decision: &theta_policy::Decision,
    ) -> Ticket {
        self.metrics.decided(decision.allowed, decision.reason.code());
        self.audit.append(AuditRecord::of(self.node, now, request, decision, policy.digest()))
    }

    fn refuse_stranger(&self, policy: &Policy, ask: &Ask<'_>, now: UnixTime, error: &Unidentified) -> Status {
        self.metrics.decided(false, "unidentified");
        if let Some(unrecorded) = self.strangers.may_be_recorded(now) {
            let mut record = AuditRecord::of_stranger(self.node, now, ask.operation, ask.key, error, policy.digest());
            if unrecorded > 0 {
                record.detail.push_str(&format!("; {unrecorded} more like it before were not recorded"));
            }
            self.audit.append(record);
        }
        refusal::unidentified(error, policy.is_empty().then(|| self.file.path()))
    }

    /// Whether the policy names a client of this certificate.
    pub(crate) fn knows_certificate(&self, certificate: &Fingerprint) -> bool {
        self.policy.current().caller_by_certificate(*certificate.as_bytes()).is_ok()
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
