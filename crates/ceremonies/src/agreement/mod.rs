//! Deciding one value for all, whatever up to t members say and however late messages are.
//!
//! The rules are Tendermint's (Buchman, Kwon, Milosevic, *The latest gossip on BFT consensus*, 2018, algorithm 1; line
//! numbers below are its): in each view a leader proposes and all prevote. A member that sees a quorum of prevotes for
//! the proposal (a *polka*) locks it and precommits. A quorum of precommits decides; as a certificate, it proves the
//! decision to anyone. Time is logical: ticks, of which later views take more.
//!
//! Departures. Quorums are [`CeremonyPlan::quorum`], which for n > 3t + 1 is not 2t + 1. Members may differ about
//! validity, since a dealing can be false for one recipient alone. So a polka counts for validity, too: it shows that
//! t + 1 honest members found the value valid, which is enough to help the others. Otherwise a member that is locked on
//! a value and one that refuses it could wait for each other for ever. A proposal that repeats an older value carries
//! its polka.
//!
//! [`CeremonyPlan::quorum`]: super::CeremonyPlan::quorum

mod tally;

use theta_groups::Transcript;
use theta_rounds::{Malformed, PartyId};

use super::certificate::QuorumCertificate;
use super::codec::{Reader, Writer};
use super::plan::CeremonyPlan;
use super::statement::{Digest, Kind, Statement, StatementSlot};
use tally::{Tally, vote_of};

/// Views ahead of ours whose messages are kept. A member that is further behind gets the rest when it arrives there.
const VIEWS_AHEAD: u32 = 16;
/// Views behind ours whose messages are kept.
const VIEWS_BEHIND: u32 = 4;
/// The last view: after a day of ticks without a decision there is something else wrong than the leader.
const LAST_VIEW: u32 = 10_000;
/// Ticks that a proposal may take in the first view; a vote takes one less.
const PROPOSAL_TICKS: u32 = 2;
/// Views after which waiting grows no more.
const GROWING_VIEWS: u32 = 20;

/// What a member thinks of a proposed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Valid,
    Invalid,
    /// It takes something that is not here yet.
    Unknown,
}

/// What the value is about: asked by the agreement, answered by the ceremony.
pub(super) trait Judge {
    /// What this member would propose now, if anything.
    fn propose(&mut self) -> Option<Vec<u8>>;
    /// Whether the value may be decided.
    fn judge(&mut self, value: &[u8]) -> Verdict;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Propose,
    Prevote,
    Precommit,
}

/// A proposal: a value, and the polka that it had in an earlier view.
struct Proposal {
    value: Vec<u8>,
    polka: Option<QuorumCertificate>,
}

impl Proposal {
    fn encode(&self) -> Vec<u8> {
        let writer = Writer::default().bytes(&self.value);
        self.polka.iter().fold(writer, |writer, polka| writer.bytes(&polka.encode())).finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let value = reader.bytes()?.to_vec();
        let polka = if reader.is_empty() { None } else { Some(QuorumCertificate::decode(reader.bytes()?)?) };
        Ok(reader.end(Self { value, polka })?)
    }
}

/// One member's side. A party that is no member, or does not remember its votes, only listens.
pub(super) struct Agreement {
    voter: Option<PartyId>,
    members: Vec<PartyId>,
    first_leader: usize,
    faulty: usize,
    view: u32,
    step: Step,
    waited: u32,
    tally: Tally,
    locked: Option<(u32, Digest)>,
    polka: Option<QuorumCertificate>,
    decision: Option<QuorumCertificate>,
}

/// What stands for a value in votes.
pub(super) fn value_digest(value: &[u8]) -> Digest {
    Transcript::new("theta/ceremony/value/v1").with("value", value).finish32()
}

impl Agreement {
    pub(super) fn new(plan: &CeremonyPlan, voter: Option<PartyId>) -> Self {
        let [a, b, ..] = *plan.id().as_bytes();
        Self {
            voter: voter.filter(|party| plan.index_of(*party).is_some()),
            members: plan.members().to_vec(),
            first_leader: usize::from(u16::from_be_bytes([a, b])),
            faulty: usize::from(plan.threshold().t()),
            view: 0,
            step: Step::Propose,
            waited: 0,
            tally: Tally::new(plan.quorum()),
            locked: None,
            polka: None,
            decision: None,
        }
    }

    /// From now on this member looks on: it may have voted what it does not remember.
    pub(super) const fn abstain(&mut self) {
        self.voter = None;
    }

    pub(super) const fn view(&self) -> u32 {
        self.view
    }

    pub(super) const fn decision(&self) -> Option<&QuorumCertificate> {
        self.decision.as_ref()
    }

