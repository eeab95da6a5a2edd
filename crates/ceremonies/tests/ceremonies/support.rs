//! Groups that are about to run a ceremony.

use std::marker::PhantomData;
use std::sync::Arc;

use rand_core::SeedableRng;
use theta_ceremonies::{
    Activated, Aim, Ceremony, CeremonyEvidence, CeremonyKeys, CeremonyPlan, Conclusion, EncodedShare, Memory, Outcome,
    PlanParts, Source, public_digest,
};
use theta_groups::{Group, Secret};
use theta_names::{Epoch, NodeId};
use theta_rounds::PartyId;
use theta_rounds::simulator::SimRng;
use theta_rounds::simulator::{AnyMachine, Conditions, Report, Simulator};
use theta_schemes::keys::{CurveScheme, KeyShare, PublicKeySet, proof_of_possession};
use theta_sharing::{ShareIndex, coefficients_at_zero};

/// A key and its shares, by holder.
pub(crate) type Held<G> = (Arc<PublicKeySet<G>>, Holdings<G>);
/// The shares by holder.
pub(crate) type Holdings<G> = Vec<(PartyId, Arc<KeyShare<G>>)>;

pub(crate) fn party(number: u16) -> PartyId {
    PartyId::of_node(NodeId::try_from(number).unwrap())
}

pub(crate) fn parties(numbers: impl IntoIterator<Item = u16>) -> Vec<PartyId> {
    numbers.into_iter().map(party).collect()
}

/// The identity of a node, the same in all ceremonies of these tests.
pub(crate) fn keys_of(party: PartyId) -> Arc<CeremonyKeys> {
    let mut master = [0xa5; 32];
    master[..2].copy_from_slice(&party.get().to_le_bytes());
    Arc::new(CeremonyKeys::new(party.node(), Secret::new(master)))
}

/// The secret that a party draws for a ceremony. After it has lost its disk it draws another.
pub(crate) fn secret_of(party: PartyId, life: u8) -> Secret<[u8; 32]> {
    let mut secret = [life; 32];
    secret[..2].copy_from_slice(&party.get().to_le_bytes());
    Secret::new(secret)
}

/// A plan, and the shares that parties of it hold already.
pub(crate) struct Setting<S: CurveScheme> {
    pub(crate) plan: Arc<CeremonyPlan>,
    pub(crate) old: Holdings<S::KeyGroup>,
    pub(crate) scheme: PhantomData<S>,
}

impl<S: CurveScheme> Clone for Setting<S> {
    fn clone(&self) -> Self {
        Self { plan: Arc::clone(&self.plan), old: self.old.clone(), scheme: PhantomData }
    }
}

