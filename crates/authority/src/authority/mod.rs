//! The authority of a node: the policy in force, its memory and its record.
//!
//! Each request is decided here before anything is done for it ([`Authority::decide`]). The [`Gate`] makes the decision
//! itself; this module has the file, the clock and the store.

mod audit;
mod batch;
mod disk;
mod file;
mod grants;
mod metrics;
mod past;
mod quotas;
mod repeatable;
mod slots;
/// Says what is odd about a policy that comes into force, and stops nothing: a node starts with it all the same.
fn warn_about(policy: &Policy, file: &Path) {
    if policy.is_empty() {
        tracing::error!(file = %file.display(), "{}", how_to_begin(file));
    }
    if let Some(outdated) = policy.outdated_tokens() {
        tracing::warn!(file = %file.display(), "{outdated}");
    }
}

#[cfg(test)]
mod tests;
mod watch;

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use prometheus_client::registry::Registry;
use theta_custody::StoreSlots;
use theta_names::{NodeId, Operation};
use theta_policy::{Heard, Policy, Reload, SlotRace};
use theta_statements::audit::AuditRecord;
use theta_statements::{Name, TokenKey, UnixTime};
use theta_store::Store;

pub use self::{
    audit::AuditUnavailable,
    file::{PolicyLoadError, load_policy},
    past::{AuditKeeping, PruneError, Pruned},
    quotas::{Place, QuotaError},
    watch::watch,
};
use self::{
    audit::{AuditLog, Ticket},
    disk::Disk,
    file::PolicyFile,
    grants::Grants,
    metrics::AuthorityMetrics,
    past::Past,
    quotas::Quotas,
    repeatable::Repeatable,
};
use crate::agents::Due;
use crate::{
    Agents, Asked, Asker, Asks, Gate, Granted, InstanceId, Judged, Presented, Refusal, Request, Terms,
    refusal::how_to_begin,
};

/// Statements up to this length, in bytes, are digested on the network's threads.
const SHORT_STATEMENT: usize = 64 << 10;

/// Decides about requests, by the policy file of this node alone.
#[derive(Debug)]
pub struct Authority {
    gate: Gate<StoreSlots>,
    file: PolicyFile,
    store: Arc<Store>,
    audit: AuditLog,
    grants: Grants,
    refused: Repeatable,
    repeated: Repeatable,
    quotas: Quotas,
    metrics: AuthorityMetrics,
    disk: Disk,
    past: Past,
    agents: OnceLock<Arc<dyn Agents>>,
}

/// The reason on record, and in metrics, of a request that the policy allows and for which its client has no room.
const QUOTA: &str = "client-quota";

/// A permission, and the record that must be on the disk before it is used.
type Decided<R> = (Granted<R>, Option<Ticket>);

/// A permission, with whether its record must be on the disk before it is used.
type Counted<R> = Result<(Granted<R>, bool), Refusal>;

/// Why an authority cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The policy file cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyLoadError),
    /// The system gives no thread.
    #[error("the thread of the audit log cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

