//! The phases of a recovery, and the steps between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use theta_groups::{Group, Scalar, Secret};
use theta_rounds::{Abort, Bug, Malformed, PartyId};
use theta_sharing::{Commitments, EncodedShare, ShareIndex, interpolate_at};

use super::acceptance::{Acceptances, acceptances_of, lacking, read_acceptances};
use super::agreeing::agreeing;
use super::answer::{Answer, Masks, answer_body, encode_masks, expected, read_masks};
use crate::bulletin_board::{BulletinBoard, Item};
use crate::certificate::QuorumCertificate;
use crate::check;
use crate::dealing::{Dealing, SecretShare, Values, encoded, image};
use crate::dealings::Dealings;
use crate::encryption::{ENCRYPTION_KEY, EncryptionKey};
use crate::evidence::CeremonyEvidence;
use crate::machine::{Admission, Logic, Memory, Outbox};
use crate::outcome::{Conclusion, Outcome};
use crate::participant::Participant;
use crate::record::map_of;
use crate::statement::{Digest, Kind, Statement, StatementSlot};
use crate::typed::TypedPlan;

/// How often the owner asks anew. A liar that spoils an attempt is named, or left out of the attempts that follow.
const MOST_ATTEMPTS: u32 = 64;
/// The ticks of an attempt. Later attempts take longer, and so does each step of them: however slow the network is, in
/// the end there is time for all keys and masks to reach all helpers, and for all lists and acceptances to reach the
/// owner.
const TICKS: u32 = 7;
/// Ticks for which an owner that lost its journal listens to what others remember of it.
const LISTEN_TICKS: u32 = 2;
const DONE: StatementSlot = StatementSlot::new(Kind::Done, 0);

/// What the owner awaits. Helpers do their part in every phase.
enum Phase<S: Scalar> {
    /// What others remember of it, for so many ticks: this party has made statements that it does not remember.
    AwaitsReminders(u32),
    /// k true answers to a request.
    AwaitsAnswers,
    /// Nothing: this is its share.
    Found(Secret<S>),
}

/// One party's state.
pub(crate) struct RecoveryLogic<G: Group> {
    plan: Arc<TypedPlan<G>>,
    own: Arc<Participant>,
    owner: PartyId,
    lost: ShareIndex,
    share: Option<SecretShare<G>>,
    dealings: Dealings<G>,
    attempt: u32,
    ticks: u32,
    phase: Phase<G::Scalar>,
    /// Helpers that were asked and did not accept, or did not answer, in time.
    spoilers: BTreeSet<PartyId>,
    acceptances: Acceptances,
    seen: BTreeSet<(StatementSlot, PartyId)>,
    answers: BTreeMap<ShareIndex, Secret<G::Scalar>>,
}

impl<G: Group> RecoveryLogic<G> {
    pub(crate) fn new(
        plan: Arc<TypedPlan<G>>,
        own: Arc<Participant>,
        lost: ShareIndex,
        share: Option<SecretShare<G>>,
        memory: Memory,
    ) -> Option<Self> {
        let owner = *plan.members().get(lost.position())?;
        let share = share.filter(|_| own.party() != owner && memory == Memory::Kept);
        Some(Self {
            dealings: Dealings::new(Arc::clone(&plan), Arc::clone(&own)),
            plan,
            own,
            owner,
            lost,
            share,
            attempt: 0,
            ticks: 0,
            phase: if memory == Memory::Lost { Phase::AwaitsReminders(0) } else { Phase::AwaitsAnswers },
            spoilers: BTreeSet::new(),
            acceptances: Acceptances::default(),
            seen: BTreeSet::new(),
            answers: BTreeMap::new(),
        })
    }

    fn is_owner(&self) -> bool {
        self.own.party() == self.owner
    }

    fn helpers(&self) -> impl Iterator<Item = PartyId> {
        self.plan.members().iter().copied().filter(|party| *party != self.owner)
    }

    fn k(&self) -> usize {
        usize::from(self.plan.threshold().k())
    }

    const fn slot(&self, kind: Kind) -> StatementSlot {
        StatementSlot::new(kind, self.attempt)
    }

