//! Converts errors of the crates below into gRPC statuses with a code and a message that says what to do.

use std::time::Duration;

use theta_authority::{AuditUnavailable, Denial, QuotaError, Refusal, Terms};
use theta_names::{KeyRef, KeyRefError, Operation};
use theta_orchestration::{ComputeError, InstanceError, InstanceId, KeyEntry, ResolveError, SlotRefusal, SubmitError};
use theta_policy::Reason;
use theta_rounds::Abort;
use theta_schemes::RequestError;
use theta_statements::Name;
use theta_wire::v1;
use tonic::{
    Code, Status,
    metadata::{KeyAndValueRef, MetadataValue},
};

use crate::node::NotFirst;

/// The most characters of a message. gRPC sends messages in HTTP/2 headers, which are bounded, and messages may quote the
/// caller.
const MAX_MESSAGE_CHARS: usize = 800;

/// Metadata with the stable name of the reason, and the name of the rule.
const REASON: &str = "theta-reason";
const RULE: &str = "theta-rule";

/// Metadata of the end of a request that no node can answer, whoever asks, because of what is in it: a ciphertext whose encryptor lied.
const AT_FAULT: &str = "theta-at-fault";

/// Metadata of a node that has not caught up with its group: ask again.
const NOT_READY: &str = "theta-not-ready";

/// Metadata of a node that has no room for the request now: ask again.
const BUSY: &str = "theta-busy";

/// A status inside an answer: what the request's own status would be.
pub(crate) fn enclosed(status: &Status) -> v1::Refused {
    let metadata = status.metadata().iter().filter_map(|entry| match entry {
        KeyAndValueRef::Ascii(name, value) => Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())),
        KeyAndValueRef::Binary(..) => None,
    });
    v1::Refused { code: status.code().into(), message: status.message().to_owned(), metadata: metadata.collect() }
}

/// Cuts a message to its maximum.
pub(crate) fn short(message: String) -> String {
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}...", message.get(..end).unwrap_or_default()),
        None => message,
    }
}

/// The caller's mistake.
pub(crate) fn invalid(problem: impl Into<String>) -> Status {
    Status::invalid_argument(short(problem.into()))
}

/// What the caller names does not exist here.
pub(crate) fn not_found(problem: impl Into<String>) -> Status {
    Status::not_found(short(problem.into()))
}

/// The key that a request names.
///
/// # Errors
/// The name is invalid, which is the caller's mistake.
pub(crate) fn key_ref(text: &str) -> Result<KeyRef, Status> {
    text.parse().map_err(|error: KeyRefError| invalid(error.to_string()))
}

/// This node has not caught up with its group: it will answer in a moment.
pub(crate) fn not_ready(problem: impl Into<String>) -> Status {
    let mut status = Status::unavailable(short(problem.into()));
    note(&mut status, NOT_READY, "1");
    status
}

/// This node has no room for the request now: it will have some when it has answered others.
pub(crate) fn busy(problem: impl Into<String>) -> Status {
    let mut status = Status::resource_exhausted(short(problem.into()));
    note(&mut status, BUSY, "1");
    status
}

/// The status of a refusal by the gate.
pub(crate) fn gate(refusal: &Refusal) -> Status {
    let message = match refusal {
        Refusal::Unrecorded(AuditUnavailable::Closed) => format!("{refusal}: ask another node"),
        // The operator finds the system's message in the log; clients do not get it.
        Refusal::Unrecorded(AuditUnavailable::Broken(_)) => {
            "this node cannot write its audit log and refuses all requests: ask another node".to_owned()
        }
        Refusal::UnknownInstance(id) => return unknown_instance(*id),
        _ => refusal.to_string(),
    };
    let code = match refusal {
        Refusal::Enclosure(_) => Code::InvalidArgument,
        Refusal::Unidentified { .. } => Code::Unauthenticated,
        Refusal::Denied(denial) => denied(denial),
        Refusal::Quota(_) | Refusal::Unrecorded(AuditUnavailable::Full) => Code::ResourceExhausted,
        Refusal::UnknownInstance(_) => Code::NotFound,
        Refusal::OthersInstance { .. } => Code::PermissionDenied,
        Refusal::Unrecorded(AuditUnavailable::Broken(_) | AuditUnavailable::Closed) => Code::Unavailable,
        Refusal::Panicked => Code::Internal,
    };
    let mut status = Status::new(code, short(message));
    if let Some(reason) = refusal.code() {
        note(&mut status, REASON, reason);
    }
    // Others have what there is for now.
    if matches!(refusal, Refusal::Quota(QuotaError::Full { .. } | QuotaError::Computations { .. })) {
        note(&mut status, BUSY, "1");
    }
    note_rule(&mut status, refusal.rule());
    status
}

