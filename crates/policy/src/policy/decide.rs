//! The decision.

use std::sync::{Mutex, PoisonError};

use theta_statements::{Ask, Digest, Name, UnixTime};

use super::rule::Mismatch;
use super::{Effect, Policy, Reason, Recording, Rule, SigningRule};
use crate::Request;
use crate::agent::{Agent, Heard};
use crate::approval::{Consents, count};
use crate::copies::Copies;
use crate::rate::{Rate, RateAnswer, RateLimiter};
use crate::slots::{SlotClaim, SlotStanding, SlotState};

/// A node's memory between decisions: rates and signed requests are lost on a restart, slots are kept for ever. It outlives policies.
#[derive(Debug, Default)]
pub struct State<S> {
    rates: Mutex<RateLimiter>,
    copies: Mutex<Copies>,
    slots: S,
}

impl<S: SlotState> State<S> {
    /// A state with this memory of slots and unused rates.
    #[must_use]
    pub fn new(slots: S) -> Self {
        Self { rates: Mutex::default(), copies: Mutex::default(), slots }
    }

    /// The memory of slots.
    pub const fn slots(&self) -> &S {
        &self.slots
    }

    pub(crate) fn keep_rules(&self, keep: impl Fn(&Name) -> bool) {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).keep_rules(keep);
    }

    /// Whether this very signed request was admitted before: then this is a copy, whoever has brought it.
    #[must_use]
    pub fn is_copy(&self, request: &Request<'_>) -> bool {
        let copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        request.signed_as().is_some_and(|(id, _)| copies.is_admitted(request.client(), &id))
    }

    /// Notes that a request that was decided about is carried out: copies of it are ones of that.
    pub fn admit(&self, client: &Name, signed: &Digest) {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner).admit(client, signed);
    }

    /// Counts a request for its rule's rate. Of a signed one copies go around, and whoever has seen it can bring more: they cost its signer nothing.
    fn count(&self, rule: &Rule, request: &Request<'_>, now: UnixTime) -> Result<(), Reason> {
        let take = || rule.rate.map_or(Ok(()), |rate| self.take(&rule.name, request.client(), rate, now));
        if request.is_counted() {
            return Ok(());
        }
        let Some((id, until)) = request.signed_as() else { return take() };
        // The lock is held while the rate is taken: of two copies that come at once one counts, and neither passes if it may not.
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if !copies.contains(request.client(), &id) {
            take()?;
            copies.add(request.client(), id, until, now);
        }
        Ok(())
    }

    /// Whether a request is within its rule's rate. Counts nothing.
    fn look(&self, rule: &Rule, request: &Request<'_>, now: UnixTime) -> Result<(), Reason> {
        let Some(rate) = rule.rate.filter(|_| !request.is_counted()) else { return Ok(()) };
        // In the order in which both are locked to count.
        let copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if request.signed_as().is_some_and(|(id, _)| copies.contains(request.client(), &id)) {
            return Ok(());
        }
        let rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        answered(rates.look(&rule.name, request.client(), rate, now), rate)
    }

    fn take(&self, rule: &Name, client: &Name, rate: Rate, now: UnixTime) -> Result<(), Reason> {
        answered(self.rates.lock().unwrap_or_else(PoisonError::into_inner).take(rule, client, rate, now), rate)
    }
}

fn answered(answer: RateAnswer, rate: Rate) -> Result<(), Reason> {
    match answer {
        RateAnswer::Taken => Ok(()),
        RateAnswer::Wait(wait) => Err(Reason::TooOften { rate, wait }),
        RateAnswer::NoRoom => Err(Reason::RatesFull),
    }
}

/// Whether a request is allowed, by which rule, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The rule that decided; `None` if no rule matches the request.
    pub rule: Option<Name>,
    /// Why the request was allowed or refused.
    pub reason: Reason,
    /// The approvers whose approvals the rule counted.
    pub approvers: Vec<Name>,
    /// When the record of the decision has to be on the disk. Records of refusals may come soon, because nothing leaves the node.
    pub recording: Recording,
    /// The slots that an allowed request needs. Nothing that depends on a secret may leave the node for the request before all of
    /// them are certified.
    pub slots: Vec<SlotClaim>,
    /// Whether it is a copy of a signed request that was [admitted](State::admit) before.
    pub is_copy: bool,
    /// What the rule's agent said as it consented, for the record: who says it, and a line. `None` if it has consented without words, or there is none.
    pub said: Option<String>,
}

impl Decision {
    /// Allowed by a rule whose conditions are not asked about.
    fn allowed(rule: &Rule) -> Self {
        Self::plain(true, Some(rule.name.clone()), Reason::Allowed, rule.recording)
    }

    const fn refused(rule: Option<Name>, reason: Reason) -> Self {
        Self::plain(false, rule, reason, Recording::Soon)
    }

