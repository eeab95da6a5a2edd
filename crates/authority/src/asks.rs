//! The requests about which the gate decides.

use bytes::Bytes;
use theta_names::{KeyRef, Label, Operation};
use theta_statements::audit::Checkpoint;
use theta_statements::{Approval, Ask, CancelRequest, CeremonyRequest, MemberRequest, StateChange, TakeBackRequest};

use crate::{ParsedStatement, Request};

mod sealed {
    pub trait Sealed {}
}

/// A request about which the gate decides. What the gate sees is computed from the request itself, so that nothing else
/// can be done than was decided.
pub trait Asks: sealed::Sealed {
    /// What policy, approvals, signatures and records see of it.
    fn asked(&self) -> Asked;
}

/// What policy, approvals, signatures and records see of a request.
#[derive(Clone)]
pub struct Asked {
    /// The key's name, without its version.
    pub(crate) key: Option<String>,
    pub(crate) operation: Operation,
    pub(crate) label: Label<Bytes>,
    pub(crate) statement: Bytes,
    /// Must not be shown: it contains the seed of a re-randomised key.
    pub(crate) parameters: Bytes,
    pub(crate) slot: Option<u64>,
    /// Whether the decision must be in the log before it is acted on, whatever its rule says.
    pub(crate) recorded_first: bool,
    /// Whether only what every client checks answers by is read ([`theta_policy::Policy::decide_public`]).
    pub(crate) public: bool,
    /// Whether it has the node compute with a share: then it counts as a submission.
    pub(crate) is_submission: bool,
}

impl core::fmt::Debug for Asked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut shown = f.debug_struct("Asked");
        shown.field("key", &self.key).field("operation", &self.operation).field("slot", &self.slot);
        shown.field("statement_bytes", &self.statement.len()).finish_non_exhaustive()
    }
}

impl Asked {
    /// An operation without key, message or parameters.
    pub(crate) fn new(operation: Operation) -> Self {
        Self {
            key: None,
            operation,
            label: Label::default(),
            statement: Bytes::new(),
            parameters: Bytes::new(),
            slot: None,
            recorded_first: false,
            public: false,
            is_submission: false,
        }
    }

    /// Whether something leaves the node that no later record could undo: a share, a result, a change of a key.
    pub(crate) const fn lets_out(&self) -> bool {
        use Operation::{AuditRead, KeysList, PolicyRead, Status};
        !matches!(self.operation, KeysList | Status | PolicyRead | AuditRead)
    }

    /// What is asked for, in the form that [`theta_policy`] decides about.
    #[must_use]
    pub fn ask<'a>(&'a self, group: &'a str, approvals: &'a [Approval]) -> Ask<'a> {
        Ask {
            group,
            key: self.key.as_deref(),
            operation: self.operation,
            label: self.label.view(),
            statement: &self.statement,
            parameters: &self.parameters,
            slot: self.slot,
            approvals,
        }
    }
}

/// Requests that only read the node's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// The node's status.
    Status,
    /// All its keys.
    Keys,
    /// The group's ledger.
    Ledger,
    /// One key, and whatever can be computed from its public part.
    Key(KeyRef),
    /// The policy, and how it would decide about a request.
    Policy,
    /// The audit log.
    Audit,
}

impl sealed::Sealed for Look {}
impl Asks for Look {
    fn asked(&self) -> Asked {
        let list = || Asked::new(Operation::KeysList);
        match self {
            Self::Status => Asked::new(Operation::Status),
            Self::Keys => list(),
            Self::Ledger => Asked { public: true, ..list() },
            Self::Key(key) => {
                let parameters = key.parameters(&[]).into();
                Asked { key: Some(key.name.to_string()), parameters, public: true, ..list() }
            }
            Self::Policy => Asked::new(Operation::PolicyRead),
            Self::Audit => Asked::new(Operation::AuditRead),
        }
    }
}

/// All ceremonies that a node knows.
#[derive(Clone, Copy, Debug)]
pub struct ListCeremonies;

impl sealed::Sealed for ListCeremonies {}
impl Asks for ListCeremonies {
    fn asked(&self) -> Asked {
        Look::Keys.asked()
    }
}

