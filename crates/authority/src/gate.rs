//! The decision itself: a policy and its memory, without files, clocks or threads.

use theta_names::NodeId;
use theta_policy::{
    Answer, Caller, Decision, Policy, PolicyHandle, Recording, SlotRace, SlotScope, SlotState, Unidentified,
};
use theta_statements::audit::AuditRecord;
use theta_statements::{Ask, Digest, Name, UnixTime};

use crate::{Asked, Asks, Denial, Granted, InstanceId, Presented, Refusal, Request, Terms};

/// Decides about requests by a policy.
///
/// The gate of a node in service belongs to its [`Authority`](crate::Authority), which records each decision before it
/// takes effect. Code without policy file and log (a simulation, a test) makes a gate of its own, with a policy that it
/// wrote: there is no permission without a policy.
#[derive(Debug)]
pub struct Gate<S> {
    group: String,
    node: NodeId,
    policy: PolicyHandle<S>,
}

/// A decision, and its record.
#[derive(Debug)]
#[must_use]
pub struct Judged<R> {
    /// The permission, or the refusal.
    pub answer: Result<Granted<R>, Refusal>,
    /// The record of the decision.
    pub record: AuditRecord,
    /// Whether the record has to be durable before anything is done: it has to if something is let out, unless the rule
    /// says otherwise.
    pub first: bool,
    /// The client, if the policy knows it.
    pub client: Option<Name>,
    /// The reason's name in metrics.
    pub(crate) code: &'static str,
    /// The id of the signed request that it came in.
    pub(crate) signed: Option<Digest>,
    /// Whether it counts as one of the client's submissions if it is allowed.
    pub(crate) is_submission: bool,
    /// Whether it can be repeated without end, and lets nothing out that it has not let out before: then not each is recorded by itself.
    pub(crate) is_repeatable: bool,
}

impl<S: SlotState> Gate<S> {
    /// The gate of a node in a group, with a memory of slots.
    #[must_use]
    pub fn new(group: &str, node: NodeId, policy: Policy, slots: S) -> Self {
        Self { group: group.to_owned(), node, policy: PolicyHandle::new(policy, slots) }
    }

    /// Decides about a request.
    ///
    /// # Errors
    /// [`Refusal::Enclosure`], which is not recorded: no request could be understood.
    pub fn decide<R: Asks>(&self, presented: &Presented, request: R, now: UnixTime) -> Result<Judged<R>, Refusal> {
        let asked = request.asked();
        self.decide_asked(presented, request, &asked, now)
    }

    /// `asked` describes `request`.
    pub(crate) fn decide_asked<R>(
        &self,
        presented: &Presented,
        request: R,
        asked: &Asked,
        now: UnixTime,
    ) -> Result<Judged<R>, Refusal> {
        let (policy, enclosed) = (self.policy.current(), presented.enclosed()?);
        let ask = asked.ask(&self.group, &enclosed.approvals);
        let asking = match presented.asks(&policy, enclosed.signed.as_ref(), ask, now) {
            Ok(asking) => asking,
            Err(error) => return Ok(self.stranger(&policy, &ask, now, error)),
        };
        let state = self.policy.state();
        let decision =
            if asked.public { policy.decide_public(&asking, now, state) } else { policy.decide(&asking, now, state) };
        Ok(self.judged(&policy, &asking, request, now, decision, asked))
    }

    /// Decides whether a client may have the result of an instance that was allowed on these terms before: it may if
    /// the policy would still allow it. No quota or slot is taken.
    pub fn decide_result(
        &self,
        caller: &Caller,
        terms: &Terms,
        instance: InstanceId,
        now: UnixTime,
    ) -> Judged<InstanceId> {
        let (key, label, statement) = (terms.key.clone(), terms.label.clone(), instance.0.to_vec().into());
        let asked = Asked { key, label, statement, ..Asked::new(terms.operation) };
        let policy = self.policy.current();
        let asking = caller.asks(asked.ask(&self.group, &[]));
        let decision = policy.still_allows(&asking, now);
        self.judged(&policy, &asking, instance, now, decision, &asked)
    }

