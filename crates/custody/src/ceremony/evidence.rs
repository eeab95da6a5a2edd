//! Evidence from ceremonies of any suite, judged by a third party.

use theta_ceremonies::CeremonyEvidence;
use theta_rounds::Malformed;
use theta_schemes::keys::KeyName;

use super::Subject;
use crate::{CeremonyError, EvidenceReport, Roster};

/// What evidence proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenLie {
    /// Who lied and how, with the statements that prove it.
    pub evidence: CeremonyEvidence,
    /// The id of the ceremony.
    pub ceremony: [u8; 32],
    /// `create`, `rotate`, `refresh`, `reshare` or `recover`.
    pub aim: &'static str,
    /// The key of the ceremony.
    pub key: KeyName,
}

/// Why evidence proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// The bytes are not evidence.
    #[error("this is no evidence: {0}")]
    Malformed(#[from] Malformed),
    /// It is of no ceremony that this group could have run.
    #[error("the evidence is of another group, or its identities are others by now: {0}")]
    Ceremony(#[from] CeremonyError),
    /// The evidence does not prove what it claims.
    #[error("the evidence proves nothing: nobody is to be blamed for it")]
    Unproven,
}

/// Judges the evidence of an [`crate::EvidenceReport`], by the group's roster of that time alone. An honest node is
/// never proven guilty.
///
/// # Errors
/// [`EvidenceError`] with the reason.
pub fn check_evidence(bytes: &[u8], group: &Roster) -> Result<ProvenLie, EvidenceError> {
    let told = EvidenceReport::decode(bytes)?;
    let subject = Subject::decode(told.subject())?;
    let plan = subject.plan(&group.name, &group.members)?;
    let ceremony = subject.request.digest();
    let evidence = told.evidence().filter(|evidence| evidence.verify(&plan)).ok_or(EvidenceError::Unproven)?;
    let change = &subject.request.change;
    Ok(ProvenLie { evidence: evidence.clone(), ceremony, aim: change.aim(), key: change.key().clone() })
}
