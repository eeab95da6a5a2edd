//! From text to checked rules.

use theta_names::{Operation, SlotOrder};
use theta_statements::{UnixTime, Validity};
use toml::{Spanned, value::Datetime};

use super::PolicyProblem;
use super::check::{Fault, Names, People, fault, list};
use super::error::line_of;
use super::text::{ApprovalsText, ListText, RuleText, SigningText};
use crate::agent::AGENT_OPERATIONS;
use crate::operation::OperationSet;
use crate::pattern::KeyPattern;
use crate::policy::{Clients, Effect, Quorum, Recording, Rule, SigningRule, SlotSource};
use crate::rate::Rate;

pub(super) fn rule(raw: Spanned<RuleText>, text: &str, people: &People, names: &mut Names) -> Result<Rule, Fault> {
    let line = line_of(text, raw.span().start);
    let raw = raw.into_inner();
    let name = names.add(&raw.name)?;
    let effect = match raw.effect.get_ref().as_str() {
        "allow" => Effect::Allow,
        "deny" => Effect::Deny,
        other => return fault(&raw.effect, PolicyProblem::Effect(other.to_owned())),
    };
    if effect == Effect::Deny {
        no_condition(&raw)?;
    }
    let labels = raw.labels.map(|labels| list("labels", labels)).transpose()?.unwrap_or_default();
    if let Some(empty) = labels.iter().find(|label| label.get_ref().is_empty()) {
        return fault(empty, PolicyProblem::EmptyLabel);
    }
    let operations = operations(raw.operations)?;
    let agent = match &raw.agent {
        None => None,
        Some(raw) => {
            let named = people.agent_names.find(raw)?;
            if let Some(other) = Operation::ALL
                .into_iter()
                .find(|operation| operations.contains(*operation) && !AGENT_OPERATIONS.contains(operation))
            {
                return fault(raw, PolicyProblem::AgentOperation(other.to_string()));
            }
            people.agents.iter().find(|agent| agent.name == named).cloned()
        }
    };
    Ok(Rule {
        name,
        line,
        effect,
        clients: clients(raw.clients, people)?,
        keys: keys(raw.keys)?,
        operations,
        labels: labels.into_iter().map(Spanned::into_inner).collect(),
        validity: validity(raw.from.as_ref(), raw.until.as_ref())?,
        rate: rate(raw.rate.as_ref(), raw.burst.as_ref())?,
        approvals: raw.approvals.map(|approvals| quorum(approvals.into_inner(), people)).transpose()?,
        recording: raw.record.as_ref().map_or(Ok(Recording::First), recording)?,
        agent,
    })
}

fn recording(raw: &Spanned<String>) -> Result<Recording, Fault> {
    let all = [Recording::First, Recording::Soon].into_iter();
    let found = all.into_iter().find(|recording| recording.name() == raw.get_ref());
    found.map_or_else(|| fault(raw, PolicyProblem::Record(raw.get_ref().clone())), Ok)
}

fn no_condition(raw: &RuleText) -> Result<(), Fault> {
    if let Some(rate) = &raw.rate {
        return fault(rate, PolicyProblem::DenyCondition("rate"));
    }
    if let Some(burst) = &raw.burst {
        return fault(burst, PolicyProblem::DenyCondition("burst"));
    }
    if let Some(record) = &raw.record {
        return fault(record, PolicyProblem::DenyCondition("record"));
    }
    if let Some(agent) = &raw.agent {
        return fault(agent, PolicyProblem::DenyCondition("agent"));
    }
    match &raw.approvals {
        Some(approvals) => fault(approvals, PolicyProblem::DenyCondition("approvals")),
        None => Ok(()),
    }
}

fn clients(raw: Spanned<ListText>, people: &People) -> Result<Clients, Fault> {
    let entries = list("clients", raw)?;
    let Some(all) = entries.iter().find(|entry| entry.get_ref() == "*") else {
        return entries.iter().map(|entry| people.clients.find(entry)).collect::<Result<_, _>>().map(Clients::Named);
    };
    if entries.len() == 1 { Ok(Clients::All) } else { fault(all, PolicyProblem::NotAlone) }
}

fn keys(raw: Spanned<ListText>) -> Result<Vec<KeyPattern>, Fault> {
    let pattern = |entry: Spanned<String>| {
        entry.get_ref().parse().or_else(|error| fault(&entry, PolicyProblem::KeyPattern(error)))
    };
    list("keys", raw)?.into_iter().map(pattern).collect()
}

fn operations(raw: Spanned<ListText>) -> Result<OperationSet, Fault> {
    list("operations", raw)?.iter().try_fold(OperationSet::NONE, |set, entry| {
        let more = OperationSet::of(entry.get_ref());
        more.map(|more| set.union(more)).or_else(|error| fault(entry, PolicyProblem::Operation(error)))
    })
}

