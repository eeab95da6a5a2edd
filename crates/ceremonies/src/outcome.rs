//! How a ceremony ends at one party, and why it cannot begin.

use theta_rounds::PartyId;
use theta_sharing::{EncodedKey, EncodedShare};

use super::certificate::QuorumCertificate;
use super::evidence::CeremonyEvidence;

/// The end of a key's ceremony, which is the same for all honest parties except for their own shares.
#[derive(Debug)]
pub struct Activated {
    /// The key, whose digest the certificate carries.
    pub public: EncodedKey,
    /// This party's share; `None` if it is not among the holders afterwards, or was left out: it forgot its statements,
    /// a decided dealing has no place for it, or its values were false and nobody was left to help. In these cases it
    /// is a holder that has to recover its share.
    pub share: Option<EncodedShare>,
    /// What makes the key active, and old shares obsolete.
    pub certificate: QuorumCertificate,
}

/// How a ceremony ended.
#[derive(Debug)]
pub enum Conclusion {
    /// With a key.
    Activated(Activated),
    /// A quorum agreed to abort it.
    Aborted(QuorumCertificate),
    /// With the share that was lost, at the party that had lost it; with nothing at its helpers.
    Recovered(Option<EncodedShare>),
}

/// What came of a ceremony.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub conclusion: Conclusion,
    /// The parties that lied, with evidence that anybody can check.
    pub evidence: Vec<CeremonyEvidence>,
    /// The parties that had not sent what was due when this party finished. They may be slow, cut off, or unwilling.
    pub silent: Vec<PartyId>,
}

/// Why a party cannot take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The keys are of nobody in the plan.
    #[error("this party's identity is not the one in the plan")]
    Stranger,
    /// The key that the plan begins with is not on the plan's group.
    #[error("the key in the plan is not one of its group")]
    Plan,
    /// The old share is not of the key in the plan.
    #[error("the share does not belong to the key in the plan")]
    Share,
}