impl<S: CurveScheme> Setting<S> {
    fn of(aim: Aim, k: u16, members: Vec<PartyId>, nonce: u64, patience: u32) -> Self {
        let holders = match &aim {
            Aim::Generate => Vec::new(),
            Aim::Reshare(source) | Aim::Recover(source, _) => source.holders.clone(),
        };
        let mut all: Vec<_> = members.iter().chain(&holders).copied().collect();
        all.sort_unstable();
        all.dedup();
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&nonce.to_le_bytes());
        let parts = PlanParts {
            suite: S::SUITE.into(),
            group: S::KeyGroup::NAME,
            proof_of_possession: proof_of_possession::<S>(),
            nonce: bytes,
            epoch: Epoch::new(u32::from(!matches!(aim, Aim::Generate))),
            aim,
            k,
            members,
            roster: all.into_iter().map(|party| keys_of(party).member().clone()).collect(),
            patience,
        };
        Self { plan: Arc::new(CeremonyPlan::new(parts).unwrap()), old: Vec::new(), scheme: PhantomData }
    }

    /// A new key for parties 1 to n.
    pub(crate) fn generate(k: u16, n: u16, nonce: u64) -> Self {
        Self::of(Aim::Generate, k, parties(1..=n), nonce, 0)
    }

    /// The same, aborted after so many ticks.
    pub(crate) fn impatient(k: u16, n: u16, nonce: u64, patience: u32) -> Self {
        Self::of(Aim::Generate, k, parties(1..=n), nonce, patience)
    }

    /// New shares of a key for other parties.
    pub(crate) fn reshare(
        public: &PublicKeySet<S::KeyGroup>,
        old: Holdings<S::KeyGroup>,
        holders: Vec<PartyId>,
        (k, members): (u16, Vec<PartyId>),
        nonce: u64,
    ) -> Self {
        let source = Source { public: Arc::new(public.encoded()), holders };
        Self { old, ..Self::of(Aim::Reshare(source), k, members, nonce, 0) }
    }

    /// A party's machine.
    pub(crate) fn machine(&self, party: PartyId, memory: Memory, life: u8) -> Ceremony {
        let share = self.old.iter().find(|(holder, _)| *holder == party).map(|(_, share)| share.encoded());
        let (plan, keys, secret) = (Arc::clone(&self.plan), keys_of(party), secret_of(party, life));
        Ceremony::join(plan, keys, secret, share.as_ref(), memory).unwrap()
    }

    pub(crate) fn boxed(&self, party: PartyId) -> AnyMachine<Outcome, CeremonyEvidence> {
        Box::new(self.machine(party, Memory::Kept, 0))
    }

    /// All honest.
    pub(crate) fn simulate(&self, seed: u64, conditions: Conditions) -> Simulator<Outcome, CeremonyEvidence> {
        let mut simulator = Simulator::new(seed, conditions);
        for party in self.plan.parties() {
            simulator.honest(party, self.boxed(party));
        }
        simulator
    }

    /// Checks that all honest parties have the same key and shares of it, that nobody honest is accused and that all
    /// evidence holds; and gives the key with all honest parties' shares.
    pub(crate) fn check(&self, report: Report<Outcome, CeremonyEvidence>) -> Result<Held<S::KeyGroup>, String> {
        report.check_blame()?;
        report.agreed(|outcome| match &outcome.conclusion {
            Conclusion::Activated(activated) => Some(public_digest(self.plan.suite(), &activated.public)),
            _ => None,
        })?;
        let honest: Vec<_> = report.honest().map(|(party, _)| party).collect();
        let (mut key, mut left_out) = (None, 0);
        let mut shares = Vec::new();
        for (party, report) in report.parties.into_iter().filter(|(_, report)| report.honest) {
            let Some(Ok(Outcome { conclusion, evidence, .. })) = report.result else { continue };
            for evidence in evidence {
                if honest.contains(&evidence.culprit()) || !evidence.verify(&self.plan) {
                    return Err(format!("{party} has evidence that does not hold: {evidence}"));
                }
            }
            let Conclusion::Activated(activated) = conclusion else {
                return Err("aborted".to_owned());
            };
            let (public, share) = typed::<S>(&activated)?;
            if !activated.certificate.is_valid(&self.plan) {
                return Err(format!("{party} has a false certificate"));
            }
            if share.is_some() && self.plan.index_of(party).is_none() {
                return Err(format!("{party} has a share too many"));
            }
            left_out += usize::from(share.is_none() && self.plan.index_of(party).is_some());
            shares.extend(share.map(|share| (party, share)));
            key = Some(public);
        }
        // A quorum has places in the decided dealings.
        if left_out > self.plan.members().len() - self.plan.quorum() {
            return Err(format!("{left_out} were left out"));
        }
        let key = key.ok_or("nobody finished")?;
        let k = usize::from(key.threshold().k());
        // Two different sets of k shares give the key.
        for chosen in [shares.iter().take(k).collect::<Vec<_>>(), shares.iter().rev().take(k).collect()] {
            if chosen.len() == k && public_of(&chosen) != *key.public_key() {
                return Err("the shares are not of the key".to_owned());
            }
        }
        Ok((key, shares))
    }
}

/// A key, and this party's share of it.
pub(crate) type Typed<G> = (Arc<PublicKeySet<G>>, Option<Arc<KeyShare<G>>>);

/// Key and share in the scheme's types, which refuse a false share.
pub(crate) fn typed<S: CurveScheme>(activated: &Activated) -> Result<Typed<S::KeyGroup>, String> {
    let public = PublicKeySet::from_encoded::<S>(&activated.public).map_err(|error| error.to_string())?;
    let share = activated.share.as_ref().map(|share| KeyShare::from_encoded(&public, share));
    let share = share.transpose().map_err(|error| error.to_string())?;
    Ok((Arc::new(public), share.map(Arc::new)))
}

/// The share that was found in a recovery.
pub(crate) fn found(outcome: &Outcome) -> Option<&EncodedShare> {
    if let Conclusion::Recovered(share) = &outcome.conclusion { share.as_ref() } else { None }
}

/// The image under g of what the shares interpolate.
fn public_of<G: Group>(shares: &[&(PartyId, Arc<KeyShare<G>>)]) -> G::Element {
    let indices: Vec<ShareIndex> = shares.iter().map(|(_, share)| share.index()).collect();
    let coefficients = coefficients_at_zero::<G::Scalar>(&indices).unwrap();
    let secret = coefficients.iter().zip(shares).map(|(l, (_, share))| *l * *share.secret().expose());
    G::mul_base(&secret.sum())
}

pub(crate) fn test_rng(seed: u64) -> SimRng {
    SimRng::seed_from_u64(seed)
}

/// Enough ticks for many views.
pub(crate) fn patient() -> Conditions {
    Conditions { ticks: 60, ..Conditions::default() }
}