fn validity(from: Option<&Spanned<Datetime>>, until: Option<&Spanned<Datetime>>) -> Result<Validity, Fault> {
    let time = |raw: Option<&Spanned<Datetime>>, otherwise: UnixTime| {
        raw.map_or(Ok(otherwise), |raw| {
            raw.get_ref().to_string().parse().or_else(|error| fault(raw, PolicyProblem::Time(error)))
        })
    };
    let validity = Validity { from: time(from, Validity::ALWAYS.from)?, until: time(until, Validity::ALWAYS.until)? };
    match until.filter(|_| validity.from >= validity.until) {
        Some(at) => fault(at, PolicyProblem::Window { from: validity.from, until: validity.until }),
        None => Ok(validity),
    }
}

pub(super) fn rate(raw: Option<&Spanned<String>>, burst: Option<&Spanned<i64>>) -> Result<Option<Rate>, Fault> {
    let Some(raw) = raw else {
        return burst.map_or(Ok(None), |burst| fault(burst, PolicyProblem::BurstWithoutRate));
    };
    let rate: Rate = raw.get_ref().parse().or_else(|error| fault(raw, PolicyProblem::Rate(error)))?;
    let Some(burst) = burst else { return Ok(Some(rate)) };
    let with_burst = u64::try_from(*burst.get_ref()).ok().and_then(|burst| rate.with_burst(burst));
    with_burst.map_or_else(|| fault(burst, PolicyProblem::Burst(*burst.get_ref())), |rate| Ok(Some(rate)))
}

fn quorum(raw: ApprovalsText, people: &People) -> Result<Quorum, Fault> {
    let mut of = Vec::new();
    for entry in list("of", raw.of)? {
        let name = people.approver_names.find(&entry)?;
        of.extend(people.approvers.iter().find(|approver| approver.name == name).cloned());
    }
    let need = usize::try_from(*raw.need.get_ref()).ok().filter(|need| (1..=of.len()).contains(need));
    match need {
        Some(need) => Ok(Quorum { of, need }),
        None => fault(&raw.need, PolicyProblem::Need { need: *raw.need.get_ref(), of: of.len() }),
    }
}

pub(super) fn signing(raw: SigningText, names: &mut Names) -> Result<SigningRule, Fault> {
    let name = names.add(&raw.name)?;
    if name.as_str().bytes().any(|byte| byte.is_ascii_uppercase()) {
        return fault(&raw.name, PolicyProblem::SigningName(name.to_string()));
    }
    let slot = SlotSource::ALL.into_iter().find(|source| source.name() == raw.slot.get_ref());
    let Some(slot) = slot else {
        return fault(&raw.slot, PolicyProblem::Slot(raw.slot.get_ref().clone()));
    };
    let order = match &raw.order {
        None => SlotOrder::Any,
        Some(order) => match order.get_ref().as_str() {
            "any" => SlotOrder::Any,
            "increasing" => SlotOrder::Increasing,
            other => return fault(order, PolicyProblem::Order(other.to_owned())),
        },
    };
    let ordered = match &raw.race {
        None => false,
        Some(race) => match race.get_ref().as_str() {
            "void" => false,
            "ordered" => true,
            other => return fault(race, PolicyProblem::Race(other.to_owned())),
        },
    };
    let (first, last) = slots(raw.first.as_ref(), raw.last.as_ref())?;
    Ok(SigningRule {
        name,
        keys: keys(raw.keys)?,
        operations: raw.operations.map_or(Ok(OperationSet::NONE.with(Operation::Sign)), signing_operations)?,
        slot,
        order,
        ordered,
        first,
        last,
    })
}

fn signing_operations(raw: Spanned<ListText>) -> Result<OperationSet, Fault> {
    list("operations", raw)?.iter().try_fold(OperationSet::NONE, |set, entry| match entry.get_ref().parse() {
        Ok(operation @ (Operation::Sign | Operation::FlipCoin)) => Ok(set.with(operation)),
        Ok(other) => fault(entry, PolicyProblem::SigningOperation(other.to_string())),
        Err(error) => fault(entry, PolicyProblem::Operation(error)),
    })
}

fn slots(first: Option<&Spanned<i64>>, last: Option<&Spanned<i64>>) -> Result<(u64, u64), Fault> {
    let Some(at) = last.or(first) else { return Ok((0, u64::MAX)) };
    let (from, to) = (first.map_or(0, |first| *first.get_ref()), last.map(|last| *last.get_ref()));
    let checked = match (u64::try_from(from), to.map_or(Ok(u64::MAX), u64::try_from)) {
        (Ok(first), Ok(last)) if first <= last => Some((first, last)),
        _ => None,
    };
    match checked {
        Some(slots) => Ok(slots),
        None => fault(at, PolicyProblem::Slots { first: from, last: to.unwrap_or(i64::MAX) }),
    }
}