/// How the ceremony with this id goes.
#[derive(Clone, Copy, Debug)]
pub struct WatchCeremony(pub [u8; 32]);

impl sealed::Sealed for WatchCeremony {}
impl Asks for WatchCeremony {
    fn asked(&self) -> Asked {
        Asked { statement: Bytes::copy_from_slice(&self.0), ..Look::Keys.asked() }
    }
}

/// A backup of the whole node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackUp;

impl sealed::Sealed for BackUp {}
impl Asks for BackUp {
    fn asked(&self) -> Asked {
        Asked { recorded_first: true, ..Asked::new(Operation::KeysBackup) }
    }
}

/// The audit log's past is kept elsewhere and removed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneAudit {
    /// It and all before it.
    pub through: Checkpoint,
}

impl sealed::Sealed for PruneAudit {}
impl Asks for PruneAudit {
    fn asked(&self) -> Asked {
        // The checkpoint's text is the statement: a consent to it is to these very records.
        let statement = self.through.to_string().into_bytes().into();
        Asked { statement, recorded_first: true, ..Asked::new(Operation::AuditPrune) }
    }
}

impl sealed::Sealed for Request {}
impl Asks for Request {
    fn asked(&self) -> Asked {
        let seed = self.seed().map_or(&[][..], |seed| seed.expose());
        let label = match self.statement() {
            ParsedStatement::Header(header) => header.label(),
            ParsedStatement::Message(_) | ParsedStatement::Digest(_) | ParsedStatement::CoinName(_) => Label::default(),
        };
        Asked {
            key: Some(self.key().name.to_string()),
            label,
            statement: self.statement().bytes().clone(),
            parameters: self.key().parameters(seed).into(),
            slot: self.slot(),
            is_submission: true,
            ..Asked::new(self.operation())
        }
    }
}

impl sealed::Sealed for CeremonyRequest {}
impl Asks for CeremonyRequest {
    fn asked(&self) -> Asked {
        Asked {
            key: Some(self.change.key().to_string()),
            statement: self.encode().into(),
            recorded_first: true,
            ..Asked::new(self.change.operation())
        }
    }
}

impl sealed::Sealed for CancelRequest {}
impl Asks for CancelRequest {
    fn asked(&self) -> Asked {
        let CeremonyRequest { change, .. } = &self.request;
        Asked {
            key: Some(change.key().to_string()),
            statement: self.encode().into(),
            recorded_first: true,
            ..Asked::new(change.operation())
        }
    }
}

impl sealed::Sealed for MemberRequest {}
impl Asks for MemberRequest {
    fn asked(&self) -> Asked {
        Asked { statement: self.encode().into(), recorded_first: true, ..Asked::new(self.operation()) }
    }
}

impl sealed::Sealed for TakeBackRequest {}
impl Asks for TakeBackRequest {
    fn asked(&self) -> Asked {
        // Of what proves itself nothing can be taken back.
        Asked { statement: self.encode().into(), recorded_first: true, ..Asked::new(Operation::GroupChange) }
    }
}

/// A warrant, under which other machines vote in the place of lost ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BringWarrant {
    /// Its encoding.
    pub warrant: Bytes,
}

impl sealed::Sealed for BringWarrant {}
impl Asks for BringWarrant {
    fn asked(&self) -> Asked {
        // A quorum of the operators has signed it: whoever brings it decides nothing.
        Asked { statement: self.warrant.clone(), recorded_first: true, ..Asked::new(Operation::GroupRenew) }
    }
}

impl sealed::Sealed for StateChange {}
impl Asks for StateChange {
    fn asked(&self) -> Asked {
        use theta_names::KeyState::{Active, Destroyed, Disabled, Pending, Retired};
        let operation = match self.state {
            Active => Operation::KeysEnable,
            // A retired version no longer signs, but still decrypts: retiring is a way of disabling. No request makes a
            // key pending.
            Retired | Disabled | Pending => Operation::KeysDisable,
            Destroyed => Operation::KeysDestroy,
        };
        Asked {
            key: Some(self.key.to_string()),
            statement: self.encode().into(),
            recorded_first: true,
            ..Asked::new(operation)
        }
    }
}
