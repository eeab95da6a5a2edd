//! The groups that keys are on. What is generic over the group is instantiated here, once for each, and nowhere above.

use core::marker::PhantomData;
use std::sync::Arc;

use theta_groups::Group;
use theta_sharing::EncodedShare;

use super::evidence::CeremonyEvidence;
use super::key::KeyLogic;
use super::machine::{Logic, Memory};
use super::outcome::JoinError;
use super::participant::Participant;
use super::plan::{Aim, CeremonyPlan};
use super::recovery::RecoveryLogic;
use super::sizes::of_all_groups;
use super::typed::TypedPlan;

/// What ceremonies do with a group.
pub(super) trait KeyGroup: Send + Sync {
    /// The group's name.
    fn name(&self) -> &'static str;
    /// What a party does in a ceremony. `share` is its share of the key that the ceremony begins with.
    fn logic(
        &self,
        plan: &Arc<CeremonyPlan>,
        own: &Arc<Participant>,
        share: Option<&EncodedShare>,
        memory: Memory,
    ) -> Result<Box<dyn Logic>, JoinError>;
    /// Whether evidence proves that its culprit lied in the ceremony of this plan.
    fn proves(&self, evidence: &CeremonyEvidence, plan: &Arc<CeremonyPlan>) -> bool;
}

macro_rules! instance {
    ($group:ty) => {
        &Of::<$group>::NEW
    };
}

/// The groups of all keys that ceremonies make.
const GROUPS: [&dyn KeyGroup; 9] = of_all_groups!(instance);

/// The group of that name, as [`Group::NAME`] has it.
pub(super) fn group_named(name: &str) -> Option<&'static dyn KeyGroup> {
    GROUPS.into_iter().find(|group| group.name() == name)
}

struct Of<G>(PhantomData<G>);

impl<G> Of<G> {
    const NEW: Self = Self(PhantomData);
}

impl<G: Group> KeyGroup for Of<G> {
    fn name(&self) -> &'static str {
        G::NAME
    }

    fn logic(
        &self,
        plan: &Arc<CeremonyPlan>,
        own: &Arc<Participant>,
        share: Option<&EncodedShare>,
        memory: Memory,
    ) -> Result<Box<dyn Logic>, JoinError> {
        let plan = Arc::new(TypedPlan::<G>::new(Arc::clone(plan)).ok_or(JoinError::Plan)?);
        let share = match share {
            None => None,
            Some(share) => Some(Arc::new(plan.secret_of(share, own.party()).ok_or(JoinError::Share)?)),
        };
        let own = Arc::clone(own);
        Ok(match plan.aim() {
            Aim::Recover(_, lost) => {
                let lost = *lost;
                Box::new(RecoveryLogic::new(plan, own, lost, share, memory).ok_or(JoinError::Plan)?)
            }
            Aim::Generate | Aim::Reshare(_) => Box::new(KeyLogic::new(plan, own, share, memory)),
        })
    }

    fn proves(&self, evidence: &CeremonyEvidence, plan: &Arc<CeremonyPlan>) -> bool {
        TypedPlan::<G>::new(Arc::clone(plan)).is_some_and(|plan| evidence.is_proof(&plan))
    }
}
