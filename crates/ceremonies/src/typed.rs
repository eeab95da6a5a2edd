//! A plan beside the key that it begins with, as elements of the key's group.

use core::ops::Deref;
use std::sync::Arc;

use theta_groups::{Group, Scalar, Secret};
use theta_rounds::PartyId;
use theta_sharing::{Encoded, EncodedShare, ShareIndex};

use super::plan::CeremonyPlan;

/// A plan for those who compute in its group.
pub(super) struct TypedPlan<G: Group> {
    plan: Arc<CeremonyPlan>,
    /// Public key and verification keys of the source.
    source: Option<(Encoded<G>, Vec<Encoded<G>>)>,
}

impl<G: Group> TypedPlan<G> {
    /// `None` if the key that it begins with is not of this group.
    pub(super) fn new(plan: Arc<CeremonyPlan>) -> Option<Self> {
        let source = match plan.source() {
            None => None,
            Some(source) => {
                let keys = source.public.verification_keys.iter().map(|key| Encoded::decode(key).ok());
                Some((Encoded::decode(&source.public.public_key).ok()?, keys.collect::<Option<_>>()?))
            }
        };
        (plan.group().name() == G::NAME).then_some(Self { plan, source })
    }

    /// The public key of the source.
    pub(super) fn source_public_key(&self) -> Option<&Encoded<G>> {
        self.source.as_ref().map(|(public_key, _)| public_key)
    }

    /// A verification key of the source.
    pub(super) fn source_key(&self, index: ShareIndex) -> Option<&Encoded<G>> {
        self.source.as_ref()?.1.get(index.position())
    }

    /// The secret in a share of the source, if it is this party's.
    pub(super) fn secret_of(&self, share: &EncodedShare, party: PartyId) -> Option<Secret<G::Scalar>> {
        let index = self.dealer_index(party).filter(|index| *index == share.index)?;
        let secret = Secret::new(G::Scalar::decode(share.secret.expose()).ok()?);
        (G::mul_base(secret.expose()) == *self.source_key(index)?.element()).then_some(secret)
    }
}

impl<G: Group> Deref for TypedPlan<G> {
    type Target = CeremonyPlan;

    fn deref(&self) -> &CeremonyPlan {
        &self.plan
    }
}
