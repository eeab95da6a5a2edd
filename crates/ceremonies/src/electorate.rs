//! A ceremony's members, as those who agree on its qualified dealings.

use std::collections::BTreeMap;

use theta_agreement::{Ballot, Electorate, Signature, VoteCertificate, VoteKind};
use theta_groups::Transcript;
use theta_rounds::PartyId;

use crate::certificate::QuorumCertificate;
use crate::plan::CeremonyPlan;
use crate::schnorr;
use crate::statement::{Digest, Kind, StatementSlot, claim};

/// What stands for a value in votes.
pub(crate) fn value_digest(value: &[u8]) -> Digest {
    Transcript::new("theta/ceremony/value/v1").with("value", value).finish32()
}

impl Electorate for CeremonyPlan {
    fn members(&self) -> &[PartyId] {
        Self::members(self)
    }

    fn faulty(&self) -> usize {
        usize::from(self.threshold().t())
    }

    /// In each ceremony another order: members that fall silent together, such as those in one place, have no turns in a row, and whoever chooses
    /// its number among the members does not choose whom it follows.
    fn turns(&self) -> Vec<PartyId> {
        let mut turns = Self::members(self).to_vec();
        turns.sort_by_cached_key(|member| {
            Transcript::new("theta/ceremony/turn/v1")
                .with("ceremony", self.id().as_bytes())
                .with("member", &member.get().to_be_bytes())
                .finish32()
        });
        turns
    }

    fn first_leader(&self) -> usize {
        0
    }

    fn value_digest(&self, value: &[u8]) -> Digest {
        value_digest(value)
    }

    fn is_signed(&self, author: PartyId, ballot: Ballot, body: &[u8], signature: &Signature) -> bool {
        claim(self, author, slot_of(ballot), body, signature).is_some_and(|claim| schnorr::vartime_verify_all(&[claim]))
    }

    fn are_signed(&self, ballot: Ballot, body: &[u8], signatures: &BTreeMap<PartyId, Signature>) -> bool {
        let claim = |(author, signature): (&PartyId, _)| claim(self, *author, slot_of(ballot), body, signature);
        let claims: Option<Vec<_>> = signatures.iter().map(claim).collect();
        claims.is_some_and(|claims| schnorr::vartime_verify_all(&claims))
    }
}

const fn kind_of(kind: VoteKind) -> Kind {
    match kind {
        VoteKind::Proposal => Kind::Proposal,
        VoteKind::Prevote => Kind::Prevote,
        VoteKind::Precommit => Kind::Precommit,
    }
}

/// Where a proposal or vote stands among a party's statements.
pub(crate) const fn slot_of(ballot: Ballot) -> StatementSlot {
    StatementSlot::new(kind_of(ballot.kind), ballot.view)
}

/// The proposal or vote that belongs in a slot, if that is what the slot is for.
pub(crate) const fn ballot_of(slot: StatementSlot) -> Option<Ballot> {
    let kind = match slot.kind {
        Kind::Proposal => VoteKind::Proposal,
        Kind::Prevote => VoteKind::Prevote,
        Kind::Precommit => VoteKind::Precommit,
        _ => return None,
    };
    Some(Ballot::new(kind, slot.number))
}

impl QuorumCertificate {
    /// A certificate of votes among a ceremony's other certificates.
    pub(crate) fn of_votes(votes: &VoteCertificate) -> Self {
        let body = bytes::Bytes::copy_from_slice(votes.digest());
        Self::new(slot_of(votes.ballot()), body, votes.signatures().clone())
    }

    /// The votes for a value that it is of, if it is.
    pub(crate) fn votes(&self) -> Option<VoteCertificate> {
        let digest = Digest::try_from(self.body().as_ref()).ok()?;
        Some(VoteCertificate::new(ballot_of(self.slot())?, digest, self.signatures().clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use theta_agreement::MemberKeys;
    use theta_groups::{Group, Ristretto255, Secret};
    use theta_names::{Epoch, NodeId};
    use theta_schemes::coins::cks05::Cks05;
    use theta_schemes::keys::KeyScheme;

    use super::*;
    use crate::plan::{Aim, PlanParts};

    /// A view without a proposal takes 35 ticks among so many, and a node gives up after 160 without progress.
    #[test]
    fn members_that_are_neighbours_have_no_turns_in_a_row() {
        let keys = |number: u16| MemberKeys::new(NodeId::try_from(number).unwrap(), Secret::new([9; 32]));
        let roster: Vec<_> = (1..=127).map(|number| keys(number).member().clone()).collect();
        let members: Vec<PartyId> = roster.iter().map(|member| member.party()).collect();
        let mut firsts = BTreeSet::new();
        for nonce in 0..100 {
            let parts = PlanParts {
                suite: Cks05::<Ristretto255>::SUITE.into(),
                group: Ristretto255::NAME,
                proof_of_possession: None,
                nonce: [nonce; 32],
                epoch: Epoch::FIRST,
                aim: Aim::Generate,
                k: 43,
                members: members.clone(),
                roster: roster.clone(),
                patience: 0,
            };
            let turns = CeremonyPlan::new(parts).unwrap().turns();
            assert_eq!(turns.iter().collect::<BTreeSet<_>>(), members.iter().collect());
            let away = |member: &PartyId| member.get() <= 42;
            let longest = turns.split(|member| !away(member)).map(<[PartyId]>::len).max().unwrap();
            assert!(longest <= 10, "{longest} in a row");
            firsts.extend(turns.first().copied());
        }
        assert!(firsts.len() > 50, "{} lead first", firsts.len());
    }
}