    /// The value that was decided, if it is here.
    pub(super) fn decided_value(&self) -> Option<&[u8]> {
        self.tally.value(&digest_of(self.decision.as_ref()?)?)
    }

    /// The value that a digest stands for.
    pub(super) fn value(&self, digest: &Digest) -> Option<&[u8]> {
        self.tally.value(digest)
    }

    /// The value proposed in the current view.
    pub(super) fn proposed_value(&self) -> Option<&[u8]> {
        self.tally.value(&self.tally.proposal(self.view)?.0)
    }

    /// What was decided or got a polka, and is known by its digest only.
    pub(super) fn wanted_value(&self) -> Option<Digest> {
        let digest = digest_of(self.decision.as_ref().or(self.polka.as_ref())?)?;
        self.tally.value(&digest).is_none().then_some(digest)
    }

    fn leader(&self, view: u32) -> Option<PartyId> {
        let turn = self.first_leader.checked_add(usize::try_from(view).ok()?)?;
        self.members.get(turn.checked_rem(self.members.len())?).copied()
    }

    /// Whether a vote or proposal may be kept. Those of views too far ahead are only looked at.
    pub(super) fn admits(&self, author: PartyId, slot: StatementSlot) -> bool {
        let near = slot.number.saturating_add(VIEWS_BEHIND) >= self.view
            && slot.number <= LAST_VIEW.min(self.view.saturating_add(VIEWS_AHEAD));
        let due = slot.kind != Kind::Proposal || self.leader(slot.number) == Some(author);
        near && due && self.members.contains(&author) && self.decision.is_none()
    }

    /// Whether it is news that an author has come to a view that is too far ahead. It is once for as many views as are kept ahead,
    /// so that an author who counts views up one by one is listened to 625 times at most. That is enough: whoever is at view v
    /// is believed to be at v - 15 at least, so that t + 1 of them bring this member to a view from which v is kept.
    pub(super) fn is_news(&self, author: PartyId, view: u32) -> bool {
        let step = self.tally.latest(author).saturating_add(VIEWS_AHEAD);
        self.members.contains(&author) && view <= LAST_VIEW && view >= step
    }

    /// Notes that an author has come to a view.
    pub(super) fn note(&mut self, author: PartyId, view: u32) {
        self.tally.note(author, view);
    }

    /// Whether the body of a vote or proposal is well-formed.
    pub(super) fn check(plan: &CeremonyPlan, slot: StatementSlot, body: &[u8]) -> Result<(), Malformed> {
        if slot.kind != Kind::Proposal {
            return vote_of(body).map(drop);
        }
        let proposal = Proposal::decode(body)?;
        let Some(polka) = proposal.polka else { return Ok(()) };
        let earlier = polka.kind() == Kind::Prevote && polka.view() < slot.number;
        let same = digest_of(&polka) == Some(value_digest(&proposal.value));
        if earlier && same && polka.is_valid(plan) { Ok(()) } else { Err(Malformed("a proposal with a false polka")) }
    }

    /// Takes a statement that is admitted and checked.
    pub(super) fn take(&mut self, statement: &Statement) {
        let (author, slot) = (statement.author(), statement.slot());
        self.tally.note(author, slot.number);
        if slot.kind != Kind::Proposal {
            return self.tally.vote(statement);
        }
        let Ok(Proposal { value, polka }) = Proposal::decode(statement.body()) else { return };
        let digest = value_digest(&value);
        self.tally.keep_value(value);
        self.tally.propose(slot.number, digest, polka.as_ref().map(QuorumCertificate::view));
        polka.into_iter().for_each(|polka| self.adopt(polka));
    }

    /// Takes the value behind a digest that is wanted.
    pub(super) fn take_value(&mut self, value: &[u8]) -> bool {
        let wanted = self.wanted_value() == Some(value_digest(value));
        if wanted {
            self.tally.keep_value(value.to_vec());
        }
        wanted
    }

    /// Takes a decision that others made; it must be valid.
    pub(super) fn decide(&mut self, certificate: QuorumCertificate) {
        if self.decision.is_none() {
            self.decision = Some(certificate);
        }
    }

    /// A tick has passed.
    pub(super) fn tick(&mut self) {
        let runs = match self.step {
            Step::Propose => true,
            Step::Prevote => self.tally.has_quorum(StatementSlot::new(Kind::Prevote, self.view)),
            Step::Precommit => self.tally.has_quorum(StatementSlot::new(Kind::Precommit, self.view)),
        };
        self.waited += u32::from(runs);
    }

    fn is_late(&self) -> bool {
        let spare = if self.step == Step::Propose { PROPOSAL_TICKS } else { PROPOSAL_TICKS - 1 };
        self.waited >= spare + self.view.min(GROWING_VIEWS)
    }

