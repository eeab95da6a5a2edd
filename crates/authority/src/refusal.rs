//! Why a request is refused: typed, so that each front end can express it in its own terms.

use std::path::Path;

use theta_names::{NodeId, Operation};
use theta_policy::{Objection, Reason, Unidentified};
use theta_statements::{DecodeError, MOST_APPROVALS, Name};

use crate::{AuditUnavailable, InstanceId, QuotaError};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The caller's mistake: the signed request or an approval does not decode.
    #[error(transparent)]
    Enclosure(#[from] EnclosureError),
    /// The policy does not know the caller.
    #[error("{error}{}", Begin(begin.as_deref()))]
    Unidentified {
        /// What was presented, and why it identifies nobody.
        error: Unidentified,
        /// If the policy names no client at all: advice what to do about that.
        begin: Option<String>,
    },
    /// The policy refuses.
    #[error(transparent)]
    Denied(Box<Denial>),
    /// The client is at one of its limits.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// As far as is remembered, nobody was allowed an instance of this id.
    #[error("nobody was allowed an instance {0} here: it was never started here, or too long ago")]
    UnknownInstance(InstanceId),
    /// The instance belongs to another client.
    #[error(
        "client {client} was not allowed the operation that made this result; send the request itself: it meets the same \
         instance"
    )]
    OthersInstance {
        /// The client that asks.
        client: Name,
    },
    /// No decision can be recorded, so none is made.
    #[error(transparent)]
    Unrecorded(#[from] AuditUnavailable),
    /// A mistake of this program.
    #[error("bug: a decision panicked; please report it")]
    Panicked,
}

/// Why what came with a request cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnclosureError {
    /// There are more approvals than a request may carry.
    #[error("{0} approvals, a request carries {MOST_APPROVALS} at most")]
    TooManyApprovals(usize),
    /// An approval does not decode.
    #[error("approval {place} is none: {error}")]
    Approval {
        /// Its number, from 1.
        place: usize,
        /// Why it does not.
        error: DecodeError,
    },
    /// The signed request does not decode.
    #[error("the signed request is none: {0}")]
    SignedRequest(DecodeError),
}

/// A refusal by the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The client that asked.
    pub client: Name,
    /// The operation.
    pub operation: Operation,
    /// The key, if the operation has one.
    pub key: Option<String>,
    /// The rule that decided; `None` if no rule was about the request.
    pub rule: Option<Name>,
    /// Why.
    pub reason: Reason,
    /// The node that refuses: others may decide otherwise.
    pub node: NodeId,
}

impl Refusal {
    /// The reason's name, which never changes; `None` if the reason is not the policy's.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        match self {
            // Who they are may be known: their proof is of another time or for another node, or is none at all.
            Self::Unidentified { error: Unidentified::Proof(_), .. } => Some("token-proof"),
            Self::Unidentified { .. } => Some("unidentified"),
            Self::Denied(denial) => Some(denial.reason.code()),
            _ => None,
        }
    }

    /// Whether an agent has seen what the request is about, and refuses it.
    #[must_use]
    pub fn is_by_contents(&self) -> bool {
        let Self::Denied(denial) = self else { return false };
        matches!(denial.reason, Reason::AgentObjects { objection: Objection::Refused(_), .. })
    }

    /// Whether it is that the rule's agent was not asked.
    pub(crate) fn is_unasked(&self) -> bool {
        matches!(self, Self::Denied(denial) if matches!(denial.reason, Reason::AgentUnasked { .. }))
    }

    /// The rule that refuses, if one does.
    #[must_use]
    pub fn rule(&self) -> Option<&Name> {
        match self {
            Self::Denied(denial) => denial.rule.as_ref(),
            _ => None,
        }
    }
}

impl core::error::Error for Denial {}

impl core::fmt::Display for Denial {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { client, operation, key, rule, reason, node } = self;
        write!(f, "client {client} may not {operation}")?;
        if let Some(key) = key {
            write!(f, " with key {key}")?;
        }
        match (rule, reason) {
            (None, Reason::NoRule) => {
                write!(
                    f,
                    ": no rule of this node's policy allows it; see why with: theta policy explain --ask {node} \
                     --client {client} --operation {operation}"
                )?;
                key.as_ref().map_or(Ok(()), |key| write!(f, " --key {key}"))
            }
            (None, reason) => write!(f, ": {reason}"),
            (Some(rule), Reason::Denied) => write!(f, ": rule {rule} denies it"),
            (Some(rule), reason) => write!(f, ", by rule {rule}: {reason}"),
        }
    }
}

/// Advice that follows the error for a stranger.
struct Begin<'a>(Option<&'a str>);

impl core::fmt::Display for Begin<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.map_or(Ok(()), |text| write!(f, "; {text}"))
    }
}

/// Advice for a policy that names no client.
pub(crate) fn how_to_begin(file: &Path) -> String {
    // Only the file's name: a client need not know a node's folders.
    let file = file.file_name().map_or_else(|| "policy.toml".into(), |name| name.to_string_lossy());
    format!(
        "the policy of this node names no clients, so it refuses everything: write {file} with format = 1, a [[client]] (name, \
         certificates = [\"FINGERPRINT\"]) and a [[rule]] (name, effect = \"allow\", clients, keys, operations)"
    )
}
