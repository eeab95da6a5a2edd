//! What the gate can be asked about.

use bytes::Bytes;
use theta_names::{KeyRef, Label, Operation};
use theta_statements::audit::Checkpoint;
use theta_statements::{Approval, Ask, CeremonyRequest, StateChange};

use crate::{ParsedStatement, Request};

mod sealed {
    pub trait Sealed {}
}

/// Something that the gate decides about: all that it is made of says what it is, so that nothing else can be done than was
/// decided about.
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
    /// Not to be shown: the seed of a re-randomised key is in it.
    pub(crate) parameters: Bytes,
    pub(crate) slot: Option<u64>,
    /// Whether the decision must be in the log before it is acted on, whatever its rule says.
    pub(crate) recorded_first: bool,
}

impl core::fmt::Debug for Asked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut shown = f.debug_struct("Asked");
        shown.field("key", &self.key).field("operation", &self.operation).field("slot", &self.slot);
        shown.field("statement_bytes", &self.statement.len()).finish_non_exhaustive()
    }
}

impl Asked {
    /// An operation about nothing yet.
    pub(crate) fn new(operation: Operation) -> Self {
        Self {
            key: None,
            operation,
            label: Label::default(),
            statement: Bytes::new(),
            parameters: Bytes::new(),
            slot: None,
            recorded_first: false,
        }
    }

    /// Whether something leaves the node that no later record could take back: a share, a result, a key's change.
    pub(crate) const fn lets_out(&self) -> bool {
        use Operation::{AuditRead, KeysList, PolicyRead, Status};
        !matches!(self.operation, KeysList | Status | PolicyRead | AuditRead)
    }

    /// What is asked for, whatever the request carries besides; for [`theta_policy`].
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

/// What lets nothing out but what is to be seen of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// How the node is.
    Status,
    /// All its keys, or all its ceremonies.
    Keys,
    /// One key, and what anybody can compute who sees it.
    Key(KeyRef),
    /// One ceremony, by its id.
    Ceremony([u8; 32]),
    /// The policy, and how it would decide.
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
            Self::Key(key) => {
                Asked { key: Some(key.name.to_string()), parameters: key.parameters(&[]).into(), ..list() }
            }
            Self::Ceremony(id) => Asked { statement: Bytes::copy_from_slice(id), ..list() },
            Self::Policy => Asked::new(Operation::PolicyRead),
            Self::Audit => Asked::new(Operation::AuditRead),
        }
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

impl sealed::Sealed for StateChange {}
impl Asks for StateChange {
    fn asked(&self) -> Asked {
        use theta_names::KeyState::{Active, Destroyed, Disabled, Pending, Retired};
        let operation = match self.state {
            Active => Operation::KeysEnable,
            // What is retired signs no more: a way of disabling that leaves decryption. No key is made pending.
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