    /// The refusal and the record for a caller that the policy does not know.
    pub(crate) fn stranger<R>(&self, policy: &Policy, ask: &Ask<'_>, now: UnixTime, error: Unidentified) -> Judged<R> {
        let record =
            theta_policy::record_of_stranger(self.node.get(), now, ask.operation, ask.key, &error, policy.digest());
        let answer = Err(Refusal::Unidentified { error, begin: None });
        Judged {
            answer,
            record,
            first: false,
            client: None,
            code: "unidentified",
            signed: None,
            is_submission: false,
            is_repeatable: false,
        }
    }

    fn judged<R>(
        &self,
        policy: &Policy,
        asking: &theta_policy::Request<'_>,
        request: R,
        now: UnixTime,
        decision: Decision,
        asked: &Asked,
    ) -> Judged<R> {
        let record = theta_policy::record(self.node.get(), now, asking, &decision, policy.digest());
        let (client, code) = (asking.client().clone(), decision.reason.code());
        let first = asked.recorded_first || (asked.lets_out() && decision.recording == Recording::First);
        let (key, operation) = (asked.key.clone(), asked.operation);
        let Decision { allowed, rule, reason, slots, is_copy, .. } = decision;
        let answer = if allowed {
            let terms = Terms { client: client.clone(), key, operation, label: asked.label.clone(), rule };
            Ok(Granted::new(request, terms, slots, is_copy))
        } else {
            Err(Refusal::Denied(Box::new(Denial {
                client: client.clone(),
                operation,
                key,
                rule,
                reason,
                node: self.node,
            })))
        };
        Judged {
            answer,
            record,
            first: first && allowed && !is_copy,
            client: Some(client),
            code,
            signed: asking.signed_id(),
            is_submission: asked.is_submission && !is_copy && !asking.is_counted(),
            is_repeatable: is_copy || asked.public || !asked.lets_out(),
        }
    }

    /// The policy in force, with its memory.
    pub const fn policy(&self) -> &PolicyHandle<S> {
        &self.policy
    }

    /// The node's number.
    pub(crate) const fn node(&self) -> NodeId {
        self.node
    }

    /// The group's name, as requests and consents have it.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The slots that this request would take, where the hosts' order says who is first and this node has promised nobody yet, and the client. Nothing
    /// if the policy would refuse the request: then deciding about it says why. Claims leave for what is returned, so it has the consent of its agent and
    /// counts for its rate; nothing is decided.
    #[must_use]
    pub fn races(&self, presented: &Presented, request: &Request, now: UnixTime) -> Option<(Name, Vec<SlotRace>)> {
        let policy = self.policy.current();
        let enclosed = presented.enclosed().ok()?;
        let asked = request.asked();
        let ask = asked.ask(&self.group, &enclosed.approvals);
        let mut races = policy.races(&ask);
        let slots = self.policy.slots();
        // A memory that cannot be read refuses when it is asked to decide.
        races.retain(|SlotRace { key, rule, slot, .. }| {
            matches!(slots.decided(SlotScope { key, rule: rule.as_str() }, *slot), Ok(None))
        });
        if races.is_empty() {
            return None;
        }
        let asking = presented.asks(&policy, enclosed.signed.as_ref(), ask, now).ok()?;
        let refused = policy.explain(asking.client().as_str(), &ask, now).answer == Answer::Deny;
        let runs = !refused && policy.count(&asking, now, self.policy.state());
        runs.then(|| (asking.client().clone(), races))
    }

    /// Whether an allowed request like this one takes a slot.
    #[must_use]
    pub fn takes_slot(&self, request: &Request) -> bool {
        self.policy.current().takes_slot(Some(request.key().name.as_str()), request.operation())
    }
}
