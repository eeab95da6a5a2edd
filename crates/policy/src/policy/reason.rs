//! Why a decision came out as it did.

use theta_statements::{Invalid, Name};

use crate::approval::Consents;
use crate::rate::Rate;

/// Why. The text is for the people who asked and for those who keep the policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// A rule allows it and all its conditions hold.
    #[error("allowed")]
    Allowed,
    /// The policy in force no longer has the client's certificate, token or key.
    #[error("the credential of this client has been withdrawn; ask for a new one")]
    CredentialWithdrawn,
    /// A deny rule is about it.
    #[error("a rule denies it")]
    Denied,
    /// No rule is about it.
    #[error("no rule allows it")]
    NoRule,
    /// The only rule about it is not valid now.
    #[error("the rule that would decide is not in force: {0}")]
    NotInForce(Invalid),
    /// Too often.
    #[error("more often than {rate}; try again in {wait} ms")]
    TooOften {
        /// The rule's rate.
        rate: Rate,
        /// Milliseconds until it is possible again.
        wait: u64,
    },
    /// The node cannot count any further clients for now.
    #[error("this node counts the requests of too many clients at once; try again later")]
    RatesFull,
    /// Too few approvers have consented.
    #[error("it takes {need} approvals and has {}: {consents}", consents.approvers.len())]
    TooFewApprovals {
        /// How many it takes.
        need: usize,
        /// Those that count, and why others do not.
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
    /// The slot is not among those that may be signed.
    #[error("slot {slot} is not between {first} and {last}, as signing rule {signing} demands")]
    SlotOutside {
        /// The signing rule.
        signing: Name,
        /// The request's.
        slot: u64,
        /// The first allowed.
        first: u64,
        /// The last allowed.
        last: u64,
    },
    /// A rule allows it, and another message has the slot here: it is signed only if the slot is certified for it.
    #[error("allowed if slot {slot} is certified for it: signing rule {signing} gave it to another message here")]
    SlotContested {
        /// The signing rule.
        signing: Name,
        /// The slot.
        slot: u64,
    },
    /// A rule allows it, and the slot is over here: it is signed only if the slot is certified for it.
    #[error("allowed if slot {slot} is certified for it: signing rule {signing} has ended all slots up to {mark} here")]
    SlotOver {
        /// The signing rule.
        signing: Name,
        /// The slot.
        slot: u64,
        /// The highest that is over.
        mark: u64,
    },
    /// The node cannot remember.
    #[error("signing rule {signing} cannot be checked: {problem}")]
    SlotsUnavailable {
        /// The signing rule.
        signing: Name,
        /// What the state said.
        problem: String,
    },
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
