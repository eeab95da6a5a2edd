//! Whether evidence proves that its culprit lied.

use std::sync::Arc;

use theta_groups::Group;
use theta_sharing::pedersen::Blinding;

use super::certificate::QuorumCertificate;
use super::dealing::{Dealing, Judgement};
use super::electorate::value_digest;
use super::evidence::CeremonyEvidence;
use super::group::group_named;
use super::key::{Keys, Material, Selection, check_key};
use super::plan::CeremonyPlan;
use super::record::map_of;
use super::recovery::is_false_answer;
use super::statement::{Kind, Statement};
use super::typed::TypedPlan;
use super::wellformed::check;

impl CeremonyEvidence {
    /// Whether it proves that the culprit lied in the ceremony of this plan. It depends on the plan alone; no honest
    /// party is ever proven guilty.
    #[must_use]
    pub fn verify(&self, plan: &Arc<CeremonyPlan>) -> bool {
        let group = group_named(plan.group().name());
        self.offending_statement().is_signed(plan) && group.is_some_and(|group| group.proves(self, plan))
    }

    /// The same, for the group of the plan; the culprit's signature is checked.
    pub(super) fn is_proof<G: Group>(&self, plan: &TypedPlan<G>) -> bool {
        match self {
            Self::Equivocation(first, second) => {
                let same = first.author() == second.author() && first.slot() == second.slot();
                // Two encryption keys harm only their author, which may have lost its disk between them.
                let forbidden = first.slot().kind != Kind::EncryptionKey;
                same && forbidden && first.body() != second.body() && second.is_signed(plan)
            }
            Self::Malformed(statement) => check(plan, statement).is_err(),
            Self::FalseDealing { dealing, complaint } => judge(plan, dealing, complaint) == Some(Judgement::DealerLies),
            Self::FalseComplaint { dealing, complaint } => {
                judge(plan, dealing, complaint) == Some(Judgement::ComplainerLies)
            }
            Self::FalseRelease { dealing, release } => read_dealing(plan, dealing).is_some_and(|read| {
                release.slot().kind == Kind::Release
                    && matches!(read.released(plan, Blinding::new(), dealing, release), Some(Err(_)))
            }),
            Self::FalseKey { decision, dealings, key } => material(plan, decision, dealings).is_some_and(|material| {
                let is_key = key.slot().kind == Kind::Key && plan.index_of(key.author()).is_some();
                is_key && check_key(plan, &Blinding::new(), &material, key).is_none()
            }),
            Self::FalseProofOfPossession { decision, dealings, keys, share } => {
                false_proof_of_possession(plan, (decision, dealings), keys, share) == Some(true)
            }
            Self::FalseAnswer { request, masks, answer, disclosed } => {
                is_false_answer(plan, request, masks, answer, disclosed) == Some(true)
            }
            Self::FalseActivation { certificate, activation } => {
                let same = certificate.kind() == Kind::Activation && activation.slot().kind == Kind::Activation;
                same && certificate.is_valid(plan) && certificate.body() != activation.body()
            }
        }
    }
}

/// A dealing that its author signed.
fn read_dealing<G: Group>(plan: &TypedPlan<G>, statement: &Statement) -> Option<Dealing<G>> {
    let signed = statement.slot().kind == Kind::Dealing && statement.is_signed(plan);
    if signed { Dealing::read(plan, statement).ok() } else { None }
}

fn judge<G: Group>(plan: &TypedPlan<G>, dealing: &Statement, complaint: &Statement) -> Option<Judgement> {
    let complains = matches!(complaint.slot().kind, Kind::Complaint | Kind::LateComplaint);
    if !complains || !complaint.is_signed(plan) {
        return None;
    }
    read_dealing(plan, dealing)?.judge(plan, Blinding::new(), dealing, complaint)
}

/// What a decision comes to, if these are the dealings that it names.
fn material<G: Group>(
    plan: &TypedPlan<G>,
    decision: &QuorumCertificate,
    dealings: &[Statement],
) -> Option<Material<G>> {
    let list: Vec<_> = dealings.iter().map(|dealing| (dealing.author(), dealing.digest())).collect();
    let value = Selection::Dealings(list.clone()).encode();
    let decided = decision.kind() == Kind::Precommit && decision.body().as_ref() == value_digest(&value).as_slice();
    if !decided || !decision.is_valid(plan) {
        return None;
    }
    let read: Vec<_> = dealings.iter().map(|dealing| read_dealing(plan, dealing)).collect::<Option<_>>()?;
    Material::new(plan, &list, &read.iter().collect::<Vec<_>>())
}

fn false_proof_of_possession<G: Group>(
    plan: &TypedPlan<G>,
    (decision, dealings): (&QuorumCertificate, &[Statement]),
    keys: &[Statement],
    share: &Statement,
) -> Option<bool> {
    let material = material(plan, decision, dealings)?;
    let blinding = Blinding::new();
    let known = map_of(keys.iter().map(|key| check_key(plan, &blinding, &material, key)).collect::<Option<Vec<_>>>()?);
    let keys = Keys::interpolate(plan, &known)?;
    let key = keys.verification_keys.get(plan.index_of(share.author())?.position())?;
    let scheme = plan.proof_of_possession()?;
    let right = scheme.vartime_verify_share(keys.public_key.bytes(), key.bytes(), share.body());
    Some(share.slot().kind == Kind::ProofOfPossession && !right)
}