    fn enter(&mut self, step: Step) {
        (self.step, self.waited) = (step, 0);
    }

    fn start_view(&mut self, view: u32) {
        self.view = view;
        self.enter(Step::Propose);
        let keep = self.polka.as_ref().and_then(digest_of).into_iter().chain(self.locked.map(|(_, digest)| digest));
        self.tally.forget_views_before(self.oldest_view(), keep);
    }

    /// The oldest view whose messages are kept.
    pub(super) const fn oldest_view(&self) -> u32 {
        self.view.saturating_sub(VIEWS_BEHIND)
    }

    /// Remembers the latest polka (lines 42, 43).
    fn adopt(&mut self, polka: QuorumCertificate) {
        if self.polka.as_ref().is_none_or(|known| known.view() < polka.view()) {
            self.polka = Some(polka);
        }
    }

    /// What to say next, if anything. To be asked until there is nothing.
    pub(super) fn next(&mut self, judge: &mut impl Judge) -> Option<(StatementSlot, Vec<u8>)> {
        self.tally.polka().into_iter().for_each(|polka| self.adopt(polka));
        if self.decision.is_none() {
            // Lines 49 to 51.
            self.decision = self.tally.decision();
        }
        if self.decision.is_some() {
            return None;
        }
        // Lines 55, 56: t + 1 members are further, so one honest member is.
        if let Some(view) = self.tally.reached_by_more_than(self.faulty).filter(|view| *view > self.view) {
            self.start_view(view);
        }
        let voter = self.voter?;
        loop {
            let view = self.view;
            let (kind, body) = match self.step {
                Step::Propose => self.propose_or_prevote(voter, judge)?,
                Step::Prevote => (Kind::Precommit, self.precommit()?),
                Step::Precommit => {
                    // Lines 47, 65 to 67.
                    if !self.is_late() || view >= LAST_VIEW {
                        return None;
                    }
                    self.start_view(view + 1);
                    continue;
                }
            };
            match kind {
                Kind::Prevote => self.enter(Step::Prevote),
                Kind::Precommit => self.enter(Step::Precommit),
                _ => {}
            }
            return Some((StatementSlot::new(kind, view), body));
        }
    }

    /// Lines 14 to 19, 22 to 33, 57 to 60.
    fn propose_or_prevote(&mut self, voter: PartyId, judge: &mut impl Judge) -> Option<(Kind, Vec<u8>)> {
        let Some((digest, polka_view)) = self.tally.proposal(self.view) else {
            if self.leader(self.view) == Some(voter)
                && let Some(proposal) = self.proposal(judge)
            {
                return Some((Kind::Proposal, proposal.encode()));
            }
            return self.is_late().then(|| (Kind::Prevote, Vec::new()));
        };
        let free = self.locked.is_none_or(|(view, locked)| locked == digest || polka_view.is_some_and(|v| view <= v));
        let known_valid = polka_view.is_some() || self.locked.is_some_and(|(_, locked)| locked == digest);
        let verdict = match (free, known_valid) {
            (false, _) => Verdict::Invalid,
            (true, true) => Verdict::Valid,
            (true, false) => self.tally.value(&digest).map_or(Verdict::Unknown, |value| judge.judge(value)),
        };
        match verdict {
            Verdict::Valid => Some((Kind::Prevote, digest.to_vec())),
            Verdict::Invalid => Some((Kind::Prevote, Vec::new())),
            Verdict::Unknown => self.is_late().then(|| (Kind::Prevote, Vec::new())),
        }
    }

    fn proposal(&self, judge: &mut impl Judge) -> Option<Proposal> {
        let Some(polka) = &self.polka else { return judge.propose().map(|value| Proposal { value, polka: None }) };
        let value = self.tally.value(&digest_of(polka)?)?.to_vec();
        // A polka of this very view can only be for this leader's own proposal.
        Some(Proposal { value, polka: Some(polka.clone()).filter(|polka| polka.view() < self.view) })
    }

    /// Lines 36 to 41, 44 to 46, 61 to 64.
    fn precommit(&mut self) -> Option<Vec<u8>> {
        let slot = StatementSlot::new(Kind::Prevote, self.view);
        match self.tally.majority(slot) {
            Some(Some(digest)) => {
                self.locked = Some((self.view, digest));
                Some(digest.to_vec())
            }
            Some(None) => Some(Vec::new()),
            None => self.is_late().then(Vec::new),
        }
    }
}

/// What a certificate of votes is for.
pub(super) fn digest_of(certificate: &QuorumCertificate) -> Option<Digest> {
    vote_of(certificate.body()).ok().flatten()
}
