//! Finding one holder's lost share again (Herzberg, Jarecki, Krawczyk, Yung, *Proactive secret sharing*, CRYPTO 1995,
//! section 4.2), without anybody else learning it and without its owner learning anything else.
//!
//! Helpers deal masks, random polynomials that vanish at the lost index. The owner chooses a set of helpers whose masks are right
//! for all of them and asks these for their shares plus the masks' values; at the lost index the sum is the lost share.

mod answer;
mod logic;

use core::marker::PhantomData;
use std::sync::Arc;

use rand_core::CryptoRng;
use theta_rounds::{Effect, Input, Machine, PartyId};
use theta_schemes::keys::{CurveScheme, KeyShare};

use super::evidence::CeremonyEvidence;
use super::key::JoinError;
use super::machine::Ceremony;
use super::plan::{Aim, CeremonyPlan};
use super::{CeremonyKeys, Memory};

pub(super) use answer::{Answer, is_false_answer, read_masks};
use logic::RecoveryLogic;

/// What came of a recovery.
#[derive(Debug)]
pub struct RecoveryOutcome<S: CurveScheme> {
    /// The share, at the party that had lost it.
    pub share: Option<KeyShare<S::KeyGroup>>,
    /// Who lied, with what convinces anyone of it.
    pub evidence: Vec<CeremonyEvidence>,
    /// Helpers that did not help.
    pub silent: Vec<PartyId>,
}

/// A recovery at one party. Like [`super::KeyCeremony`], a pure function of its arguments and inputs.
pub struct Recovery<S: CurveScheme>(Ceremony<RecoveryLogic<S>>);

impl<S: CurveScheme> Recovery<S> {
    /// Joins as a helper, with one's share, or without it as the one that lost it. A helper whose journal is lost looks on.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn new(
        _scheme: PhantomData<S>,
        plan: Arc<CeremonyPlan<S::KeyGroup>>,
        keys: Arc<CeremonyKeys>,
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
        let logic = RecoveryLogic::new(Arc::clone(&plan), Arc::clone(&keys), share).ok_or(JoinError::Plan)?;
        Ok(Self(Ceremony::new(plan, keys, logic)))
    }

    /// Rises with every input that changed what this party knows.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.0.revision()
    }

    /// Who was caught so far, with proof.
    #[must_use]
    pub fn evidence(&self) -> &[CeremonyEvidence] {
        self.0.evidence()
    }

    /// Whose statements are awaited.
    #[must_use]
    pub fn silent(&self) -> Vec<PartyId> {
        self.0.silent()
    }
}

impl<S: CurveScheme> Machine for Recovery<S> {
    type Output = RecoveryOutcome<S>;

    fn handle(&mut self, input: Input, rng: &mut dyn CryptoRng) -> Vec<Effect<RecoveryOutcome<S>>> {
        self.0.handle(input, rng)
    }

    fn contributions(&self) -> (usize, usize) {
        self.0.contributions()
    }

    fn awaits(&self, party: PartyId) -> bool {
        self.0.awaits(party)
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    fn lingers(&self) -> bool {
        self.0.lingers()
    }
}