    /// A helper's part: its encryption key for masks, a mask when the owner calls, a list of right masks, the
    /// acceptance of a request, and an answer.
    fn help(&mut self, board: &BulletinBoard, outbox: &mut Outbox) {
        let Some(share) = self.share.clone() else { return };
        outbox.say(ENCRYPTION_KEY, || Some(self.own.encryption_key().bytes().to_vec()));
        // The owner makes a list, too. It is empty, and calls the helpers to the attempt.
        let calls = board.of_kind(Kind::Checked).filter(|checked| checked.author() == self.owner);
        let Some(attempt) = calls.map(|call| call.slot().number).max() else { return };
        if attempt > self.attempt {
            (self.attempt, self.ticks) = (attempt, 0);
        }
        let dealing = self.slot(Kind::Dealing);
        let all = self.helpers().count();
        if self.dealings.arrived() == all || self.ticks > self.attempt / 4 {
            outbox.say(dealing, || Dealing::deal(&self.plan, &self.own, dealing, None, self.dealings.announced()));
        }
        if board.of_slot(dealing).count() == all || self.ticks > 1 + self.attempt / 2 {
            let mut rng = self.own.rng("weights", &self.attempt.to_be_bytes());
            self.dealings.check(&mut rng);
            self.dealings.complain(outbox);
            let right = || encode_masks(&self.dealings.good(dealing..=dealing).collect::<Masks>());
            outbox.say(self.slot(Kind::Checked), || Some(right()));
        }
        let Some(request) = board.get(self.owner, self.slot(Kind::Request)) else { return };
        outbox.say(self.slot(Kind::Accepted), || {
            let in_order = self.masked(request, &share).is_some();
            in_order.then(|| request.digest().to_vec())
        });
        outbox.faults.extend(self.acceptances.equivocations(self.attempt, board));
        let key = board.get(self.owner, self.slot(Kind::EncryptionKey)).map(EncryptionKey::of);
        if let Some(Ok(key)) = key
            && self.is_accepted_by_all(request, board)
        {
            outbox.say(self.slot(Kind::Answer), || {
                let masked = self.masked(request, &share)?;
                Some(answer_body(&self.plan, &self.own, (request, &key), &masked))
            });
        }
    }

    /// Whether this helper and all others that a request lists have accepted this request of its attempt. Honest
    /// helpers then have accepted no other, so no honest helper's mask hides answers to two requests.
    fn is_accepted_by_all(&self, request: &Statement, board: &BulletinBoard) -> bool {
        let own = board.get(self.own.party(), self.slot(Kind::Accepted));
        let accepted = own.is_some_and(|own| own.body()[..] == request.digest());
        accepted && read_masks(request.body()).is_ok_and(|listed| self.acceptances.cover(request, &listed))
    }

    /// x_j and the masks' values, if a request is in order. This helper's own mask must be listed: together with other
    /// honest ones it hides the share from the owner.
    fn masked(&self, request: &Statement, share: &Secret<G::Scalar>) -> Option<Secret<G::Scalar>> {
        let masks = read_masks(request.body()).ok()?;
        let own = masks.iter().any(|(helper, digest)| {
            let mask = self.dealings.get(digest);
            *helper == self.own.party() && mask.is_some_and(|mask| mask.statement.slot() == self.slot(Kind::Dealing))
        });
        if !own || masks.len() < self.k() {
            return None;
        }
        let one = <G::Scalar as theta_groups::Scalar>::ONE;
        let mut sum = Values { value: Secret::new(*share.expose()), blinding: None };
        for (helper, digest) in &masks {
            let mask = self.dealings.get(digest)?;
            let due = mask.statement.author() == *helper && mask.statement.slot() == self.slot(Kind::Dealing);
            sum.add(one, mask.mine().filter(|_| due)?);
        }
        Some(sum.value)
    }

    /// The owner's part: it calls, asks a set of helpers that agree with each other, and interpolates.
    fn ask(&mut self, board: &BulletinBoard, outbox: &mut Outbox) {
        if !self.is_owner() {
            return;
        }
        match self.phase {
            Phase::Found(_) => return,
            Phase::AwaitsReminders(ticks) if ticks < LISTEN_TICKS => return,
            Phase::AwaitsReminders(_) => self.begin_anew(board),
            Phase::AwaitsAnswers => {}
        }
        if self.ticks >= TICKS + self.attempt && self.attempt < MOST_ATTEMPTS {
            self.note_spoilers(board);
            (self.attempt, self.ticks) = (self.attempt + 1, 0);
            self.answers.clear();
        }
        outbox.say(self.slot(Kind::EncryptionKey), || Some(self.own.encryption_key().bytes().to_vec()));
        outbox.say(self.slot(Kind::Checked), || Some(Vec::new()));
        let slot = self.slot(Kind::Request);
        if let Some(request) = board.get(self.owner, slot).cloned() {
            outbox.say(self.slot(Kind::Acceptances), || acceptances_of(&request, board));
            return self.gather(&request, board, outbox);
        }
        let agreeing = self.chosen(board);
        let due = |helper: &PartyId| !self.dealings.is_convicted(*helper) && !self.spoilers.contains(helper);
        let all = self.helpers().filter(due).count();
        if agreeing.len() >= self.k() && (agreeing.len() == all || self.ticks > 2 + self.attempt * 3 / 4) {
            outbox.say(slot, || Some(encode_masks(&agreeing)));
        }
    }

