//! A key's ceremony as the machine drives it.

use theta_groups::Group;
use theta_rounds::{Abort, Malformed, PartyId};

use super::judge::{DEALINGS, Selection};
use super::phase::Phase;
use super::steps::{ACTIVATION, KeyLogic};
use crate::bulletin_board::{BulletinBoard, Item};
use crate::certificate::QuorumCertificate;
use crate::electorate::ballot_of;
use crate::encryption::ENCRYPTION_KEY;
use crate::evidence::CeremonyEvidence;
use crate::machine::{Admission, Logic, Memory, Outbox};
use crate::outcome::Outcome;
use crate::plan::{Aim, CeremonyPlan};
use crate::statement::{Digest, Kind, Statement, StatementSlot};
use crate::{LONGEST_CERTIFIED, check};

impl<G: Group> Logic for KeyLogic<G> {
    fn admission(&self, author: PartyId, slot: StatementSlot) -> Admission {
        let member = self.plan.index_of(author).is_some();
        let about_dealer = slot.party().is_some_and(|dealer| self.plan.dealer_index(dealer).is_some());
        let keep = match slot.kind {
            Kind::EncryptionKey => slot == ENCRYPTION_KEY && member,
            Kind::Dealing => DEALINGS.contains(&slot) && self.plan.dealer_index(author).is_some(),
            Kind::Complaint | Kind::LateComplaint | Kind::Release => member && about_dealer,
            Kind::Key | Kind::ProofOfPossession => {
                member && slot.number == 0 && matches!(self.plan.aim(), Aim::Generate)
            }
            Kind::Activation => member && slot.number == 0,
            Kind::Proposal | Kind::Prevote | Kind::Precommit => {
                if !ballot_of(slot).is_some_and(|ballot| self.agreement.admits(author, ballot)) {
                    let ahead = member && slot.number > self.agreement.view() && self.decision.is_none();
                    return if ahead { Admission::Note } else { Admission::Drop };
                }
                true
            }
            _ => false,
        };
        if keep { Admission::Keep } else { Admission::Drop }
    }

    fn is_news(&self, author: PartyId, slot: StatementSlot) -> bool {
        self.agreement.is_news(author, slot.number)
    }

    fn note(&mut self, author: PartyId, slot: StatementSlot) {
        self.agreement.note(author, slot.number);
    }

    fn take(&mut self, statement: &Statement) -> Result<(), Malformed> {
        match statement.slot().kind {
            Kind::EncryptionKey => {
                self.last_key = self.ticks;
                self.dealings.announce(statement)
            }
            Kind::Dealing => {
                if self.dealings.take(statement)? {
                    self.lose_memory();
                }
                Ok(())
            }
            Kind::Proposal | Kind::Prevote | Kind::Precommit => {
                check(&self.plan, statement)?;
                if let Some(ballot) = ballot_of(statement.slot()) {
                    let said = (statement.author(), ballot);
                    self.agreement.take::<CeremonyPlan>(&self.plan, said, statement.body(), statement.signature());
                }
                Ok(())
            }
            _ => check(&self.plan, statement),
        }
    }

    fn is_wanted(&self, statement: &Statement) -> bool {
        statement.slot().kind == Kind::Dealing && self.wants().contains(&statement.digest())
    }

    fn take_other(&mut self, statement: &Statement) -> bool {
        self.dealings.convict(statement.author());
        let wanted = self.is_wanted(statement);
        if wanted {
            // A malformed dealing counts as absent.
            let _ = self.dealings.take(statement);
        }
        wanted
    }

    fn take_certificate(&mut self, certificate: &QuorumCertificate) -> Result<bool, Malformed> {
        let [decided, activated] = self.certificates().map(|certificate| certificate.is_some());
        let known = match certificate.kind() {
            Kind::Precommit => decided,
            Kind::Activation => activated,
            _ => return Err(Malformed("there is no such certificate")),
        };
        if known {
            return Ok(false);
        }
        let decision = certificate.kind() == Kind::Precommit;
        let short = certificate.body().len() <= LONGEST_CERTIFIED;
        let votes = certificate.votes().filter(|_| decision);
        if !short || votes.is_some() != decision || !certificate.is_valid(&self.plan) {
            return Err(Malformed("a certificate that is false"));
        }
        match votes {
            Some(votes) => {
                self.agreement.decide(votes);
                self.decision.get_or_insert_with(|| certificate.clone());
            }
            None => self.activation = Some(certificate.clone()),
        }
        Ok(true)
    }