    /// Without approvers, slots, and words of an agent.
    const fn plain(allowed: bool, rule: Option<Name>, reason: Reason, recording: Recording) -> Self {
        let (is_copy, said) = (false, None);
        Self { allowed, rule, reason, approvers: Vec::new(), recording, slots: Vec::new(), is_copy, said }
    }
}

/// Which rule decides.
pub(super) enum Verdict<'a> {
    Denied(&'a Rule),
    /// Allowed by this rule if its conditions hold.
    Allowed(&'a Rule),
    Nobody(Option<(&'a Rule, Reason)>),
}

/// What a request that a rule allows has with it: who has approved it, its slots, and what the rule's agent says.
type Met = (Vec<Name>, Vec<SlotClaim>, Option<String>);

impl Policy {
    /// Decides about a request. A deny rule that matches the request beats every allow rule. Else the first allow rule in the file
    /// that matches decides; if one of its conditions fails, the request is refused without asking a later rule. If no rule
    /// matches, the request is refused.
    ///
    /// Conditions are checked in this order: agent, rate, approvals, signing rules. (An agent that nobody has asked, because rate or approvals refuse the
    /// request, is not the reason: they are.) A signed request counts for a rate once, however often and by whomever
    /// it is brought. A request that fails at a later one has still used
    /// the earlier ones: a request that is refused for lack of approvals counts for its rate. Slots come last, because they may
    /// wait for the disk. A slot that this node gave to another message does not refuse the request: [`Decision::slots`] then
    /// tells that the request needs a certificate for the slot.
    pub fn decide<S: SlotState>(&self, request: &Request<'_>, now: UnixTime, state: &State<S>) -> Decision {
        let rule = match self.deciding_rule(request, now) {
            Ok(rule) => rule,
            Err((rule, reason)) => return Decision::refused(rule, reason),
        };
        let (decided_by, recording) = (Some(rule.name.clone()), rule.recording);
        let is_copy = state.is_copy(request);
        match self.check_conditions(rule, request, now, state) {
            Ok((approvers, slots, said)) => {
                let reason = slots.iter().find_map(conditional).unwrap_or(Reason::Allowed);
                Decision { allowed: true, rule: decided_by, reason, approvers, recording, slots, is_copy, said }
            }
            Err(reason) => Decision::refused(decided_by, reason),
        }
    }

    /// Decides about reading what every client checks answers by: the public part of the ask's key, or the group's ledger if the ask has no
    /// key. As [`decide`](Self::decide), but where no rule is about it, whoever may do anything with the key, or anything at all, may read it
    /// without conditions: a client that cannot learn that a key was rotated would take honest nodes for liars.
    pub fn decide_public<S: SlotState>(&self, request: &Request<'_>, now: UnixTime, state: &State<S>) -> Decision {
        let decision = self.decide(request, now, state);
        // Only then has no rule decided, and nothing been counted.
        let is_silent = matches!(decision.reason, Reason::NoRule | Reason::NotInForce(_));
        let rule = self.rule_that_lets_in(request.client().as_str(), request.ask(), now).filter(|_| is_silent);
        rule.map_or(decision, Decision::allowed)
    }

    /// The rule by which a client may read what an ask for a public part is about, if no rule is about that.
    pub(super) fn rule_that_lets_in(&self, client: &str, ask: &Ask<'_>, now: UnixTime) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.lets_in(client, ask, now))
    }

    /// Whose consent has to be asked before this request is decided. Nobody's where its rate or a lack of approvals refuses the request: a client that asks
    /// more often than it may, or what too few have approved, does not have agents work. Counts and takes nothing.
    #[must_use]
    pub fn agent_for<S: SlotState>(&self, request: &Request<'_>, now: UnixTime, state: &State<S>) -> Option<&Agent> {
        let rule = self.deciding_rule(request, now).ok()?;
        let agent = rule.agent.as_ref()?;
        (state.look(rule, request, now).is_ok() && approved(rule, request, now).is_ok()).then_some(agent)
    }

    /// Counts a request for which something leaves before it is decided about, if its agent consents and its rate allows it: whether that is so. The
    /// decision is to be made about the same request, as [counted](Request::counted).
    pub fn count<S: SlotState>(&self, request: &Request<'_>, now: UnixTime, state: &State<S>) -> bool {
        let Ok(rule) = self.deciding_rule(request, now) else { return false };
        consented(rule, request).is_ok() && state.count(rule, request, now).is_ok()
    }

    /// Whether any rule has an agent.
    #[must_use]
    pub fn has_agents(&self) -> bool {
        self.rules.iter().any(|rule| rule.agent.is_some())
    }

    /// Decides without conditions, and counts and takes nothing. For fetching the result of an operation that was allowed before.
    pub fn still_allows(&self, request: &Request<'_>, now: UnixTime) -> Decision {
        match self.deciding_rule(request, now) {
            Ok(rule) => Decision::allowed(rule),
            Err((rule, reason)) => Decision::refused(rule, reason),
        }
    }

    /// The rule that allows the request if its conditions hold, or else the refusal.
    fn deciding_rule(&self, request: &Request<'_>, now: UnixTime) -> Result<&Rule, (Option<Name>, Reason)> {
        if !self.knows(request) {
            return Err((None, Reason::CredentialWithdrawn));
        }
        match self.verdict(request.client().as_str(), request.ask(), now) {
            Verdict::Denied(rule) => Err((Some(rule.name.clone()), Reason::Denied)),
            Verdict::Nobody(Some((rule, reason))) => Err((Some(rule.name.clone()), reason)),
            Verdict::Nobody(None) => Err((None, Reason::NoRule)),
            Verdict::Allowed(rule) => Ok(rule),
        }
    }

    pub(super) fn verdict(&self, client: &str, ask: &Ask<'_>, now: UnixTime) -> Verdict<'_> {
        let (mut first, mut asleep, mut held) = (None, None, false);
        for rule in &self.rules {
            // A rule that allows messages on conditions is not passed by with their digests, to a rule without conditions after it.
            held |= first.is_none() && rule.holds_digest_back(client, ask, now);
            match (rule.mismatch(client, ask, now), rule.effect) {
                (None, Effect::Deny) => return Verdict::Denied(rule),
                (None, Effect::Allow) if held => {}
                (None, Effect::Allow) => first = first.or(Some(rule)),
                (Some(Mismatch::Validity(invalid)), Effect::Allow) => {
                    asleep = asleep.or(Some((rule, Reason::NotInForce(invalid))));
                }
                (Some(_), _) => {}
            }
        }
        first.map_or(Verdict::Nobody(asleep), Verdict::Allowed)
    }

    fn check_conditions<S: SlotState>(
        &self,
        rule: &Rule,
        request: &Request<'_>,
        now: UnixTime,
        state: &State<S>,
    ) -> Result<Met, Reason> {
        // First of all, so that what an agent refuses takes nothing.
        let said = match consented(rule, request) {
            Err(unasked @ Reason::AgentUnasked { .. }) => {
                state.look(rule, request, now)?;
                // What lacks approvals counts for its rate, whether an agent would be asked or not.
                return match approved(rule, request, now) {
                    Ok(_) => Err(unasked),
                    Err(lacking) => state.count(rule, request, now).and(Err(lacking)),
                };
            }
            consented => consented?,
        };
        state.count(rule, request, now)?;
        let consents = approved(rule, request, now)?;
        // All slots are found before one is taken, so that a request that one rule refuses takes no slot of another rule.
        let covering = self.signing.iter().filter(|signing| signing.covers(request.ask()));
        let found =
            covering.map(|signing| Ok((signing, signing.slot_of(request.ask())?))).collect::<Result<Vec<_>, _>>()?;
        let take =
            |(signing, slot): (&SigningRule, u64)| signing.take(request.ask(), request.statement(), slot, &state.slots);
        let slots = found.into_iter().map(take).collect::<Result<_, _>>()?;
        Ok((consents.approvers, slots, said))
    }
}

/// Whose approvals count, if the rule needs any, and enough have given theirs.
fn approved(rule: &Rule, request: &Request<'_>, now: UnixTime) -> Result<Consents, Reason> {
    let Some(quorum) = &rule.approvals else { return Ok(Consents::default()) };
    let consents = count(&quorum.of, request.ask(), request.statement(), now);
    if consents.approvers.len() < quorum.need {
        return Err(Reason::TooFewApprovals { need: quorum.need, consents });
    }
    Ok(consents)
}

/// Whether the rule's agent, if it has one, consents, and what it says.
fn consented(rule: &Rule, request: &Request<'_>) -> Result<Option<String>, Reason> {
    let Some(agent) = &rule.agent else { return Ok(None) };
    let agent = agent.name.clone();
    match request.agent_said().filter(|heard| *heard.agent() == agent).map(Heard::answer) {
        Some(Ok(words)) => Ok((!words.is_empty()).then(|| format!("agent {agent} consents: {words}"))),
        Some(Err(objection)) => Err(Reason::AgentObjects { agent, objection: objection.clone() }),
        None => Err(Reason::AgentUnasked { agent }),
    }
}

/// The reason of a decision that needs a certificate for this slot.
fn conditional(claim: &SlotClaim) -> Option<Reason> {
    let (signing, slot) = (claim.rule.clone(), claim.slot);
    match claim.standing {
        SlotStanding::Taken => None,
        SlotStanding::Contested { .. } => Some(Reason::SlotContested { signing, slot }),
        SlotStanding::Over { mark } => Some(Reason::SlotOver { signing, slot, mark }),
    }
}
