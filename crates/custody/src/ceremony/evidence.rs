//! Evidence of any suite, checked by a third party.

use theta_ceremonies::CeremonyEvidence;
use theta_rounds::Malformed;
use theta_schemes::keys::KeyName;

use super::subject::unbundle;
use crate::{CeremonyError, Roster};

/// What evidence proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenLie {
    /// The culprit's number.
    pub node: u16,
    /// What it did, for people.
    pub misbehaviour: String,
    /// In which ceremony.
    pub ceremony: [u8; 32],
    /// `create`, `rotate`, `refresh`, `reshare` or `recover`.
    pub aim: &'static str,
    /// Of which key.
    pub key: KeyName,
}

/// Why evidence proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// Not evidence.
    #[error("this is no evidence: {0}")]
    Malformed(#[from] Malformed),
    /// Of no ceremony that this group could have held.
    #[error("the evidence is of another group, or its identities are others by now: {0}")]
    Ceremony(#[from] CeremonyError),
    /// It does not hold.
    #[error("the evidence proves nothing: nobody is to be blamed for it")]
    Unproven,
}

/// Judges the evidence of an [`crate::EvidenceReport`]. It takes the group's roster of that time, and nothing else; an honest
/// node is never proven guilty.
///
/// # Errors
/// [`EvidenceError`] with the reason.
pub fn check_evidence(bytes: &[u8], group: &Roster) -> Result<ProvenLie, EvidenceError> {
    let (subject, evidence) = unbundle(bytes)?;
    let evidence = CeremonyEvidence::decode(evidence)?;
    let plan = subject.plan(group)?;
    let ceremony = *plan.id().as_bytes();
    if !evidence.verify(&plan) {
        return Err(EvidenceError::Unproven);
    }
    let change = &subject.request.change;
    let (node, misbehaviour) = (evidence.culprit().get(), evidence.to_string());
    Ok(ProvenLie { node, misbehaviour, ceremony, aim: change.aim(), key: change.key().clone() })
}
