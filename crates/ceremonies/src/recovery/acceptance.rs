//! Helpers accept one request in each attempt, and answer it when all that it lists have accepted it.
//!
//! Without that, an owner could ask different helpers for different lists, so that the masks cancel.

use std::collections::BTreeMap;

use bytes::Bytes;
use theta_rounds::{Malformed, PartyId};

use super::answer::read_masks;
use crate::bulletin_board::BulletinBoard;
use crate::certificate::QuorumCertificate;
use crate::evidence::CeremonyEvidence;
use crate::plan::CeremonyPlan;
use crate::statement::{Digest, Kind, Statement, StatementSlot};

/// The acceptances of one request, as its author shows them: all who are listed in it may have signed, and more.
///
/// Each signature is checked here, once. The owner collects the signatures, and not each helper by itself: otherwise a lying helper could show the owner
/// that it accepts this request, and show one other helper that it accepts another, which would keep that helper from answering.
pub(crate) fn read_acceptances(plan: &CeremonyPlan, statement: &Statement) -> Result<QuorumCertificate, Malformed> {
    let acceptances = QuorumCertificate::decode(statement.body())?;
    let of_attempt = acceptances.slot() == StatementSlot::new(Kind::Accepted, statement.slot().number);
    if !of_attempt || acceptances.body().len() != 32 {
        return Err(Malformed("not acceptances of a request of this attempt"));
    }
    if acceptances.statements().all(|accepted| accepted.is_signed(plan)) {
        Ok(acceptances)
    } else {
        Err(Malformed("an acceptance that its author has not signed"))
    }
}

/// What the owner shows when all who are listed in its request have accepted it.
pub(super) fn acceptances_of(request: &Statement, board: &BulletinBoard) -> Option<Vec<u8>> {
    let slot = StatementSlot::new(Kind::Accepted, request.slot().number);
    let digest = request.digest();
    let mut signatures = BTreeMap::new();
    for (helper, _) in read_masks(request.body()).ok()? {
        let accepted = board.get(helper, slot).filter(|accepted| accepted.body()[..] == digest)?;
        signatures.insert(helper, *accepted.signature());
    }
    Some(QuorumCertificate::new(slot, Bytes::copy_from_slice(&digest), signatures).encode())
}

/// The helpers that a request lists and that have not accepted it, by the bulletin board.
pub(super) fn lacking(request: &Statement, board: &BulletinBoard) -> Vec<PartyId> {
    let slot = StatementSlot::new(Kind::Accepted, request.slot().number);
    let digest = request.digest();
    let accepted = |helper| board.get(helper, slot).is_some_and(|accepted| accepted.body()[..] == digest);
    let listed = read_masks(request.body()).unwrap_or_default().into_iter().map(|(helper, _)| helper);
    listed.filter(|helper| !accepted(*helper)).collect()
}

/// Acceptances that were shown and read, by attempt.
#[derive(Default)]
pub(super) struct Acceptances(BTreeMap<u32, QuorumCertificate>);

impl Acceptances {
    pub(super) fn keep(&mut self, acceptances: QuorumCertificate) {
        self.0.insert(acceptances.slot().number, acceptances);
    }

    /// Whether all who are listed in a request have accepted this one and no other.
    pub(super) fn cover(&self, request: &Statement, listed: &[(PartyId, Digest)]) -> bool {
        self.0.get(&request.slot().number).is_some_and(|acceptances| {
            let same = acceptances.body()[..] == request.digest();
            same && listed.iter().all(|(helper, _)| acceptances.signers().any(|signer| signer == *helper))
        })
    }

    /// Whether there is a signature of this party that it does not remember: nobody else can have made it.
    pub(super) fn has_forgotten(&self, party: PartyId, board: &BulletinBoard) -> bool {
        let mut signed = self.0.values().filter(|acceptances| acceptances.signers().any(|signer| signer == party));
        signed
            .any(|acceptances| board.get(party, acceptances.slot()).is_none_or(|own| own.body() != acceptances.body()))
    }

    /// Evidence against helpers that have accepted another request of an attempt, too.
    pub(super) fn equivocations(&self, attempt: u32, board: &BulletinBoard) -> Vec<CeremonyEvidence> {
        let shown = self.0.get(&attempt).into_iter().flat_map(QuorumCertificate::statements);
        let evidence = shown.filter_map(|shown| {
            let first = board.get(shown.author(), shown.slot())?;
            (first.body() != shown.body()).then(|| CeremonyEvidence::Equivocation(first.clone(), shown))
        });
        evidence.collect()
    }
}
