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

    fn first_leader(&self) -> usize {
        let [a, b, ..] = *self.id().as_bytes();
        usize::from(u16::from_be_bytes([a, b]))
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
