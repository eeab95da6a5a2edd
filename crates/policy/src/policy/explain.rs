//! How the policy would decide, rule by rule.

use core::fmt;

use serde::Serialize;
use theta_names::Operation;
use theta_statements::{Ask, Digest, Name, UnixTime};

use super::decide::Verdict;
use super::rule::Mismatch;
use super::{Effect, Policy, Recording, Rule};
use crate::approval::count;

/// The answer that a request would get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Allowed.
    Allow,
    /// Refused.
    Deny,
    /// It depends on what the node remembers, on rates or slots, or on an agent.
    Depends,
}

/// How the policy would decide about a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The client's name.
    pub client: String,
    /// The operation.
    pub operation: Operation,
    /// The key's name, if the request has one.
    pub key: Option<String>,
    /// The time of the request.
    pub time: UnixTime,
    /// The answer.
    pub answer: Answer,
    /// The rule that decides.
    pub rule: Option<Name>,
    /// The reason, for people.
    pub reason: String,
    /// All rules in the file's order.
    pub rules: Vec<RuleReport>,
    /// The conditions of the rule that decides and of signing rules.
    pub conditions: Vec<ConditionReport>,
}

/// What a rule says about a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    /// The rule.
    pub rule: Name,
    /// The rule's line in the file, from 1.
    pub line: usize,
    /// What the rule does.
    pub effect: Effect,
    /// Whether the rule matches the request.
    pub matches: bool,
    /// Whether the rule decides.
    pub decides: bool,
    /// Why the rule does not match the request, or does not decide, or decides.
    pub why: String,
}

/// What a condition says about a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConditionReport {
    /// The condition.
    pub condition: String,
    /// Whether it holds; `None` if that depends on the node's memory.
    pub holds: Option<bool>,
    /// Details, for people.
    pub detail: String,
}

/// Why a client may read the public part of a key about whose listing no rule is.
const OF_ITS_PUBLIC_PART: &str = "allowed without conditions, to read the key's public part and have the node compute with it: who may do \
                                  anything with a key may do that";

/// The refusal of what names no key, that is of lists; the group's ledger may be read all the same.
fn with_ledger(refusal: &str, lets_in: Option<&Rule>) -> String {
    match lets_in {
        None => refusal.to_owned(),
        Some(rule) => format!(
            "{refusal}; but the group's ledger, which has the keys' public parts, may be read without conditions, as rule {} lets the \
             client do something",
            rule.name
        ),
    }
}

impl Policy {
    /// How the policy would decide about an ask of this client. The client need not be recognised, and nothing changes: rates and
    /// slots are listed as conditions, but not counted or taken.
    #[must_use]
    pub fn explain(&self, client: &str, ask: &Ask<'_>, now: UnixTime) -> Explanation {
        let known = self.credentials.values().any(|name| name.as_str() == client);
        let verdict = if known { self.verdict(client, ask, now) } else { Verdict::Nobody(None) };
        // As in `decide_public`: what every client checks answers by is read by whoever may do anything with it.
        let is_silent = known && ask.operation == Operation::KeysList && matches!(verdict, Verdict::Nobody(_));
        let lets_in = self.rule_that_lets_in(client, ask, now).filter(|_| is_silent);
        let reader = lets_in.filter(|_| ask.key.is_some());
        let decides = reader.or(match &verdict {
            Verdict::Denied(rule) | Verdict::Allowed(rule) | Verdict::Nobody(Some((rule, _))) => Some(*rule),
            Verdict::Nobody(None) => None,
        });
        let conditions = match &verdict {
            Verdict::Allowed(rule) => self.conditions(rule, ask, now),
            Verdict::Denied(_) | Verdict::Nobody(_) => Vec::new(),
        };
        let (answer, reason) = match &verdict {
            Verdict::Allowed(_) => answer(&conditions),
            Verdict::Denied(_) => (Answer::Deny, "a rule denies it".to_owned()),
            Verdict::Nobody(_) if reader.is_some() => (Answer::Allow, OF_ITS_PUBLIC_PART.to_owned()),
            Verdict::Nobody(Some((_, reason))) => (Answer::Deny, with_ledger(&reason.to_string(), lets_in)),
            Verdict::Nobody(None) if !known => (Answer::Deny, format!("the policy has no client {client:?}")),
            Verdict::Nobody(None) => (Answer::Deny, with_ledger("no rule allows it", lets_in)),
        };
        Explanation {
            client: client.to_owned(),
            operation: ask.operation,
            key: ask.key.map(str::to_owned),
            time: now,
            answer,
            rule: decides.map(|rule| rule.name.clone()),
            reason,
            rules: self.rules.iter().map(|rule| report(rule, decides, client, ask, now)).collect(),
            conditions,
        }
    }

