//! Why nothing is done for somebody: typed, for front ends to put into their own words.

use std::path::Path;

use theta_names::Operation;
use theta_policy::{Reason, Unidentified};
use theta_statements::{DecodeError, MOST_APPROVALS, Name};

use crate::{AuditUnavailable, InstanceId, QuotaError};

/// Why nothing is done for somebody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The caller's mistake: what came along is not what it should be.
    #[error(transparent)]
    Enclosure(#[from] EnclosureError),
    /// Nobody that the policy knows.
    #[error("{error}{}", Begin(begin.as_deref()))]
    Unidentified {
        /// What was presented, and why it says nothing.
        error: Unidentified,
        /// If the policy names nobody at all: what to do about that.
        begin: Option<String>,
    },
    /// The policy refuses.
    #[error(transparent)]
    Denied(Box<Denial>),
    /// The client holds as much of this node as it may.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// Nobody was allowed an instance of this id, as far as is remembered.
    #[error("nobody was allowed an instance {0} here: it was never started here, or too long ago")]
    UnknownInstance(InstanceId),
    /// The instance was another client's.
    #[error(
        "client {client} was not allowed the operation that made this result; send the request itself: it meets the same \
         instance"
    )]
    OthersInstance {
        /// Who asks.
        client: Name,
    },
    /// No decision can be recorded, so none is made.
    #[error(transparent)]
    Unrecorded(#[from] AuditUnavailable),
    /// Our own mistake.
    #[error("bug: a decision panicked; please report it")]
    Panicked,
}

/// Why what came with a request is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnclosureError {
    /// More than a request carries.
    #[error("{0} approvals, a request carries {MOST_APPROVALS} at most")]
    TooManyApprovals(usize),
    /// Not an approval.
    #[error("approval {place} is none: {error}")]
    Approval {
        /// Which one, from 1.
        place: usize,
        /// Why not.
        error: DecodeError,
    },
    /// Not a signed request.
    #[error("the signed request is none: {0}")]
    SignedRequest(DecodeError),
}

/// A refusal by the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Who asked.
    pub client: Name,
    /// What for.
    pub operation: Operation,
    /// With which key, if any.
    pub key: Option<String>,
    /// The rule that decided; `None` if none was about the request.
    pub rule: Option<Name>,
    /// Why.
    pub reason: Reason,
    /// The node that refuses: others may decide otherwise.
    pub node: u16,
}

impl Refusal {
    /// The reason's name, which never changes, where it is the policy's; else `None`.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Unidentified { .. } => Some("unidentified"),
            Self::Denied(denial) => Some(denial.reason.code()),
            _ => None,
        }
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

/// What follows the words for a stranger.
struct Begin<'a>(Option<&'a str>);

impl core::fmt::Display for Begin<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.map_or(Ok(()), |text| write!(f, "; {text}"))
    }
}

/// What to do about a policy that names nobody.
pub(crate) fn how_to_begin(file: &Path) -> String {
    // The file's name alone: a client need not know a node's folders.
    let file = file.file_name().map_or_else(|| "policy.toml".into(), |name| name.to_string_lossy());
    format!(
        "the policy of this node names no clients, so it refuses everything: write {file} with format = 1, a [[client]] (name, \
         certificates = [\"FINGERPRINT\"]) and a [[rule]] (name, effect = \"allow\", clients, keys, operations)"
    )
}
