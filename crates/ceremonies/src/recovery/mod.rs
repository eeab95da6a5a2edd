//! Finding one holder's lost share again (Herzberg, Jarecki, Krawczyk, Yung, *Proactive secret sharing*, CRYPTO 1995,
//! section 4.2), without anybody else learning it and without its owner learning anything else.
//!
//! Helpers deal masks, random polynomials that vanish at the lost index. The owner chooses a set of helpers whose masks are right
//! for all of them and asks these for their shares plus the masks' values; at the lost index the sum is the lost share.
//!
//! The owner may lie, and tell each helper another list. So a helper accepts one list an attempt, with its signature, and answers
//! when all who are listed have accepted the very same: `spec/ceremonies.md` proves that nothing else is learnt then.

mod acceptance;
mod answer;
mod logic;

use core::marker::PhantomData;
use std::sync::Arc;

use theta_groups::Secret;
use theta_rounds::PartyId;
use theta_schemes::keys::{CurveScheme, KeyShare};

use super::evidence::CeremonyEvidence;
use super::key::JoinError;
use super::machine::{Ceremony, face};
use super::participant::Participant;
use super::plan::{Aim, CeremonyPlan};
use super::{CeremonyKeys, Memory};

pub(super) use acceptance::read_acceptances;
pub(super) use answer::{Answer, is_false_answer, read_masks};
use logic::RecoveryLogic;

/// What came of a recovery.
#[derive(Debug)]
pub struct RecoveryOutcome<S: CurveScheme> {
    /// The share, at the party that had lost it.
    pub share: Option<KeyShare<S::KeyGroup>>,
    /// The parties that lied, with evidence that anybody can check.
    pub evidence: Vec<CeremonyEvidence>,
    /// Helpers that did not help.
    pub silent: Vec<PartyId>,
}

/// A recovery at one party. Like [`super::KeyCeremony`], a pure function of its arguments and inputs.
pub struct Recovery<S: CurveScheme>(Ceremony<RecoveryLogic<S>>);

impl<S: CurveScheme> Recovery<S> {
    /// Joins as a helper, with one's share, or without it as the one that lost it. A helper whose journal is lost looks on; an
    /// owner whose journal is lost listens to what it has asked, and then asks anew. `secret` is drawn for this ceremony alone,
    /// and kept as long as it runs and no longer.
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
        let Aim::Recover(source, lost) = plan.aim() else { return Err(JoinError::Plan) };
        if plan.suite() != S::SUITE {
            return Err(JoinError::Plan);
        }
        let index = plan.index_of(keys.party());
        if share.as_ref().is_some_and(|share| !source.public.matches(share) || index != Some(share.index())) {
            return Err(JoinError::Share);
        }
        let share = share.filter(|share| share.index() != *lost && memory == Memory::Kept);
        let own = Arc::new(Participant::new(keys, *plan.id(), secret));
        let logic = RecoveryLogic::new(Arc::clone(&plan), Arc::clone(&own), share, memory).ok_or(JoinError::Plan)?;
        Ok(Self(Ceremony::new(plan, own, logic)))
    }
}

face!(Recovery, RecoveryOutcome);