impl Authority {
    /// Reads the policy file and opens the log. Blocks.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn open(
        group: &str,
        node: NodeId,
        file: &Path,
        store: Arc<Store>,
        registry: &mut Registry,
    ) -> Result<Arc<Self>, AuthorityError> {
        let stamped = PolicyFile::new(file);
        let policy = load_policy(file)?;
        tracing::info!(file = %file.display(), digest = %policy.digest(), rules = policy.rules().count(), "policy in force");
        warn_about(&policy, file);
        let audit = AuditLog::start(Arc::clone(&store))?;
        let metrics = AuthorityMetrics::register(registry, audit.recorded());
        let disk = Disk::register(registry);
        disk.look(&store);
        let past = Past::register(registry);
        Ok(Arc::new(Self {
            gate: Gate::new(group, node, policy, StoreSlots::new(Arc::clone(&store))),
            file: stamped,
            store,
            audit,
            grants: Grants::default(),
            refused: Repeatable::of("refusals"),
            repeated: Repeatable::of("decisions that allow this"),
            quotas: Quotas::default(),
            metrics,
            disk,
            past,
            agents: OnceLock::new(),
        }))
    }

    /// Asks the agents that rules name by this from now on; the first one stays. Without one, what needs an agent is refused.
    pub fn ask_agents_by(&self, agents: Arc<dyn Agents>) {
        let _ = self.agents.set(agents);
    }

    /// Asks the agent of the rule that will decide about this request, if it has one. What it says is about this request alone: it
    /// goes into the decision with it. Where nobody has asked, as when the policy changes in between, the decision refuses. What its rate, a lack of approvals
    /// or the client's submissions refuse anyway no agent is asked about, and the decision says why.
    async fn hear(self: &Arc<Self>, presented: Presented, asked: &Asked) -> Presented {
        if presented.is_heard() || !self.policy().has_agents() {
            return presented;
        }
        let (this, about) = (Arc::clone(self), asked.clone());
        // It may verify signatures.
        let found = tokio::task::spawn_blocking(move || {
            let due = this.gate.agent_due(&presented, &about, UnixTime::now());
            let within = |due: &Due| !due.is_submission || this.may_submit(&due.question.client).is_ok();
            (presented, due.filter(within))
        });
        let Ok((presented, due)) = found.await else { return Presented::default() };
        let Some(Due { agent, question, .. }) = due else { return presented };
        let heard = match self.agents.get() {
            Some(agents) => agents.ask(&agent, question).await,
            None => Heard::silence(agent.name().clone(), "this node asks no agents"),
        };
        presented.heard(heard)
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.gate.policy().current()
    }

    /// The group's name, as requests and consents contain it.
    #[must_use]
    pub fn group(&self) -> &str {
        self.gate.group()
    }

    /// The path of the policy file.
    #[must_use]
    pub fn policy_file(&self) -> &Path {
        self.file.path()
    }

    /// The node's store.
    #[must_use]
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether an allowed request like this one takes a slot. A node whose store may be an old copy must not decide
    /// about such a request.
    #[must_use]
    pub fn takes_slot(&self, request: &Request) -> bool {
        self.gate.takes_slot(request)
    }

    /// The slots that this request would take, where the hosts' order says who is first: that has to be waited for before
    /// [`Authority::decide`], which promises them, and is to be given what is returned beside them. The rule's agent has been heard then, and the request
    /// counts for its rate and as a submission, since the claims leave.
    ///
    /// # Errors
    /// [`Refusal::Panicked`].
    pub async fn races(
        self: &Arc<Self>,
        presented: Presented,
        request: &Request,
    ) -> Result<(Presented, Vec<SlotRace>), Refusal> {
        let presented = self.hear(presented, &request.asked()).await;
        let (this, request) = (Arc::clone(self), request.clone());
        // It looks at the store, and verifies signatures.
        let found = tokio::task::spawn_blocking(move || {
            let found = this.gate.races(&presented, &request, UnixTime::now());
            match found.filter(|(client, _)| this.submission(client).is_ok()) {
                Some((_, races)) => (presented.counted(), races),
                None => (presented, Vec::new()),
            }
        });
        found.await.map_err(|error| {
            tracing::error!(%error, "looking for races panicked");
            Refusal::Panicked
        })
    }

    /// Decides about a request and records the decision. If the request lets something out, the record is durable
    /// before this returns, unless the rule that allows it says `record = "soon"`.
    ///
    /// # Errors
    /// The refusal, with the rule and what would help.
    pub async fn decide<R: Asks + Send + 'static>(
        self: &Arc<Self>,
        presented: Presented,
        request: R,
    ) -> Result<Granted<R>, Refusal> {
        let granted = self.on_record(self.decided(presented, request).await?).await?;
        tracing::Span::current().record("client", granted.client().as_str());
        Ok(granted)
    }

    async fn decided<R: Asks + Send + 'static>(
        self: &Arc<Self>,
        presented: Presented,
        request: R,
    ) -> Result<Decided<R>, Refusal> {
        let asked = request.asked();
        let presented = self.hear(presented, &asked).await;
        if self.takes_long(&presented, &asked) {
            let this = Arc::clone(self);
            let decide = move || this.decide_now(&presented, request, &asked);
            tokio::task::spawn_blocking(decide).await.unwrap_or_else(|error| {
                tracing::error!(%error, "a decision panicked");
                Err(Refusal::Panicked)
            })
        } else {
            self.decide_now(&presented, request, &asked)
        }
    }

    /// Whether deciding may take longer than the network's threads can spare: it verifies signatures, waits for the
    /// disk to take a slot, or digests a long statement.
    fn takes_long(&self, presented: &Presented, asked: &Asked) -> bool {
        presented.is_signed()
            || asked.statement.len() > SHORT_STATEMENT
            || self.policy().takes_slot(asked.key.as_deref(), asked.operation)
    }

    /// Decides. May block on the disk, for slots.
    fn decide_now<R>(&self, presented: &Presented, request: R, asked: &Asked) -> Result<Decided<R>, Refusal> {
        let judged = self.judge(presented, request, asked)?;
        self.record(judged)
    }

    /// Decides, and records nothing.
    fn judge<R>(&self, presented: &Presented, request: R, asked: &Asked) -> Result<Judged<R>, Refusal> {
        self.audit.check()?;
        self.gate.decide_asked(presented, request, asked, UnixTime::now())
    }

    /// Takes a place among the running instances for a statement of so many bytes, for the account of the client of
    /// these terms. `load`: how many instances run, and how many may.
    ///
    /// # Errors
    /// [`Refusal::Quota`]: it has as many as the policy allows, or the node is nearly full and others come first.
    pub fn account(&self, terms: &Terms, bytes: usize, load: (usize, usize)) -> Result<Asker, Refusal> {
        let client = terms.client();
        let limits = self.policy().limits_of(client);
        let place = self.quotas.instance(client, &limits, bytes, load).map_err(|error| self.exhausted(error))?;
        Ok(Asker { name: client.as_str().into(), result_bytes: limits.result_bytes, place: Arc::new(place) })
    }

    /// Takes a place for a computation that this client has the node do and that is no instance. `load`: how many run or wait, and how many may.
    ///
    /// # Errors
    /// [`Refusal::Quota`]: it has so many that others would find no place.
    pub fn computation(&self, client: &Name, load: (usize, usize)) -> Result<Place, Refusal> {
        self.quotas.computation(client, load).map_err(|error| self.exhausted(error))
    }

    /// Counts one of the client's submissions: a request that has the node compute with a share, which deciding about it counts by itself, or with a
    /// key's public part or the policy, also where no rule with a rate is about it.
    ///
    /// # Errors
    /// [`Refusal::Quota`]: it asks more often than the policy allows.
    pub fn submission(&self, client: &Name) -> Result<(), Refusal> {
        let limits = self.policy().limits_of(client);
        self.quotas.submission(client, &limits, UnixTime::now()).map_err(|error| self.exhausted(error))
    }

    /// Whether one more submission of the client would be within what the policy allows. Counts nothing.
    fn may_submit(&self, client: &Name) -> Result<(), QuotaError> {
        let limits = self.policy().limits_of(client);
        self.quotas.look_at_submissions(client, &limits, UnixTime::now())
    }

    /// Takes a place for a stream of this client.
    ///
    /// # Errors
    /// [`Refusal::Quota`]: it has as many as the policy allows.
    pub fn stream(&self, client: &Name) -> Result<Place, Refusal> {
        let limits = self.policy().limits_of(client);
        self.quotas.stream(client, &limits).map_err(|error| self.exhausted(error))
    }

    fn exhausted(&self, error: QuotaError) -> Refusal {
        self.metrics.exhausted(error.name());
        error.into()
    }

    /// Remembers which client was allowed the instance.
    pub fn remember(&self, instance: InstanceId, terms: &Terms) {
        self.grants.add(instance, terms.clone());
    }

    /// Decides whether a client may have the result of an instance: the client must have been allowed the operation
    /// that made it, and the policy must still allow that. As for [`Authority::decide`], the decision is recorded when
    /// this returns.
    ///
    /// # Errors
    /// The refusal.
    pub async fn decide_result(
        &self,
        presented: &Presented,
        instance: InstanceId,
    ) -> Result<Granted<InstanceId>, Refusal> {
        self.on_record(self.decide_result_now(presented, instance)?).await
    }

    /// Returns the permission once its record is on the disk, if it has to be.
    async fn on_record<R>(&self, (granted, ticket): Decided<R>) -> Result<Granted<R>, Refusal> {
        if let Some(ticket) = ticket {
            self.audit.durable(ticket).await?;
        }
        Ok(granted)
    }

    fn decide_result_now(&self, presented: &Presented, instance: InstanceId) -> Result<Decided<InstanceId>, Refusal> {
        self.audit.check()?;
        let (policy, now) = (self.policy(), UnixTime::now());
        let caller = match presented.caller(&policy) {
            Ok(caller) => caller,
            Err(error) => {
                let stranger = Asked::new(Operation::Status);
                return self.record(self.gate.stranger(&policy, &stranger.ask(self.group(), &[]), now, error));
            }
        };
        let all = self.grants.of(&instance);
        if all.is_empty() {
            return Err(Refusal::UnknownInstance(instance));
        }
        let Some(terms) = all.into_iter().find(|terms| terms.client == *caller.client()) else {
            return Err(Refusal::OthersInstance { client: caller.client().clone() });
        };
        let judged = self.gate.decide_result(&caller, &terms, instance, now);
        // What it has been given once it may have again and again.
        let is_repeatable = judged.answer.is_ok() && !self.grants.is_first_look(&instance, caller.client());
        self.record(Judged { is_repeatable, first: judged.first && !is_repeatable, ..judged })
    }

    /// Records a decision; returns the permission.
    fn record<R>(&self, judged: Judged<R>) -> Result<Decided<R>, Refusal> {
        let (record, decided) = self.counted(judged);
        let waits = matches!(decided, Ok((_, true)));
        let ticket = record.map(|record| self.audit.append(record, waits));
        decided.map(|(granted, first)| (granted, ticket.filter(|_| first)))
    }

    /// Counts a decision. Returns its record, unless it is one of too many that can be had without end, which are recorded at a bounded rate for each
    /// client and for all strangers together; and the permission, with whether its record has to be durable before it is used.
    fn counted<R>(&self, judged: Judged<R>) -> (Option<AuditRecord>, Counted<R>) {
        let Judged { answer, mut record, first, client, mut code, signed, is_submission, is_repeatable } = judged;
        let mut too_many = |refusal: &Refusal| {
            (record.allowed, code) = (false, QUOTA);
            record.reason = QUOTA.to_owned();
            record.detail = refusal.to_string();
        };
        let answer = match (answer, &client) {
            // It counts before it is on record: what is too much must not fill the disk.
            (Ok(granted), Some(client)) if is_submission => {
                self.submission(client).map(|()| granted).inspect_err(too_many)
            }
            // Its agent was not asked because there are too many.
            (Err(refusal), Some(client)) if is_submission && refusal.is_unasked() => match self.may_submit(client) {
                Ok(()) => Err(refusal),
                Err(error) => {
                    let refusal = self.exhausted(error);
                    too_many(&refusal);
                    Err(refusal)
                }
            },
            (answer, _) => answer,
        };
        self.metrics.decided(answer.is_ok(), code);
        match answer {
            Ok(granted) => {
                if let (Some(client), Some(signed)) = (&client, &signed) {
                    self.gate.policy().state().admit(client, signed);
                }
                let record = if is_repeatable { self.repeated.take(client.as_ref(), record) } else { Some(record) };
                (record, Ok((granted, first)))
            }
            Err(refusal) => (self.refused.take(client.as_ref(), record), Err(self.advised(refusal))),
        }
    }

    /// Adds advice if the policy names nobody.
    fn advised(&self, refusal: Refusal) -> Refusal {
        match refusal {
            Refusal::Unidentified { error, .. } => {
                let begin = self.policy().is_empty().then(|| how_to_begin(self.file.path()));
                Refusal::Unidentified { error, begin }
            }
            other => other,
        }
    }

    /// The client that the policy names by a certificate with this SHA-256 fingerprint.
    #[must_use]
    pub fn client_of(&self, certificate: &[u8; 32]) -> Option<Name> {
        self.policy().caller_by_certificate(*certificate).ok().map(|caller| caller.client().clone())
    }

    /// The client that is recognised before anything of the request is read. `None`: a stranger, or a caller whose
    /// signature is in the request.
    #[must_use]
    pub fn recognise(&self, presented: &Presented) -> Option<Name> {
        presented.client(&self.policy())
    }

    /// Whether callers without a certificate may connect.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        self.policy().has_tokens()
    }

    /// Whether any client has a token with this key.
    #[must_use]
    pub fn has_token(&self, key: TokenKey) -> bool {
        self.policy().has_token(key)
    }

    /// Reads the policy file again and puts it in force if it is valid. Blocks.
    ///
    /// # Errors
    /// [`PolicyLoadError`]: the old policy stays in force.
    pub fn reload(&self) -> Result<Reload, PolicyLoadError> {
        let _turn = self.file.turn();
        let file = self.file.path().display().to_string();
        let reloaded = self.file.text().and_then(|text| Ok(self.gate.policy().reload(&text, &file)?));
        self.metrics.reloaded(reloaded.as_ref().ok());
        match &reloaded {
            Ok(Reload { changed: false, .. }) => tracing::debug!(file, "the policy file says what it said"),
            Ok(reload) => {
                let digest = self.policy().digest();
                tracing::info!(file, %digest, gone = ?reload.rules_gone, "a new policy is in force");
                for rule in &reload.signing_rules_gone {
                    tracing::warn!(%rule, "a signing rule is gone: nothing limits its slots any more");
                }
                warn_about(&self.policy(), self.file.path());
            }
            Err(error) => tracing::error!(%error, "the policy file was not taken: the old policy stays in force"),
        }
        reloaded
    }

    /// Reads the file again if it changed. Blocks.
    pub fn reload_if_changed(&self) {
        if self.file.has_changed() {
            // An invalid file has been logged.
            let _ = self.reload();
        }
    }

    /// Periodic work: the policy file, refusals that were left out, the disk. Blocks.
    pub fn look_after(&self) {
        self.reload_if_changed();
        self.file.tell_whether_gone();
        self.disk.look(&self.store);
        let now = UnixTime::now();
        for record in self.refused.left_over(now).into_iter().chain(self.repeated.left_over(now)) {
            self.audit.append(record, false);
        }
        self.put_past_away();
    }

    /// Whether requests can be decided and recorded. `Ok` may have a warning for the operator.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn standing(&self) -> Result<Option<String>, String> {
        if self.policy().is_empty() {
            return Err("no policy names a client, so that every request is refused: see the node's log".to_owned());
        }
        match self.audit.check() {
            Err(AuditUnavailable::Full) | Ok(()) if self.store.has_failed() => {
                Err("the disk of its store does not work: see the node's log".to_owned())
            }
            Err(AuditUnavailable::Full) | Ok(()) => {
                Ok(self.disk.warning().or_else(|| self.file.warning()).or_else(|| self.past.warning()))
            }
            // The disk's words are for the operator alone, but so is this.
            Err(error) => Err(error.to_string()),
        }
    }

    /// Blocks until all decisions so far are in the log.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn flush(&self) -> Result<(), Refusal> {
        Ok(self.audit.flush()?)
    }

    /// Writes the rest of the log and ends its thread; every request after this is refused. Blocks.
    pub fn close(&self) {
        self.audit.close();
    }
}