    /// Starts an attempt after those that others remember. Answers to its earlier requests are of no use to it: they
    /// are sealed to a key that is lost.
    fn begin_anew(&mut self, board: &BulletinBoard) {
        let said = [Kind::EncryptionKey, Kind::Checked, Kind::Request].into_iter().flat_map(|kind| board.of_kind(kind));
        let said = said.filter(|statement| statement.author() == self.owner).map(|said| said.slot().number);
        self.attempt = said.max().map_or(0, |last| last.saturating_add(1).min(MOST_ATTEMPTS));
        (self.phase, self.ticks) = (Phase::AwaitsAnswers, 0);
        self.answers.clear();
    }

    /// Records the helpers that were asked in this attempt and have not accepted; if all have, those that have not
    /// answered.
    fn note_spoilers(&mut self, board: &BulletinBoard) {
        let Some(request) = board.get(self.owner, self.slot(Kind::Request)) else { return };
        let asked = read_masks(request.body()).unwrap_or_default();
        let answered = |helper| self.plan.index_of(helper).is_some_and(|index| self.answers.contains_key(&index));
        let mut missing = lacking(request, board);
        if missing.is_empty() {
            missing = asked.iter().map(|(helper, _)| *helper).filter(|helper| !answered(*helper)).collect();
        }
        // At least one of them is honest: if none has sent anything, the network was too slow.
        if missing.len() < asked.len() {
            self.spoilers.extend(missing);
        }
    }

    /// The helpers to ask: those that agree with each other and have spoiled no attempt, if there are enough. Otherwise
    /// all get another chance, since the honest ones may have been slow.
    fn chosen(&mut self, board: &BulletinBoard) -> Masks {
        let faithful = self.agreeing(board, &self.spoilers);
        if faithful.len() >= self.k() || self.spoilers.is_empty() || self.ticks <= 2 + self.attempt * 3 / 4 {
            return faithful;
        }
        self.spoilers.clear();
        self.agreeing(board, &self.spoilers)
    }

    /// As [`agreeing`], among helpers that are not these.
    fn agreeing(&self, board: &BulletinBoard, without: &BTreeSet<PartyId>) -> Masks {
        let slot = self.slot(Kind::Dealing);
        let masks = map_of(self.dealings.good(slot..=slot).filter(|(helper, _)| !without.contains(helper)).collect());
        let checked: Vec<_> = board.of_slot(self.slot(Kind::Checked)).collect();
        agreeing(masks, &checked, (self.attempt, self.plan.threshold().n().into()))
    }

    /// Opens the answers to a request.
    fn gather(&mut self, request: &Statement, board: &BulletinBoard, outbox: &mut Outbox) {
        let Ok(list) = read_masks(request.body()) else { return };
        let entries: Option<Vec<_>> = list.iter().map(|(_, digest)| self.dealings.get(digest)).collect();
        let Some(entries) = entries else { return };
        let masks = Commitments::sum(entries.iter().map(|entry| &entry.dealing.commitments));
        let mut liars = Vec::new();
        for statement in board.of_slot(self.slot(Kind::Answer)) {
            let Some(index) = self.plan.index_of(statement.author()) else { continue };
            let Ok(answer) = Answer::read(&self.plan, statement) else { continue };
            let key = (statement.slot(), statement.author());
            if answer.request != request.digest() || !answer.is_to(&self.own) || !self.seen.insert(key) {
                continue;
            }
            let image = expected(&self.plan, &masks, index);
            let opened = answer.open(&self.plan, statement, &self.own);
            let right = opened.filter(|value| Some(G::mul_base(value.expose())) == image);
            if let Some(value) = right {
                self.answers.insert(index, value);
            } else {
                liars.push(statement.author());
                outbox.faults.push(CeremonyEvidence::FalseAnswer {
                    request: request.clone(),
                    masks: entries.iter().map(|entry| entry.statement.clone()).collect(),
                    answer: statement.clone(),
                    disclosed: answer.disclose(&self.plan, statement, &self.own),
                });
            }
        }
        liars.into_iter().for_each(|liar| self.dealings.convict(liar));
        let chosen: Vec<_> = self.answers.iter().take(self.k()).map(|(index, value)| (*index, value)).collect();
        if chosen.len() == self.k()
            && let Ok(found) = interpolate_at(&chosen, self.lost)
        {
            self.phase = Phase::Found(found);
            outbox.say(DONE, || Some(Vec::new()));
        }
    }
}

