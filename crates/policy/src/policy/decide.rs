//! The decision.

use std::sync::{Mutex, PoisonError};

use theta_statements::{Ask, Name, UnixTime};

use super::rule::Mismatch;
use super::{Effect, Policy, Reason, Recording, Rule, SigningRule};
use crate::Request;
use crate::approval::{Consents, count};
use crate::rate::{Rate, RateAnswer, RateLimiter};
use crate::slots::{SlotClaim, SlotStanding, SlotState};

/// What a node remembers between decisions: rates in memory, slots for ever. It outlives policies.
#[derive(Debug, Default)]
pub struct State<S> {
    rates: Mutex<RateLimiter>,
    slots: S,
}

impl<S: SlotState> State<S> {
    /// With this memory of slots, and nothing asked yet.
    #[must_use]
    pub fn new(slots: S) -> Self {
        Self { rates: Mutex::default(), slots }
    }

    /// The memory of slots.
    pub const fn slots(&self) -> &S {
        &self.slots
    }

    pub(crate) fn keep_rules(&self, keep: impl Fn(&Name) -> bool) {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).keep_rules(keep);
    }

    fn take(&self, rule: &Name, client: &Name, rate: Rate, now: UnixTime) -> Result<(), Reason> {
        match self.rates.lock().unwrap_or_else(PoisonError::into_inner).take(rule, client, rate, now) {
            RateAnswer::Taken => Ok(()),
            RateAnswer::Wait(wait) => Err(Reason::TooOften { rate, wait }),
            RateAnswer::NoRoom => Err(Reason::RatesFull),
        }
    }
}

/// Whether a request is allowed, by which rule, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Decision {
    /// Whether.
    pub allowed: bool,
    /// The rule that decided; `None` if none was about the request.
    pub rule: Option<Name>,
    /// Why.
    pub reason: Reason,
    /// Whose consents the rule counted.
    pub approvers: Vec<Name>,
    /// When its record has to be on the disk; refusals let nothing out, and theirs may come soon.
    pub recording: Recording,
    /// What an allowed request holds of slots. It is allowed for the rest alone: nothing that hangs on a secret may leave for it
    /// before all of these are certified.
    pub slots: Vec<SlotClaim>,
}

impl Decision {
    const fn refused(rule: Option<Name>, reason: Reason) -> Self {
        let recording = Recording::Soon;
        Self { allowed: false, rule, reason, approvers: Vec::new(), recording, slots: Vec::new() }
    }
}

/// Which rule decides.
pub(super) enum Verdict<'a> {
    Denied(&'a Rule),
    /// If its conditions hold.
    Allowed(&'a Rule),
    Nobody(Option<(&'a Rule, Reason)>),
}

impl Policy {
    /// Decides. Denied by default; a deny rule that is about the request beats every allow rule; else the first allow rule
    /// in the file that is about it decides, and if one of its conditions does not hold, no later rule is asked.
    ///
    /// Conditions are looked at in this order: rate, approvals, signing rules. Those that hold before one that does not have
    /// taken what they take: a request that is refused for lack of approvals counts for its rate. Slots come last; they may
    /// wait for the disk. A slot that another message has here does not refuse the request: it is allowed if a certificate says
    /// that the slot is its own, as [`Decision::slots`] tells.
    pub fn decide<S: SlotState>(&self, request: &Request<'_>, now: UnixTime, state: &State<S>) -> Decision {
        let rule = match self.deciding_rule(request, now) {
            Ok(rule) => rule,
            Err((rule, reason)) => return Decision::refused(rule, reason),
        };
        let (decided_by, recording) = (Some(rule.name.clone()), rule.recording);
        match self.check_conditions(rule, request, now, state) {
            Ok((approvers, slots)) => {
                let reason = slots.iter().find_map(conditional).unwrap_or(Reason::Allowed);
                Decision { allowed: true, rule: decided_by, reason, approvers, recording, slots }
            }
            Err(reason) => Decision::refused(decided_by, reason),
        }
    }

    /// Whether a rule allows it, conditions aside: nothing is counted or taken. For the result of an operation that was
    /// allowed before: is it still for this client?
    pub fn still_allows(&self, request: &Request<'_>, now: UnixTime) -> Decision {
        match self.deciding_rule(request, now) {
            Ok(rule) => {
                let (rule, recording) = (Some(rule.name.clone()), rule.recording);
                let (approvers, slots) = (Vec::new(), Vec::new());
                Decision { allowed: true, rule, reason: Reason::Allowed, approvers, recording, slots }
            }
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
        let (mut first, mut asleep) = (None, None);
        for rule in &self.rules {
            match (rule.mismatch(client, ask, now), rule.effect) {
                (None, Effect::Deny) => return Verdict::Denied(rule),
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
    ) -> Result<(Vec<Name>, Vec<SlotClaim>), Reason> {
        if let Some(rate) = rule.rate {
            state.take(&rule.name, request.client(), rate, now)?;
        }
        let consents = match &rule.approvals {
            None => Consents::default(),
            Some(quorum) => {
                let consents = count(&quorum.of, request.ask(), request.statement(), now);
                if consents.approvers.len() < quorum.need {
                    return Err(Reason::TooFewApprovals { need: quorum.need, consents });
                }
                consents
            }
        };
        // All slots are looked at before one is taken: what one rule refuses takes no slot of another.
        let covering = self.signing.iter().filter(|signing| signing.covers(request.ask()));
        let found =
            covering.map(|signing| Ok((signing, signing.slot_of(request.ask())?))).collect::<Result<Vec<_>, _>>()?;
        let take =
            |(signing, slot): (&SigningRule, u64)| signing.take(request.ask(), request.statement(), slot, &state.slots);
        let slots = found.into_iter().map(take).collect::<Result<_, _>>()?;
        Ok((consents.approvers, slots))
    }
}

/// Why a request is allowed only if a certificate turns up.
fn conditional(claim: &SlotClaim) -> Option<Reason> {
    let (signing, slot) = (claim.rule.clone(), claim.slot);
    match claim.standing {
        SlotStanding::Taken => None,
        SlotStanding::Contested { .. } => Some(Reason::SlotContested { signing, slot }),
        SlotStanding::Over { mark } => Some(Reason::SlotOver { signing, slot, mark }),
    }
}
