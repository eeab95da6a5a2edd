//! What the status of a call means.

use std::{io, time::Duration};

use theta_network::tls::UnpinnedCertificate;

use super::{Problem, text::one_line};

/// The words of an error of a connection. One that this client gave up itself, since it took too long, has none for people.
fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let given_up = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none();
    if error.downcast_ref().is_some_and(given_up) {
        "no connection within the time that one may take".to_owned()
    } else {
        error.to_string()
    }
}

impl Problem {
    /// Whether the reason is unclear: a connection that a node closes at once may look like any other broken connection.
    pub(crate) const fn is_vague(&self) -> bool {
        use tonic::Code;
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { code, .. } => matches!(code, Code::Cancelled | Code::Unavailable | Code::Unknown),
            _ => false,
        }
    }

    /// What a gRPC status means here. Failures of the transport arrive as statuses, too.
    pub(crate) fn from_status(status: &tonic::Status, patience: Duration) -> Self {
        if let Some(unpinned) = UnpinnedCertificate::cause(status) {
            return Self::Unreachable(unpinned.to_string());
        }
        if is_not_ready(status) {
            return Self::NotReady(one_line(status.message()));
        }
        let noted = |name| Some(one_line(status.metadata().get(name)?.to_str().ok()?));
        if let Some(reason) = noted("theta-reason") {
            return Self::Denied { rule: noted("theta-rule"), reason, message: one_line(status.message()) };
        }
        if status.code() == tonic::Code::FailedPrecondition && noted("theta-at-fault").as_deref() == Some("input") {
            return Self::Unanswerable(one_line(status.message()));
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(status);
        let mut innermost = None;
        while let Some(error) = cause {
            innermost = Some(words(error));
            cause = error.source();
        }
        match (status.code(), innermost) {
            (tonic::Code::Cancelled | tonic::Code::DeadlineExceeded, _) if status.message() == "Timeout expired" => {
                Self::Silent(patience)
            }
            (tonic::Code::Unavailable | tonic::Code::Unknown | tonic::Code::Internal, Some(reason)) => {
                Self::Unreachable(reason)
            }
            (code, _) => Self::Refused { code, message: one_line(status.message()) },
        }
    }

    /// Whether the node refuses since somebody asks too often there, which passes by itself.
    pub(crate) fn is_of_rates(&self) -> bool {
        matches!(self, Self::Denied { reason, .. } if matches!(reason.as_str(), "too-often" | "rates-full"))
    }

    /// Whether the node's policy denies the request for good: not for a rate, not since an agent is not heard, and not for a proof of the client's
    /// token that does not hold there, as when one of the two clocks is wrong.
    pub(crate) fn forbids(&self) -> bool {
        let passes = |reason: &str| matches!(reason, "agent-silent" | "agent-unasked" | "token-proof");
        !self.is_of_rates() && matches!(self, Self::Denied { reason, .. } if !passes(reason))
    }

    /// Whose fault it is that the node refuses, if the node says so, with its code and its message.
    pub(crate) fn fault(&self) -> Option<(Fault, tonic::Code, &str)> {
        use tonic::Code;
        match self {
            Self::Unanswerable(message) => Some((Fault::OfRequest, Code::FailedPrecondition, message)),
            Self::Refused {
                code: code @ (Code::InvalidArgument | Code::AlreadyExists | Code::OutOfRange),
                message,
            } => Some((Fault::OfRequest, *code, message)),
            Self::Refused { code: code @ (Code::NotFound | Code::FailedPrecondition), message } => {
                Some((Fault::OfNode, *code, message))
            }
            _ => None,
        }
    }
}

/// Whose fault a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The request is wrong, and every honest node says so.
    OfRequest,
    /// The node cannot answer it, and others may: it does not know the key, holds no share of it or has lost its share, or its state of the key is
    /// another one.
    OfNode,
}

/// Whether a node says that it is to be asked again: it has not caught up with its group yet, or it has no room for the request now.
pub(crate) fn is_for_later(status: &tonic::Status) -> bool {
    is_not_ready(status)
        || (status.code() == tonic::Code::ResourceExhausted && status.metadata().contains_key("theta-busy"))
}

/// Whether a node says that it has not caught up with its group yet.
fn is_not_ready(status: &tonic::Status) -> bool {
    status.code() == tonic::Code::Unavailable && status.metadata().contains_key("theta-not-ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nodes_words_stay_on_a_line() {
        let status = tonic::Status::not_found("no\nkey\u{1b}[31m");
        let problem = Problem::from_status(&status, Duration::ZERO);
        assert_eq!(problem.to_string(), "no key [31m");
        assert_eq!(problem.fault(), Some((Fault::OfNode, tonic::Code::NotFound, "no key [31m")));
    }

    #[test]
    fn who_is_not_ready_neither_denies_nor_blames_the_request() {
        let mut status = tonic::Status::unavailable("it reads the ledger");
        assert!(matches!(Problem::from_status(&status, Duration::ZERO), Problem::Refused { .. }));
        status.metadata_mut().insert("theta-not-ready", tonic::metadata::MetadataValue::from_static("1"));
        let problem = Problem::from_status(&status, Duration::ZERO);
        assert_eq!(problem, Problem::NotReady("it reads the ledger".to_owned()));
        assert!(problem.fault().is_none() && !problem.is_vague());
    }

    /// What passes by itself is no answer to whether the client may have the key.
    #[test]
    fn what_passes_forbids_nothing() {
        let denied = |reason: &'static str| {
            let mut status = tonic::Status::permission_denied("no");
            status.metadata_mut().insert("theta-reason", tonic::metadata::MetadataValue::from_static(reason));
            Problem::from_status(&status, Duration::ZERO)
        };
        assert!(denied("no-rule").forbids());
        for reason in ["too-often", "rates-full", "agent-silent", "agent-unasked", "token-proof"] {
            assert!(!denied(reason).forbids(), "{reason}");
        }
    }

    /// What one node lacks others may have. What is wrong with the request is wrong everywhere.
    #[test]
    fn a_node_without_its_share_does_not_blame_the_request() {
        let mut status = tonic::Status::failed_precondition("this node holds no share");
        let fault = |status: &tonic::Status| Problem::from_status(status, Duration::ZERO).fault().map(|it| it.0);
        assert_eq!(fault(&status), Some(Fault::OfNode));
        status.metadata_mut().insert("theta-at-fault", tonic::metadata::MetadataValue::from_static("input"));
        assert_eq!(fault(&status), Some(Fault::OfRequest));
        assert_eq!(fault(&tonic::Status::invalid_argument("no header")), Some(Fault::OfRequest));
        assert_eq!(fault(&tonic::Status::internal("")), None);
    }
}
