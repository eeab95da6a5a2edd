//! The audit records of decisions.

use theta_names::Operation;
use theta_statements::audit::{AuditRecord, MOST_APPROVERS};
use theta_statements::{Digest, Name, UnixTime};

use crate::{Decision, Request, Unidentified};

/// The record of a decision.
#[must_use]
pub fn record(node: u16, time: UnixTime, request: &Request<'_>, decision: &Decision, policy: Digest) -> AuditRecord {
    let ask = request.ask();
    let detail = match &decision.said {
        Some(said) => format!("{}; {said}", decision.reason),
        None => decision.reason.to_string(),
    };
    AuditRecord {
        time,
        node,
        client: Some(AuditRecord::cut(request.client().as_str())),
        recognised_by: Some(request.recognised_by().to_owned()),
        key: ask.key.map(AuditRecord::cut),
        operation: ask.operation.name().to_owned(),
        statement: request.statement(),
        slot: ask.slot,
        allowed: decision.allowed,
        rule: decision.rule.as_ref().map(Name::to_string),
        reason: decision.reason.code().to_owned(),
        detail: AuditRecord::cut(&detail),
        approvers: decision.approvers.iter().take(MOST_APPROVERS).map(Name::to_string).collect(),
        policy,
    }
}

/// The record of a request whose client was not recognised.
#[must_use]
pub fn record_of_stranger(
    node: u16,
    time: UnixTime,
    operation: Operation,
    key: Option<&str>,
    error: &Unidentified,
    policy: Digest,
) -> AuditRecord {
    AuditRecord {
        time,
        node,
        client: None,
        recognised_by: None,
        key: key.map(AuditRecord::cut),
        operation: operation.name().to_owned(),
        statement: Digest([0; 32]),
        slot: None,
        allowed: false,
        rule: None,
        reason: "unidentified".to_owned(),
        detail: AuditRecord::cut(&error.to_string()),
        approvers: Vec::new(),
        policy,
    }
}