impl<G: Group> Logic for RecoveryLogic<G> {
    fn admission(&self, author: PartyId, slot: StatementSlot) -> Admission {
        let owner = author == self.owner;
        let of_attempt = slot.number <= MOST_ATTEMPTS;
        let keep = match slot.kind {
            Kind::EncryptionKey if owner => of_attempt,
            Kind::EncryptionKey => slot == ENCRYPTION_KEY && self.plan.index_of(author).is_some(),
            Kind::Dealing | Kind::Accepted | Kind::Answer => !owner && of_attempt,
            Kind::Checked => of_attempt,
            Kind::Request | Kind::Acceptances => owner && of_attempt,
            Kind::Complaint => !owner && slot.party().is_some_and(|about| self.plan.index_of(about).is_some()),
            Kind::Done => owner && slot == DONE,
            _ => false,
        };
        if keep { Admission::Keep } else { Admission::Drop }
    }

    fn is_news(&self, _author: PartyId, _slot: StatementSlot) -> bool {
        false
    }

    fn note(&mut self, _author: PartyId, _slot: StatementSlot) {}

    fn take(&mut self, statement: &Statement) -> Result<(), Malformed> {
        match statement.slot().kind {
            Kind::EncryptionKey if statement.author() != self.owner => self.dealings.announce(statement),
            Kind::Dealing => {
                if self.dealings.take(statement)? {
                    self.lose_memory();
                }
                Ok(())
            }
            Kind::Acceptances => {
                self.acceptances.keep(read_acceptances(&self.plan, statement)?);
                Ok(())
            }
            _ => check(&self.plan, statement),
        }
    }

    fn is_wanted(&self, _statement: &Statement) -> bool {
        false
    }

    fn take_other(&mut self, statement: &Statement) -> bool {
        self.dealings.convict(statement.author());
        false
    }

    fn take_certificate(&mut self, _certificate: &QuorumCertificate) -> Result<bool, Malformed> {
        Err(Malformed("a recovery has no certificates"))
    }

    fn take_value(&mut self, _value: &[u8]) -> bool {
        false
    }

    fn lose_memory(&mut self) {
        // Answers to two requests would reveal too much of the share, and so would accepting two requests.
        self.share = None;
        if !matches!(self.phase, Phase::Found(_)) {
            self.phase = Phase::AwaitsReminders(0);
        }
    }

    fn tick(&mut self) {
        self.ticks = self.ticks.saturating_add(1);
        if let Phase::AwaitsReminders(ticks) = &mut self.phase {
            *ticks = ticks.saturating_add(1);
        }
    }

    fn advance(&mut self, board: &mut BulletinBoard, outbox: &mut Outbox) {
        if self.acceptances.has_forgotten(self.own.party(), board) {
            self.lose_memory();
        }
        self.help(board, outbox);
        if self.is_owner() {
            let mut rng = self.own.rng("weights", &self.ticks.to_be_bytes());
            self.dealings.check(&mut rng);
        }
        self.dealings.judge(board, outbox);
        self.ask(board, outbox);
    }

    fn wants(&self) -> Vec<Digest> {
        Vec::new()
    }

    fn named_by(&self, _party: PartyId) -> Vec<Digest> {
        Vec::new()
    }

    fn decided(&self) -> Vec<Digest> {
        Vec::new()
    }

    fn supply(&self, digest: &Digest) -> Option<Item> {
        self.dealings.supply(digest)
    }

    fn certificates(&self) -> [Option<&QuorumCertificate>; 2] {
        [None, None]
    }

    fn view(&self) -> u32 {
        0
    }

    fn outcome(&mut self, board: &BulletinBoard, evidence: &[CeremonyEvidence]) -> Option<Result<Outcome, Abort>> {
        board.get(self.owner, DONE)?;
        let share = match (self.is_owner(), &self.phase) {
            (false, _) => None,
            (true, Phase::AwaitsReminders(_) | Phase::AwaitsAnswers) => return None,
            (true, Phase::Found(found)) => {
                if self.plan.source_key(self.lost) != Some(&image(found)) {
                    return Some(Err(Abort::Bug(Bug("true answers gave a false share"))));
                }
                Some(EncodedShare { index: self.lost, secret: encoded(found) })
            }
        };
        Some(Ok(Outcome {
            conclusion: Conclusion::Recovered(share),
            evidence: evidence.to_vec(),
            silent: self.silent(board),
        }))
    }

    fn contributions(&self) -> (usize, usize) {
        (self.answers.len(), self.k())
    }

    fn awaits(&self) -> &'static str {
        "what enough helpers compute for the node that lost its share"
    }

    fn silent(&self, board: &BulletinBoard) -> Vec<PartyId> {
        let silent = |helper: &PartyId| {
            let spoilt = self.spoilers.contains(helper) && !self.dealings.is_convicted(*helper);
            spoilt || board.get(*helper, self.slot(Kind::Checked)).is_none()
        };
        self.helpers().filter(silent).collect()
    }
}