const fn denied(denial: &Denial) -> Code {
    match denial.reason {
        Reason::TooOften { .. } | Reason::RatesFull => Code::ResourceExhausted,
        Reason::SlotsUnavailable { .. } => Code::Unavailable,
        Reason::CredentialWithdrawn => Code::Unauthenticated,
        _ => Code::PermissionDenied,
    }
}

/// The policy allows the request, but its slot is not certified for it. `in_time`: whether this was known before the
/// deadline.
pub(crate) fn uncertified(terms: &Terms, slots: &SlotRefusal, in_time: bool) -> Status {
    not_certified((terms.client(), terms.operation(), terms.rule()), slots, in_time)
}

fn not_certified(
    (client, operation, rule): (&Name, Operation, Option<&Name>),
    slots: &SlotRefusal,
    in_time: bool,
) -> Status {
    let code = match slots {
        SlotRefusal::Taken { .. } | SlotRefusal::Void { .. } | SlotRefusal::Over { .. } => Code::PermissionDenied,
        SlotRefusal::Undecided(_) if !in_time => Code::DeadlineExceeded,
        SlotRefusal::Undecided(_) | SlotRefusal::Unconfirmed | SlotRefusal::ShuttingDown => Code::Unavailable,
        SlotRefusal::NoIdentity => Code::FailedPrecondition,
        SlotRefusal::Overloaded => Code::ResourceExhausted,
    };
    let mut status = Status::new(code, short(format!("client {client} may not {operation}: {slots}")));
    note(&mut status, REASON, slots.code());
    note_rule(&mut status, rule);
    status
}

/// The host's order has not given the slot to this message.
pub(crate) fn not_first(error: &NotFirst) -> Status {
    let (code, reason, race) = match error {
        NotFirst::Another(race) => (Code::PermissionDenied, "slot-taken", race),
        NotFirst::Undecided(race) => (Code::Unavailable, "slot-undecided", race),
    };
    let mut status = Status::new(code, short(error.to_string()));
    note(&mut status, REASON, reason);
    note_rule(&mut status, Some(&race.rule));
    status
}

fn note_rule(status: &mut Status, rule: Option<&Name>) {
    if let Some(rule) = rule {
        note(status, RULE, rule.as_str());
    }
}

fn note(status: &mut Status, name: &'static str, value: &str) {
    // Names and codes are plain ASCII.
    if let Ok(value) = MetadataValue::try_from(value) {
        status.metadata_mut().insert(name, value);
    }
}

pub(crate) fn submit(error: &SubmitError) -> Status {
    let message = short(error.to_string());
    match error {
        SubmitError::Key(error) => key(error),
        SubmitError::Request(_) | SubmitError::Seed(_) => Status::invalid_argument(message),
        SubmitError::Overloaded(_) => Status::resource_exhausted(message),
        SubmitError::Store(_) | SubmitError::Departed(_) => Status::unavailable(message),
        SubmitError::ShuttingDown => Status::unavailable(format!("{message}: ask another node")),
        SubmitError::Bug(_) => Status::internal(message),
    }
}

/// The key is not here, or not in service.
pub(crate) fn key(error: &ResolveError) -> Status {
    let message = short(error.to_string());
    match error {
        ResolveError::Unknown { .. } | ResolveError::NoVersion { .. } => Status::not_found(message),
        _ => Status::failed_precondition(message),
    }
}

/// This node has no share of the key.
pub(crate) fn no_share(entry: &KeyEntry) -> Status {
    Status::failed_precondition(short(format!("this node holds no share of key {}", entry.qualified_name())))
}

pub(crate) fn request(error: &RequestError) -> Status {
    invalid(error.to_string())
}

