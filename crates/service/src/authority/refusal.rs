//! Refusals in words: which code, which rule, and what would help.

use std::path::Path;

use theta_orchestration::SlotRefusal;
use theta_policy::{Decision, Reason, Request, Unidentified};
use theta_statements::Name;
use tonic::{Code, Status, metadata::MetadataValue};

use super::{audit::AuditUnavailable, grants::Granted};
use crate::grpc::refusal::short;

/// Metadata with the reason's name, which never changes, and the rule's.
const REASON: &str = "theta-reason";
const RULE: &str = "theta-rule";

/// The policy refuses.
pub(super) fn denied(request: &Request<'_>, decision: &Decision) -> Status {
    let ask = request.ask();
    let (client, operation) = (request.client(), ask.operation);
    let what = ask.key.map_or_else(|| operation.to_string(), |key| format!("{operation} with key {key}"));
    let text = match (&decision.rule, &decision.reason) {
        (None, Reason::NoRule) => {
            let key = ask.key.map_or_else(String::new, |key| format!(" --key {key}"));
            format!(
                "client {client} may not {what}: no rule of this node's policy allows it; see why with: theta policy explain \
                 --client {client} --operation {operation}{key}"
            )
        }
        (None, reason) => format!("client {client} may not {what}: {reason}"),
        (Some(rule), Reason::Denied) => format!("client {client} may not {what}: rule {rule} denies it"),
        (Some(rule), reason) => format!("client {client} may not {what}, by rule {rule}: {reason}"),
    };
    let code = match &decision.reason {
        Reason::TooOften { .. } | Reason::RatesFull => Code::ResourceExhausted,
        Reason::SlotsUnavailable { .. } => Code::Unavailable,
        Reason::CredentialWithdrawn => Code::Unauthenticated,
        _ => Code::PermissionDenied,
    };
    let mut status = Status::new(code, short(text));
    note(&mut status, REASON, decision.reason.code());
    if let Some(rule) = &decision.rule {
        note(&mut status, RULE, rule.as_str());
    }
    status
}

/// The policy allows it, and its slot is not certified for it. `in_time`: whether that was found before the caller's deadline.
pub(super) fn uncertified(granted: &Granted, rule: Option<&Name>, slots: &SlotRefusal, in_time: bool) -> Status {
    let code = match slots {
        SlotRefusal::Taken { .. } | SlotRefusal::Void { .. } | SlotRefusal::Over { .. } => Code::PermissionDenied,
        SlotRefusal::Undecided(_) if !in_time => Code::DeadlineExceeded,
        SlotRefusal::Undecided(_) | SlotRefusal::ShuttingDown => Code::Unavailable,
        SlotRefusal::NoIdentity => Code::FailedPrecondition,
        SlotRefusal::Overloaded => Code::ResourceExhausted,
    };
    let (client, operation) = (&granted.client, granted.operation);
    let mut status = Status::new(code, short(format!("client {client} may not {operation}: {slots}")));
    note(&mut status, REASON, slots.code());
    if let Some(rule) = rule {
        note(&mut status, RULE, rule.as_str());
    }
    status
}

/// Nobody that the policy knows; `nobody` if it knows nobody at all.
pub(super) fn unidentified(error: &Unidentified, nobody: Option<&Path>) -> Status {
    let text = match nobody {
        Some(file) => format!("{error}; {}", how_to_begin(file)),
        None => error.to_string(),
    };
    let mut status = Status::unauthenticated(short(text));
    note(&mut status, REASON, "unidentified");
    status
}

/// What to do about a policy that names nobody.
pub(super) fn how_to_begin(file: &Path) -> String {
    // The file's name alone: a client need not know a node's folders.
    let file = file.file_name().map_or_else(|| "policy.toml".into(), |name| name.to_string_lossy());
    format!(
        "the policy of this node names no clients, so it refuses everything: write {file} with format = 1, a [[client]] (name, \
         certificates = [\"FINGERPRINT\"]) and a [[rule]] (name, effect = \"allow\", clients, keys, operations)"
    )
}

/// The decision cannot be recorded, so none is made.
pub(super) fn unrecorded(error: &AuditUnavailable) -> Status {
    match error {
        AuditUnavailable::Full => Status::resource_exhausted(error.to_string()),
        AuditUnavailable::Closed => Status::unavailable(format!("{error}: ask another node")),
        // The disk's words are for the operator, who finds them in the log.
        AuditUnavailable::Broken(_) => {
            Status::unavailable("this node cannot write its audit log and refuses all requests: ask another node")
        }
    }
}

fn note(status: &mut Status, name: &'static str, value: &str) {
    // Names and codes are plain ASCII.
    if let Ok(value) = MetadataValue::try_from(value) {
        status.metadata_mut().insert(name, value);
    }
}
