//! The reasons of decisions.

use theta_statements::{Invalid, Name};

use crate::agent::Objection;
use crate::approval::Consents;
use crate::rate::Rate;

/// The reason of a decision. Its text is for those who ask and for those who write the policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// A rule allows it and all its conditions hold.
    #[error("allowed")]
    Allowed,
    /// The policy in force no longer has the client's certificate, token or key.
    #[error("the credential of this client has been withdrawn; ask for a new one")]
    CredentialWithdrawn,
    /// A deny rule matches the request.
    #[error("a rule denies it")]
    Denied,
    /// No rule matches the request.
    #[error("no rule allows it")]
    NoRule,
    /// No rule that is in force matches the request; an allow rule would at another time.
    #[error("the rule that would decide is not in force: {0}")]
    NotInForce(Invalid),
    /// The client asks more often than the rule allows.
    #[error("more often than {rate}; try again in {wait} ms")]
    TooOften {
        /// The rule's rate.
        rate: Rate,
        /// Milliseconds until it is possible again.
        wait: u64,
    },
    /// The node has no memory to count another client for a rule.
    #[error("this node counts the requests of too many clients at once; try again later")]
    RatesFull,
    /// The agent of the rule refuses, or does not answer.
    #[error("agent {agent} {}: {objection}", objects(objection))]
    AgentObjects {
        /// The agent.
        agent: Name,
        /// What it said, or why it was not heard.
        objection: Objection,
    },
    /// Nobody asked the agent of the rule: the policy has just changed, or the request came by a way that asks no agents.
    #[error("agent {agent} was not asked; ask again")]
    AgentUnasked {
        /// The agent.
        agent: Name,
    },
    /// Too few approvals count.
    #[error("it takes {need} {}; given by: {consents}", if *need == 1 { "approval" } else { "approvals" })]
    TooFewApprovals {
        /// How many approvals the rule needs.
        need: usize,
        /// The approvals that count, and why others do not.
        consents: Consents,
    },
    /// A signing rule needs a slot and the request has none.
    #[error("signing rule {signing} needs to know the slot; say which")]
    SlotMissing {
        /// The signing rule.
        signing: Name,
    },
    /// The message is too short to begin with a slot, or only its digest was sent.
    #[error(
        "signing rule {signing} finds the slot in the message, which is shorter than a slot or was sent as its digest alone"
    )]
    SlotUnreadable {
        /// The signing rule.
        signing: Name,
    },
    /// The message is for another slot than the request says.
    #[error("the message is not for the slot that the request names, which signing rule {signing} demands")]
    SlotDiffers {
        /// The signing rule.
        signing: Name,
    },
    /// The slot is outside the signing rule's window.
    #[error("slot {slot} is not between {first} and {last}, as signing rule {signing} demands")]
    SlotOutside {
        /// The signing rule.
        signing: Name,
        /// The request's slot.
        slot: u64,
        /// The first slot that is allowed.
        first: u64,
        /// The last slot that is allowed.
        last: u64,
    },
    /// A rule allows it, but this node gave the slot to another message: it is signed only if the slot is certified for it.
    #[error("allowed if slot {slot} is certified for it: signing rule {signing} gave it to another message here")]
    SlotContested {
        /// The signing rule.
        signing: Name,
        /// The slot.
        slot: u64,
    },
    /// A rule allows it, but the slot is closed at this node: it is signed only if the slot is certified for it.
    #[error("allowed if slot {slot} is certified for it: signing rule {signing} has ended all slots up to {mark} here")]
    SlotOver {
        /// The signing rule.
        signing: Name,
        /// The slot.
        slot: u64,
        /// The highest closed slot.
        mark: u64,
    },
    /// The memory of slots cannot be read or written.
    #[error("signing rule {signing} cannot be checked: {problem}")]
    SlotsUnavailable {
        /// The signing rule.
        signing: Name,
        /// The error of [`SlotState`](crate::SlotState).
        problem: String,
    },
}

const fn objects(objection: &Objection) -> &'static str {
    match objection {
        Objection::Refused(_) => "refuses it",
        Objection::Silent(_) => "cannot be heard",
    }
}

impl Reason {
    /// A short name that never changes, for logs and metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::CredentialWithdrawn => "credential-withdrawn",
            Self::Denied => "denied",
            Self::NoRule => "no-rule",
            Self::NotInForce(_) => "not-in-force",
            Self::TooOften { .. } => "too-often",
            Self::RatesFull => "rates-full",
            Self::AgentObjects { objection: Objection::Refused(_), .. } => "agent-refuses",
            Self::AgentObjects { objection: Objection::Silent(_), .. } => "agent-silent",
            Self::AgentUnasked { .. } => "agent-unasked",
            Self::TooFewApprovals { .. } => "too-few-approvals",
            Self::SlotMissing { .. } => "slot-missing",
            Self::SlotUnreadable { .. } => "slot-unreadable",
            Self::SlotDiffers { .. } => "slot-differs",
            Self::SlotOutside { .. } => "slot-outside",
            Self::SlotContested { .. } => "slot-contested",
            Self::SlotOver { .. } => "slot-over",
            Self::SlotsUnavailable { .. } => "slots-unavailable",
        }
    }
}