pub(crate) fn compute(error: &ComputeError) -> Status {
    let message = short(error.to_string());
    match error {
        ComputeError::Overloaded(_) => busy(message),
        ComputeError::ShuttingDown => Status::unavailable(format!("{message}: ask another node")),
        ComputeError::Panicked => Status::internal(message),
    }
}

pub(crate) fn unknown_instance(id: InstanceId) -> Status {
    instance(&InstanceError::Unknown(id))
}

pub(crate) fn instance(error: &InstanceError) -> Status {
    let message = short(error.to_string());
    match error {
        InstanceError::Unknown(_) => Status::not_found(message),
        InstanceError::Key(error) => key(error),
        InstanceError::Slot(_) => Status::permission_denied(message),
        // The request is well-formed, and still no node can answer it.
        InstanceError::Aborted(Abort::Input(_)) => {
            let mut status = Status::failed_precondition(message);
            note(&mut status, AT_FAULT, "input");
            status
        }
        // Nor is it any use to ask again before an operator has looked.
        InstanceError::Aborted(Abort::Quarantined { .. }) => Status::failed_precondition(format!(
            "{message}: find out who cheated, mend or replace that node, and then refresh the key (theta keys refresh)"
        )),
        InstanceError::Aborted(Abort::Bug(_)) => Status::internal(message),
        InstanceError::Aborted(Abort::TooFewHonest { .. } | Abort::Cheated(_)) | InstanceError::Expired(_) => {
            Status::unavailable(message)
        }
        InstanceError::ShuttingDown => Status::unavailable(format!("{message}: ask another node")),
    }
}

