//! Counting approvals.

use core::fmt;

use theta_statements::{
    Approval, Ask, Digest, Invalid, MOST_APPROVAL_LIFETIME, MOST_APPROVALS, Name, UnixTime, VerifyingKey,
};

/// An approver: a name and a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Approver {
    pub(crate) name: Name,
    pub(crate) key: VerifyingKey,
}

/// Why an approval does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalFault {
    /// The approver is not among the rule's.
    #[error("{0} is no approver of this rule")]
    UnknownApprover(VerifyingKey),
    /// It approves something else.
    #[error("it approves another {0}")]
    Differs(&'static str),
    /// It is not valid now, or for too long.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Its approver did not sign it.
    #[error("its signature is false")]
    FalseSignature,
    /// Another approval of the same approver counts already.
    #[error("{0} has approved already and counts once")]
    Repeated(Name),
    /// The request has more approvals than it may carry.
    #[error("only the first {MOST_APPROVALS} approvals of a request are looked at")]
    TooMany,
}

/// The approvals that count, and the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consents {
    /// The approvers whose approvals count, each once.
    pub approvers: Vec<Name>,
    /// The approvals that do not count: the place in the request, from 0, and why.
    pub faults: Vec<(usize, ApprovalFault)>,
}

impl fmt::Display for Consents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.approvers.iter().map(Name::as_str).collect();
        write!(f, "{}", if names.is_empty() { "nobody".to_owned() } else { names.join(", ") })?;
        self.faults
            .iter()
            .try_for_each(|(place, fault)| write!(f, "; approval {} does not count: {fault}", place.saturating_add(1)))
    }
}

/// Counts the approvals of the ask by these approvers.
pub(crate) fn count(of: &[Approver], ask: &Ask<'_>, statement: Digest, now: UnixTime) -> Consents {
    let mut consents = Consents::default();
    for (place, approval) in ask.approvals.iter().take(MOST_APPROVALS).enumerate() {
        match check(approval, of, (ask, statement), &consents.approvers, now) {
            Ok(approver) => consents.approvers.push(approver.clone()),
            Err(fault) => consents.faults.push((place, fault)),
        }
    }
    if ask.approvals.len() > MOST_APPROVALS {
        consents.faults.push((MOST_APPROVALS, ApprovalFault::TooMany));
    }
    consents
}

/// Cheap checks come first: an approval of something else costs no verification.
fn check<'a>(
    approval: &Approval,
    of: &'a [Approver],
    (ask, statement): (&Ask<'_>, Digest),
    counted: &[Name],
    now: UnixTime,
) -> Result<&'a Name, ApprovalFault> {
    let approver = of.iter().find(|approver| approver.key == *approval.approver());
    let approver = approver.ok_or(ApprovalFault::UnknownApprover(*approval.approver()))?;
    let terms = approval.terms();
    let same = [
        ("group", terms.group.as_str() == ask.group),
        ("key", terms.key.as_ref().map(Name::as_str) == ask.key),
        ("operation", terms.operation == ask.operation),
        ("statement", terms.statement == statement),
    ];
    if let Some((what, _)) = same.into_iter().find(|(_, same)| !same) {
        return Err(ApprovalFault::Differs(what));
    }
    terms.validity.check_bounded(now, MOST_APPROVAL_LIFETIME)?;
    // Whoever counts already costs no verification either.
    if counted.contains(&approver.name) {
        return Err(ApprovalFault::Repeated(approver.name.clone()));
    }
    approval.check_signature().map_err(|_| ApprovalFault::FalseSignature)?;
    Ok(&approver.name)
}