    fn take_value(&mut self, value: &[u8]) -> bool {
        self.agreement.take_value::<CeremonyPlan>(&self.plan, value)
    }

    fn lose_memory(&mut self) {
        self.memory = Memory::Lost;
        self.agreement.abstain();
    }

    fn tick(&mut self) {
        self.ticks = self.ticks.saturating_add(1);
        if self.has_something_to_agree_on() {
            self.agreement.tick();
        }
    }

    fn advance(&mut self, board: &mut BulletinBoard, outbox: &mut Outbox) {
        self.announce(outbox);
        self.deal(outbox);
        let mut rng = self.own.rng("weights", &self.ticks.to_be_bytes());
        if self.is_time_to_check() {
            self.checked_at = Some(self.ticks);
            self.dealings.check(&mut rng);
        }
        if self.memory == Memory::Kept {
            self.dealings.complain(outbox);
        }
        self.dealings.judge(board, outbox);
        self.agree(outbox);
        board.forget_views_before(self.agreement.oldest_view());
        self.proceed(board, outbox);
    }

    fn wants(&self) -> Vec<Digest> {
        let mut wants: Vec<Digest> = self.agreement.wanted_value().into_iter().collect();
        let values = [self.agreement.proposed_value(), self.agreement.decided_value()];
        for value in values.into_iter().flatten() {
            if let Ok(Selection::Dealings(list)) = Selection::decode(&self.plan, value) {
                wants.extend(list.iter().map(|(_, digest)| *digest).filter(|d| self.dealings.get(d).is_none()));
            }
        }
        wants
    }

    fn named_by(&self, party: PartyId) -> Vec<Digest> {
        // Nobody's dealing is chosen any more after the decision.
        if self.decision.is_some() { Vec::new() } else { self.dealings.unseen(party).copied().collect() }
    }

    fn decided(&self) -> Vec<Digest> {
        let mut decided: Vec<Digest> =
            self.agreement.decision().map(|decision| *decision.digest()).into_iter().collect();
        let value = self.agreement.decided_value().map(|value| Selection::decode(&self.plan, value));
        if let Some(Ok(Selection::Dealings(list))) = value {
            decided.extend(list.into_iter().map(|(_, digest)| digest));
        }
        decided
    }

    fn supply(&self, digest: &Digest) -> Option<Item> {
        let value = || self.agreement.value(digest).map(|value| Item::Value(value.to_vec()));
        self.dealings.supply(digest).or_else(value)
    }

    fn certificates(&self) -> [Option<&QuorumCertificate>; 2] {
        [self.decision.as_ref(), self.activation.as_ref()]
    }

    fn view(&self) -> u32 {
        self.agreement.view()
    }

    fn outcome(&mut self, board: &BulletinBoard, evidence: &[CeremonyEvidence]) -> Option<Result<Outcome, Abort>> {
        let outcome = |conclusion| Outcome { conclusion, evidence: evidence.to_vec(), silent: self.silent(board) };
        self.conclude().map(|conclusion| conclusion.map(outcome))
    }

    fn contributions(&self) -> (usize, usize) {
        match self.phase.decided() {
            None => (self.dealings.count(), self.plan.dealers().len()),
            Some(decided) => (decided.keys.len(), self.plan.quorum()),
        }
    }

    fn awaits(&self) -> &'static str {
        match self.phase {
            Phase::AwaitsDecision => "the dealers' parts, and agreement on which of them count",
            Phase::AwaitsDealings(_) => "dealers' parts that the others have agreed on and this node has not seen",
            Phase::AwaitsKeys(_) => "the public keys of enough holders' shares",
            Phase::AwaitsProof(..) => "enough holders' shares of the proof that the key is the group's",
            Phase::AwaitsCertificate(..) => "signatures of its result by a quorum",
            Phase::Aborted | Phase::Failed(_) => "nothing any more",
        }
    }

    fn silent(&self, board: &BulletinBoard) -> Vec<PartyId> {
        let said = |party: &PartyId| {
            let announced = self.plan.index_of(*party).is_none() || board.get(*party, ENCRYPTION_KEY).is_some();
            let dealer = self.plan.dealer_index(*party).is_some();
            let dealt = !dealer || board.of_kind(Kind::Dealing).any(|dealing| dealing.author() == *party);
            let signed = self.plan.index_of(*party).is_none() || board.get(*party, ACTIVATION).is_some();
            announced && dealt && (signed || !matches!(self.phase, Phase::AwaitsCertificate(..)))
        };
        self.plan.parties().filter(|party| !said(party)).collect()
    }
}