/// The deadline came before the result. `progress` is the number of shares received, and of those needed.
pub(crate) fn deadline(after: Duration, progress: Option<(usize, usize)>, unreachable: &[u16]) -> Status {
    let progress = progress.map_or_else(String::new, |(shares, needed)| format!(" with {shares} of {needed} shares"));
    let cause = if unreachable.is_empty() {
        // All peers are connected: the others were not asked, or refuse.
        "; a node acts only on requests that it receives itself: send this one to every node".to_owned()
    } else {
        let nodes: Vec<String> = unreachable.iter().map(u16::to_string).collect();
        format!("; not connected to node {}", nodes.join(", "))
    };
    Status::deadline_exceeded(short(format!(
        "the deadline of {after:.1?} passed{progress}{cause}; the instance goes on: send the request again to wait for it"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded_and_cut_between_characters() {
        let status = invalid("é".repeat(100_000));
        assert_eq!(status.message().chars().count(), MAX_MESSAGE_CHARS + 3);
        assert_eq!(invalid("short").message(), "short");
    }

    #[test]
    fn who_is_not_ready_says_so_in_metadata() {
        let status = not_ready("ask again");
        let noted = status.metadata().get("theta-not-ready").map(|value| value.to_str().unwrap());
        assert_eq!((status.code(), status.message(), noted), (Code::Unavailable, "ask again", Some("1")));
        assert!(status.metadata().get(REASON).is_none(), "it is no denial");
        let status = busy("ask again");
        let noted = status.metadata().get("theta-busy").map(|value| value.to_str().unwrap());
        assert_eq!((status.code(), status.message(), noted), (Code::ResourceExhausted, "ask again", Some("1")));
    }

    /// Codes, words and metadata that clients rely on.
    #[test]
    fn what_the_gate_refuses_has_the_code_that_clients_know() {
        let client: Name = "c".parse().unwrap();
        let denial = |reason, rule: Option<&str>| {
            let (rule, key) = (rule.map(|rule| rule.parse().unwrap()), Some("chain".to_owned()));
            let operation = theta_names::Operation::Sign;
            let node = theta_names::NodeId::try_from(2).unwrap();
            Refusal::Denied(Box::new(Denial { client: client.clone(), operation, key, rule, reason, node }))
        };
        let unidentified = |begin| Refusal::Unidentified { error: theta_policy::Unidentified::Nothing, begin };
        for (refusal, code, words) in [
            (
                denial(Reason::NoRule, None),
                Code::PermissionDenied,
                "theta policy explain --ask 2 --client c --operation sign --key chain",
            ),
            (
                denial(Reason::Denied, Some("r")),
                Code::PermissionDenied,
                "client c may not sign with key chain: rule r denies it",
            ),
            (
                denial(Reason::RatesFull, Some("r")),
                Code::ResourceExhausted,
                "client c may not sign with key chain, by rule r: ",
            ),
            (
                denial(Reason::CredentialWithdrawn, None),
                Code::Unauthenticated,
                "client c may not sign with key chain: ",
            ),
            (unidentified(None), Code::Unauthenticated, "nothing says who asks"),
            (
                unidentified(Some("begin like this".to_owned())),
                Code::Unauthenticated,
                "sign the request; begin like this",
            ),
            (AuditUnavailable::Broken("EIO".to_owned()).into(), Code::Unavailable, "cannot write its audit log"),
            (AuditUnavailable::Closed.into(), Code::Unavailable, "this node is stopping: ask another node"),
            (AuditUnavailable::Full.into(), Code::ResourceExhausted, "try again in a moment"),
            (Refusal::UnknownInstance(InstanceId::NONE), Code::NotFound, "send the request again"),
            (Refusal::OthersInstance { client: client.clone() }, Code::PermissionDenied, "it meets the same instance"),
            (theta_authority::EnclosureError::TooManyApprovals(65).into(), Code::InvalidArgument, "65 approvals"),
            (Refusal::Panicked, Code::Internal, "bug: "),
        ] {
            let status = gate(&refusal);
            assert_eq!(status.code(), code, "{refusal}");
            assert!(status.message().contains(words) && !status.message().contains("EIO"), "{}", status.message());
            let noted = |name| status.metadata().get(name).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(noted(REASON).as_deref(), refusal.code());
            assert_eq!(noted(RULE), refusal.rule().map(ToString::to_string));
        }
        assert_eq!(denial(Reason::NoRule, None).code(), Some("no-rule"));
    }

    #[test]
    fn what_is_not_certified_names_the_rule_that_allowed_it() {
        let [client, rule]: [Name; 2] = ["c", "r"].map(|name| name.parse().unwrap());
        let undecided = || SlotRefusal::Undecided("late".to_owned());
        let taken = SlotRefusal::Taken { key: "chain".to_owned(), rule: "s".to_owned(), slot: 7 };
        for (refusal, in_time, code, reason) in [
            (taken, true, Code::PermissionDenied, "slot-taken"),
            (undecided(), true, Code::Unavailable, "slot-undecided"),
            (undecided(), false, Code::DeadlineExceeded, "slot-undecided"),
            (SlotRefusal::Unconfirmed, true, Code::Unavailable, "slot-unconfirmed"),
            (SlotRefusal::NoIdentity, true, Code::FailedPrecondition, "slot-no-identity"),
            (SlotRefusal::Overloaded, true, Code::ResourceExhausted, "slot-overloaded"),
            (SlotRefusal::ShuttingDown, true, Code::Unavailable, "shutting-down"),
        ] {
            for rule in [Some(&rule), None] {
                let status = not_certified((&client, Operation::Sign, rule), &refusal, in_time);
                assert_eq!(status.code(), code, "{refusal}");
                assert_eq!(status.message(), format!("client c may not sign: {refusal}"));
                let noted = |name| status.metadata().get(name).map(|value| value.to_str().unwrap());
                assert_eq!((noted(REASON), noted(RULE)), (Some(reason), rule.map(Name::as_str)));
            }
        }
    }

    #[test]
    fn a_deadline_names_who_is_missing() {
        let status = deadline(Duration::from_millis(1500), None, &[2, 4]);
        assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
        assert_eq!(
            status.message(),
            "the deadline of 1.5s passed; not connected to node 2, 4; the instance goes on: send the request again to \
             wait for it"
        );
    }

    /// A caller that sends its request only to one node, to which all others are connected, waits in vain.
    #[test]
    fn who_asks_one_node_alone_is_told_so() {
        let status = deadline(Duration::from_millis(1500), Some((1, 2)), &[]);
        assert_eq!(
            status.message(),
            "the deadline of 1.5s passed with 1 of 2 shares; a node acts only on requests that it receives itself: send \
             this one to every node; the instance goes on: send the request again to wait for it"
        );
    }
}
