//! Errors of the floors below as gRPC statuses: which code, and words that say what to do.

use std::time::Duration;

use theta_orchestration::{
    ComputeError, InstanceError, InstanceId, InstanceSnapshot, KeyEntry, ResolveError, SubmitError,
};
use theta_rounds::Abort;
use theta_schemes::RequestError;
use tonic::Status;

/// gRPC sends messages as HTTP/2 headers, which are bounded; and they may quote what the caller wrote.
const MAX_MESSAGE_CHARS: usize = 800;

/// At most as much as a client is told.
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

/// There is no such thing here.
pub(crate) fn not_found(problem: impl Into<String>) -> Status {
    Status::not_found(short(problem.into()))
}

pub(crate) fn submit(error: &SubmitError) -> Status {
    let message = short(error.to_string());
    match error {
        SubmitError::Key(error) => key(error),
        SubmitError::Request(_) | SubmitError::Seed(_) => Status::invalid_argument(message),
        SubmitError::Overloaded(_) => Status::resource_exhausted(message),
        SubmitError::Store(_) => Status::unavailable(message),
        SubmitError::ShuttingDown => Status::unavailable(format!("{message}: ask another node")),
        SubmitError::Bug(_) => Status::internal(message),
    }
}

/// A key that is not here, or does not serve.
pub(crate) fn key(error: &ResolveError) -> Status {
    let message = short(error.to_string());
    match error {
        ResolveError::Unknown { .. } | ResolveError::NoVersion { .. } => Status::not_found(message),
        _ => Status::failed_precondition(message),
    }
}

/// A key whose share this node does not have.
pub(crate) fn no_share(entry: &KeyEntry) -> Status {
    Status::failed_precondition(short(format!("this node holds no share of key {}", entry.qualified_name())))
}

pub(crate) fn request(error: &RequestError) -> Status {
    invalid(error.to_string())
}

pub(crate) fn compute(error: &ComputeError) -> Status {
    let message = short(error.to_string());
    match error {
        ComputeError::Overloaded(_) => Status::resource_exhausted(message),
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
        // The request was well-formed and still there is no answer to it, whoever is asked.
        InstanceError::Aborted(Abort::Input(_)) => Status::failed_precondition(message),
        InstanceError::Aborted(Abort::Bug(_)) => Status::internal(message),
        InstanceError::Aborted(Abort::TooFewHonest { .. }) | InstanceError::Expired(_) => Status::unavailable(message),
        InstanceError::ShuttingDown => Status::unavailable(format!("{message}: ask another node")),
    }
}

/// The deadline came before the result.
pub(crate) fn deadline(after: Duration, snapshot: Option<&InstanceSnapshot>, unreachable: &[u16]) -> Status {
    let progress = snapshot
        .map_or_else(String::new, |snapshot| format!(" with {} of {} shares", snapshot.shares, snapshot.needed));
    let cause = if unreachable.is_empty() {
        String::new()
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
    fn a_deadline_names_who_is_missing() {
        let status = deadline(Duration::from_millis(1500), None, &[2, 4]);
        assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
        assert_eq!(
            status.message(),
            "the deadline of 1.5s passed; not connected to node 2, 4; the instance goes on: send the request again to \
             wait for it"
        );
    }
}
