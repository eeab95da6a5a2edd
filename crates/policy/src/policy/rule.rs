//! Rules, and whether they match a request.

use core::fmt;
use std::collections::BTreeSet;

use serde::Serialize;
use theta_names::Operation;
use theta_statements::{Ask, Invalid, Name, UnixTime, Validity};

use crate::agent::Agent;
use crate::approval::Approver;
use crate::operation::OperationSet;
use crate::pattern::KeyPattern;
use crate::rate::Rate;

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Allows a request if the rule's conditions hold.
    Allow,
    /// Refuses a request, whatever other rules allow.
    Deny,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        })
    }
}

/// When the record of a decision that a rule made is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Recording {
    /// Before anything leaves the node for the request, so that no crash loses the record.
    #[default]
    First,
    /// Soon after: a crash may lose the records of the last answers.
    Soon,
}

impl Recording {
    /// The word in policy files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Soon => "soon",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) name: Name,
    /// The rule's line in the file, from 1.
    pub(crate) line: usize,
    pub(crate) effect: Effect,
    pub(crate) clients: Clients,
    pub(crate) keys: Vec<KeyPattern>,
    pub(crate) operations: OperationSet,
    /// Prefixes of labels; an empty list matches every label.
    pub(crate) labels: Vec<String>,
    pub(crate) validity: Validity,
    pub(crate) rate: Option<Rate>,
    pub(crate) approvals: Option<Quorum>,
    pub(crate) recording: Recording,
    /// Whose consent to the content it takes.
    pub(crate) agent: Option<Agent>,
}

#[derive(Clone, Debug)]
pub(crate) enum Clients {
    All,
    Named(BTreeSet<Name>),
}

/// m of n approvers.
#[derive(Clone, Debug)]
pub(crate) struct Quorum {
    pub(crate) of: Vec<Approver>,
    pub(crate) need: usize,
}

/// Why a rule does not match a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error("it is not about client {0}")]
    Client(String),
    #[error("it is not about {0}")]
    Operation(Operation),
    #[error("it is not about key {0}")]
    Key(String),
    #[error("it is not about requests without a key; those need keys = [\"*\"]")]
    NoKey,
    #[error("the label begins with none of its labels")]
    Label,
    #[error(transparent)]
    Validity(Invalid),
}

impl Rule {
    /// Whether the ask is to sign a digest, and the rule would decide about its message on conditions, and does not name digests.
    pub(crate) fn holds_digest_back(&self, client: &str, ask: &Ask<'_>, now: UnixTime) -> bool {
        let conditional = self.rate.is_some() || self.approvals.is_some() || self.agent.is_some();
        let of_messages = self.effect == Effect::Allow && !self.operations.contains(Operation::SignDigest);
        let as_message = Ask { operation: Operation::Sign, ..*ask };
        let asked = ask.operation == Operation::SignDigest && conditional && of_messages;
        asked && self.mismatch(client, &as_message, now).is_none()
    }

    /// Whether the rule lets this client do anything at all with what the ask is about: with the ask's key, or, of an ask without a key,
    /// with any.
    pub(crate) fn lets_in(&self, client: &str, ask: &Ask<'_>, now: UnixTime) -> bool {
        let about_it = ask.key.is_none() || self.keys.iter().any(|pattern| pattern.matches(ask.key));
        self.effect == Effect::Allow && about_it && self.is_about_client(client) && self.validity.check(now).is_ok()
    }

    fn is_about_client(&self, client: &str) -> bool {
        match &self.clients {
            Clients::All => true,
            Clients::Named(names) => names.iter().any(|name| name.as_str() == client),
        }
    }

    /// The first reason why the rule does not match the ask. Validity is checked last, so that this reason means that the rule
    /// would match at another time.
    pub(crate) fn mismatch(&self, client: &str, ask: &Ask<'_>, now: UnixTime) -> Option<Mismatch> {
        if !self.is_about_client(client) {
            return Some(Mismatch::Client(client.to_owned()));
        }
        // Who may not sign a message may not sign it by its digest either, whoever wrote the rule before there were digests.
        let of_messages = ask.operation == Operation::SignDigest && self.effect == Effect::Deny;
        let denied_as_message = of_messages && self.operations.contains(Operation::Sign);
        if !self.operations.contains(ask.operation) && !denied_as_message {
            return Some(Mismatch::Operation(ask.operation));
        }
        if !self.keys.iter().any(|pattern| pattern.matches(ask.key)) {
            return Some(ask.key.map_or(Mismatch::NoKey, |key| Mismatch::Key(key.to_owned())));
        }
        if !self.labels.is_empty() && !self.labels.iter().any(|prefix| ask.label.bytes().starts_with(prefix.as_bytes()))
        {
            return Some(Mismatch::Label);
        }
        self.validity.check(now).err().map(Mismatch::Validity)
    }
}
