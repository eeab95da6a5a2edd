//! The groups that keys are on. What is generic over the group is instantiated here, once for each, and nowhere above.

use core::fmt::{self, Debug};
use core::marker::PhantomData;
use std::sync::Arc;

use theta_groups::{Ed448, Ed25519, Group, P256, Ristretto255, Scalar, Secp256k1, bls12_381, bn254};
use theta_sharing::EncodedShare;

use super::evidence::CeremonyEvidence;
use super::key::KeyLogic;
use super::machine::Logic;
use super::participant::Participant;
use super::plan::{Aim, CeremonyPlan};
use super::recovery::RecoveryLogic;
use super::typed::TypedPlan;
use super::{JoinError, Memory};

/// What ceremonies do with a group.
pub(super) trait KeyGroup: Debug + Send + Sync {
    /// The group's name.
    fn name(&self) -> &'static str;
    /// Length of an encoded element in bytes.
    fn element_len(&self) -> usize;
    /// Length of an encoded scalar in bytes.
    fn scalar_len(&self) -> usize;
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

/// The groups of all keys that ceremonies make.
const GROUPS: [&dyn KeyGroup; 9] = [
    &Of::<Ristretto255>::NEW,
    &Of::<Ed25519>::NEW,
    &Of::<Ed448>::NEW,
    &Of::<P256>::NEW,
    &Of::<Secp256k1>::NEW,
    &Of::<bls12_381::G1>::NEW,
    &Of::<bls12_381::G2>::NEW,
    &Of::<bn254::G1>::NEW,
    &Of::<bn254::G2>::NEW,
];

/// The group of that name, as [`Group::NAME`] has it.
pub(super) fn group_named(name: &str) -> Option<&'static dyn KeyGroup> {
    GROUPS.into_iter().find(|group| group.name() == name)
}

struct Of<G>(PhantomData<G>);

impl<G> Of<G> {
    const NEW: Self = Self(PhantomData);
}

impl<G: Group> Debug for Of<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(G::NAME)
    }
}

impl<G: Group> KeyGroup for Of<G> {
    fn name(&self) -> &'static str {
        G::NAME
    }

    fn element_len(&self) -> usize {
        G::ENCODED_LEN
    }

    fn scalar_len(&self) -> usize {
        G::Scalar::ENCODED_LEN
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
