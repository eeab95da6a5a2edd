//! Key generation, refresh and resharing: deal, agree on the dealings that count, derive the key, certify it.

mod derive;
mod judge;
mod logic;
mod steps;

use core::marker::PhantomData;
use std::sync::Arc;

use theta_groups::Secret;
use theta_rounds::PartyId;
use theta_schemes::keys::{CurveScheme, KeyShare, PublicKeySet};

use super::certificate::QuorumCertificate;
use super::evidence::CeremonyEvidence;
use super::machine::{Ceremony, face};
use super::participant::Participant;
use super::plan::{Aim, CeremonyPlan};
use super::{CeremonyKeys, Memory};

pub(super) use derive::{Keys, Material, check_key, read_key};
pub(super) use judge::Selection;
pub(super) use steps::KeyLogic;

/// The end of a key's ceremony, the same for all honest parties but for their own share and what they noticed.
#[derive(Debug)]
pub struct Activated<S: CurveScheme> {
    /// The key, whose digest the certificate carries.
    pub public: Arc<PublicKeySet<S::KeyGroup>>,
    /// This party's share; `None` if it is not among the holders afterwards, or was left out: it forgot what it had said, a
    /// dealing that counts has no place for it, or what was dealt to it was false and nobody is there any more to help. Then
    /// it is a holder that has to recover its share.
    pub share: Option<KeyShare<S::KeyGroup>>,
    /// What makes the key active, and old shares obsolete.
    pub certificate: QuorumCertificate,
}

/// How a ceremony ended.
#[derive(Debug)]
pub enum Conclusion<S: CurveScheme> {
    /// With a key.
    Activated(Activated<S>),
    /// A quorum agreed to abort it.
    CalledOff(QuorumCertificate),
}

/// What came of a ceremony.
#[derive(Debug)]
pub struct KeyOutcome<S: CurveScheme> {
    /// How it ended.
    pub conclusion: Conclusion<S>,
    /// The parties that lied, with evidence that anybody can check.
    pub evidence: Vec<CeremonyEvidence>,
    /// Who had not said what was due when this party finished. They may be slow, cut off, or unwilling.
    pub silent: Vec<PartyId>,
}

/// A key generation, refresh or resharing at one party.
///
/// It is a pure function of its arguments and the ordered inputs: replayed from a journal, it says the same to the byte. All that it
/// hides follows from the secret that it is given: when that and the machine are destroyed, what was sealed to this party in the
/// ceremony stays sealed for ever.
/// Only inputs that raise [`KeyCeremony::revision`] need to be in the journal, before what they caused is sent.
pub struct KeyCeremony<S: CurveScheme>(Ceremony<KeyLogic<S>>);

/// Why a party cannot take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The keys are of nobody in the plan.
    #[error("this party's identity is not the one in the plan")]
    Stranger,
    /// The plan is for another scheme or another aim.
    #[error("the plan is not for this kind of ceremony")]
    Plan,
    /// The old share is not of the key in the plan.
    #[error("the share does not belong to the key in the plan")]
    Share,
}

impl<S: CurveScheme> KeyCeremony<S> {
    /// Joins a ceremony for a new key or new shares. `secret` is drawn for this ceremony alone, and kept as long as it runs and no
    /// longer; whose journal is lost says nothing that follows from it. `share` is this party's share of the old key; without it, a
    /// holder takes part but does not deal.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn new(
        _scheme: PhantomData<S>,
        plan: Arc<CeremonyPlan<S::KeyGroup>>,
        keys: Arc<CeremonyKeys>,
        secret: Secret<[u8; 32]>,
        share: Option<Arc<KeyShare<S::KeyGroup>>>,
        memory: Memory,
    ) -> Result<Self, JoinError> {
        if plan.member(keys.party()) != Some(keys.member()) {
            return Err(JoinError::Stranger);
        }
        if plan.suite() != S::SUITE || matches!(plan.aim(), Aim::Recover(..)) {
            return Err(JoinError::Plan);
        }
        if let Some(share) = &share {
            let belongs = plan.source().is_some_and(|source| source.public.matches(share));
            if !belongs || plan.dealer_index(keys.party()) != Some(share.index()) {
                return Err(JoinError::Share);
            }
        }
        let own = Arc::new(Participant::new(keys, *plan.id(), secret));
        let logic = KeyLogic::new(Arc::clone(&plan), Arc::clone(&own), share, memory);
        Ok(Self(Ceremony::new(plan, own, logic)))
    }
}

face!(KeyCeremony, KeyOutcome);
