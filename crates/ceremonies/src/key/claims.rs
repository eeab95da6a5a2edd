//! The members' claims about a new key: their verification keys and their shares of the proof of possession. Each is
//! judged once.

use theta_groups::Group;
use theta_sharing::EncodedKey;

use super::derive::{check_key, key_body};
use super::phase::Decided;
use super::steps::{KEY, KeyLogic, PROOF_OF_POSSESSION};
use crate::bulletin_board::BulletinBoard;
use crate::certificate::QuorumCertificate;
use crate::dealing::encoded;
use crate::evidence::CeremonyEvidence;
use crate::machine::Outbox;
use crate::statement::Statement;

impl<G: Group> KeyLogic<G> {
    /// States this party's verification key, and judges those of the others.
    pub(super) fn judge_keys(&self, decided: &mut Decided<G>, board: &BulletinBoard, outbox: &mut Outbox) {
        if let Some(share) = &decided.share {
            outbox.say(KEY, || key_body(&self.plan, &self.own, &decided.material, share));
        }
        for statement in board.of_slot(KEY) {
            if !decided.seen.insert((KEY, statement.author())) {
                continue;
            }
            match check_key(&self.plan, self.dealings.blinding(), &decided.material, statement) {
                Some((index, key)) => drop(decided.keys.insert(index, key)),
                None => outbox.faults.extend(self.false_key(decided, statement)),
            }
        }
    }

    /// States this party's share of the proof of possession, and judges those of the others.
    pub(super) fn judge_proofs(
        &self,
        decided: &mut Decided<G>,
        key: &EncodedKey,
        board: &BulletinBoard,
        outbox: &mut Outbox,
    ) {
        let Some(scheme) = self.plan.proof_of_possession() else { return };
        if let Some(share) = &decided.share {
            outbox.say(PROOF_OF_POSSESSION, || scheme.prove(&encoded(&share.value), &key.public_key));
        }
        for statement in board.of_slot(PROOF_OF_POSSESSION) {
            let Some(index) = self.plan.index_of(statement.author()) else { continue };
            let Some(verification_key) = key.verification_key(index) else { continue };
            if decided.seen.insert((PROOF_OF_POSSESSION, statement.author())) {
                if scheme.vartime_verify_share(&key.public_key, verification_key, statement.body()) {
                    decided.proofs.insert(index, statement.body().to_vec());
                } else {
                    outbox.faults.extend(self.false_proof_of_possession(decided, board, statement));
                }
            }
        }
    }

    /// The decision and all dealings that count, for evidence.
    fn proven_material(&self, decided: &Decided<G>) -> Option<(QuorumCertificate, Vec<Statement>)> {
        let dealings = decided.list.iter().filter_map(|(_, digest)| Some(self.dealings.get(digest)?.statement.clone()));
        Some((self.decision.clone()?, dealings.collect()))
    }

    fn false_key(&self, decided: &Decided<G>, key: &Statement) -> Option<CeremonyEvidence> {
        let (decision, dealings) = self.proven_material(decided)?;
        Some(CeremonyEvidence::FalseKey { decision, dealings, key: key.clone() })
    }

    fn false_proof_of_possession(
        &self,
        decided: &Decided<G>,
        board: &BulletinBoard,
        share: &Statement,
    ) -> Option<CeremonyEvidence> {
        let (decision, dealings) = self.proven_material(decided)?;
        let true_key =
            |key: &&Statement| self.plan.index_of(key.author()).is_some_and(|index| decided.keys.contains_key(&index));
        let k = usize::from(self.plan.threshold().k());
        let keys = board.of_slot(KEY).filter(true_key).take(k).cloned().collect();
        Some(CeremonyEvidence::FalseProofOfPossession { decision, dealings, keys, share: share.clone() })
    }
}