    fn conditions(&self, rule: &Rule, ask: &Ask<'_>, now: UnixTime) -> Vec<ConditionReport> {
        let mut conditions = Vec::new();
        if let Some(agent) = &rule.agent {
            let condition = format!("the consent of agent {} ({})", agent.name, agent.socket.display());
            let detail = "it looks at the content when the request comes".to_owned();
            conditions.push(ConditionReport { condition, holds: None, detail });
        }
        if let Some(rate) = rule.rate {
            let detail = "depends on what the client asked before".to_owned();
            conditions.push(ConditionReport { condition: format!("at most {rate}"), holds: None, detail });
        }
        if let Some(quorum) = &rule.approvals {
            let consents = count(&quorum.of, ask, Digest::of(ask.statement), now);
            let names: Vec<_> = quorum.of.iter().map(|approver| approver.name.as_str()).collect();
            conditions.push(ConditionReport {
                condition: format!("{} approvals of {}", quorum.need, names.join(", ")),
                holds: Some(consents.approvers.len() >= quorum.need),
                detail: format!("has {}: {consents}", consents.approvers.len()),
            });
        }
        if rule.recording == Recording::Soon {
            let detail = "a crash may lose the last records of what has left already".to_owned();
            conditions.push(ConditionReport { condition: "recorded soon".to_owned(), holds: Some(true), detail });
        }
        for signing in self.signing.iter().filter(|signing| signing.covers(ask)) {
            let (holds, detail) = match signing.slot_of(ask) {
                Ok(slot) => (None, format!("depends on what was signed for slot {slot} before")),
                Err(reason) => (Some(false), reason.to_string()),
            };
            let condition = format!("signing rule {}: {signing}", signing.name);
            conditions.push(ConditionReport { condition, holds, detail });
        }
        conditions
    }
}

fn answer(conditions: &[ConditionReport]) -> (Answer, String) {
    let failed = conditions.iter().find(|condition| condition.holds == Some(false));
    let open = conditions.iter().any(|condition| condition.holds.is_none());
    match failed {
        Some(failed) => (Answer::Deny, format!("{}: {}", failed.condition, failed.detail)),
        None if open => (Answer::Depends, "allowed, if the conditions below hold".to_owned()),
        None => (Answer::Allow, "allowed".to_owned()),
    }
}

fn report(rule: &Rule, decides: Option<&Rule>, client: &str, ask: &Ask<'_>, now: UnixTime) -> RuleReport {
    let mismatch = rule.mismatch(client, ask, now);
    let is_decider = decides.is_some_and(|decider| decider.name == rule.name);
    let why = match (&mismatch, decides) {
        // The public part of a key is read by a rule that is about something else.
        (Some(mismatch), _) if is_decider && !matches!(mismatch, Mismatch::Validity(_)) => {
            format!("{mismatch}, but it lets the client do something with the key, and so read its public part")
        }
        (Some(mismatch), _) => mismatch.to_string(),
        (None, _) if is_decider => "it is about this request and decides".to_owned(),
        (None, Some(decider)) => match decider.effect {
            Effect::Deny => format!("it is about this request, but rule {} denies it", decider.name),
            Effect::Allow => format!("it is about this request, but rule {} comes first", decider.name),
        },
        (None, None) => "it is about this request, but the policy does not know the client".to_owned(),
    };
    let (rule, line, effect) = (rule.name.clone(), rule.line, rule.effect);
    RuleReport { rule, line, effect, matches: mismatch.is_none(), decides: is_decider, why }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = match self.answer {
            Answer::Allow => "ALLOWED",
            Answer::Deny => "REFUSED",
            Answer::Depends => "DEPENDS",
        };
        write!(f, "{answer}: {}", self.reason)?;
        writeln!(f, "{}", self.rule.as_ref().map_or(String::new(), |rule| format!(" (rule {rule})")))?;
        for condition in &self.conditions {
            let holds = match condition.holds {
                Some(true) => "yes",
                Some(false) => "no",
                None => "?",
            };
            writeln!(f, "  {holds:<4}{}: {}", condition.condition, condition.detail)?;
        }
        writeln!(f, "Rules:")?;
        for rule in &self.rules {
            let mark = if rule.decides { "->" } else { "" };
            writeln!(f, "  {mark:<3}{} {} (line {}): {}", rule.effect, rule.rule, rule.line, rule.why)?;
        }
        Ok(())
    }
}
