//! Deciding one value for all, whatever up to t members say and however late messages are.
//!
//! The rules are Tendermint's (Buchman, Kwon, Milosevic, *The latest gossip on BFT consensus*, 2018, algorithm 1; line
//! numbers below are its): in each view a leader proposes and all prevote. A member that sees a quorum of prevotes for
//! the proposal (a *polka*) locks it and precommits. A quorum of precommits decides; as a certificate, it proves the
//! decision to anyone. Time is logical: ticks, of which later views take more.
//!
//! Departures. Quorums are [`quorum`](crate::quorum), which for n > 3t + 1 is not 2t + 1. What is valid may depend on who
//! looks: a dealing can be false for one recipient alone, and each node has a policy of its own. So a polka counts for validity,
//! too: it says that t + 1 honest members found the value valid; without that, a member that is locked on a value and one that
//! refuses it could wait for each other for ever. A proposal that repeats an older value carries its polka.

use theta_rounds::PartyId;

use crate::tally::Tally;
use crate::vote::{Proposal, vote_of};
use crate::{Ballot, Digest, Electorate, Signature, VoteCertificate, VoteKind};

/// Views ahead of ours whose messages are kept. A member that is further behind gets the rest when it arrives there.
const VIEWS_AHEAD: u32 = 16;
/// Views behind ours whose messages are kept.
const VIEWS_BEHIND: u32 = 4;
/// Ticks that a proposal may take in the first view; a vote takes one less.
const PROPOSAL_TICKS: u32 = 2;
/// Views after which waiting grows no more.
const GROWING_VIEWS: u32 = 20;
/// A proposal goes to all members, so that it may take one tick more for every so many of them.
const MEMBERS_A_TICK: usize = 16;
/// From this view on it may take as many more again: the leader of the first view was late.
const DOUBTED_VIEWS: u32 = 1;

/// What a member thinks of a proposed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be decided.
    Valid,
    /// It may not.
    Invalid,
    /// It takes something that is not here yet.
    Unknown,
}

/// What the value is about: asked by the agreement, answered by whoever runs it.
pub trait Judge {
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

/// One member's side of one decision. A party that is no member, or does not remember its votes, only listens.
pub struct Agreement {
    voter: Option<PartyId>,
    /// The members in the order of their turns.
    turns: Vec<PartyId>,
    first_leader: usize,
    faulty: usize,
    last_view: u32,
    view: u32,
    step: Step,
    waited: u32,
    tally: Tally,
    locked: Option<(u32, Digest)>,
    /// The latest polka whose value is here.
    polka: Option<VoteCertificate>,
    /// What has a later polka, and is known by its digest only.
    unread: Option<Digest>,
    decision: Option<VoteCertificate>,
}

impl Agreement {
    /// Begins. Without a `voter`, or with one that is no member, it looks on.
    #[must_use]
    pub fn new<E: Electorate>(electorate: &E, voter: Option<PartyId>) -> Self {
        Self {
            voter: voter.filter(|party| electorate.members().contains(party)),
            turns: electorate.turns(),
            first_leader: electorate.first_leader(),
            faulty: electorate.faulty(),
            last_view: electorate.last_view(),
            view: 0,
            step: Step::Propose,
            waited: 0,
            tally: Tally::new(electorate.quorum()),
            locked: None,
            polka: None,
            unread: None,
            decision: None,
        }
    }

    /// From now on this member votes, if it is one: it has said nothing that it does not remember.
    pub fn vote_as<E: Electorate>(&mut self, electorate: &E, voter: PartyId) {
        self.voter = Some(voter).filter(|party| electorate.members().contains(party));
    }

    /// From now on this member looks on: it may have voted what it does not remember.
    pub const fn abstain(&mut self) {
        self.voter = None;
    }

    /// The view that this member is in.
    #[must_use]
    pub const fn view(&self) -> u32 {
        self.view
    }

    /// The decision, once there is one: precommits of a quorum.
    #[must_use]
    pub const fn decision(&self) -> Option<&VoteCertificate> {
        self.decision.as_ref()
    }

    /// The value that was decided, if it is here.
    #[must_use]
    pub fn decided_value(&self) -> Option<&[u8]> {
        self.tally.value(self.decision.as_ref()?.digest())
    }

    /// The value that a digest stands for.
    #[must_use]
    pub fn value(&self, digest: &Digest) -> Option<&[u8]> {
        self.tally.value(digest)
    }

    /// The value proposed in the current view.
    #[must_use]
    pub fn proposed_value(&self) -> Option<&[u8]> {
        self.tally.value(&self.tally.proposal(self.view)?.0)
    }

    /// What was decided or got a polka, and is known by its digest only.
    #[must_use]
    pub fn wanted_value(&self) -> Option<Digest> {
        let digest = self.decision.as_ref().map(|decision| *decision.digest()).or(self.unread)?;
        self.tally.value(&digest).is_none().then_some(digest)
    }

    /// Whose turn it is to propose in a view.
    #[must_use]
    pub fn leader(&self, view: u32) -> Option<PartyId> {
        let turn = self.first_leader.checked_add(usize::try_from(view).ok()?)?;
        self.turns.get(turn.checked_rem(self.turns.len())?).copied()
    }

    /// Whether a vote or proposal may be kept. Those of views too far ahead are only looked at.
    #[must_use]
    pub fn admits(&self, author: PartyId, ballot: Ballot) -> bool {
        let near = ballot.view.saturating_add(VIEWS_BEHIND) >= self.view
            && ballot.view <= self.last_view.min(self.view.saturating_add(VIEWS_AHEAD));
        let due = ballot.kind != VoteKind::Proposal || self.leader(ballot.view) == Some(author);
        near && due && self.turns.contains(&author) && self.decision.is_none()
    }

    /// Whether it is news that an author has come to a view that is too far ahead. It is once for as many views as are kept ahead,
    /// so that an author who counts views up one by one is listened to 625 times at most. That is enough: whoever is at view v
    /// is believed to be at v - 15 at least, so that t + 1 of them bring this member to a view from which v is kept.
    #[must_use]
    pub fn is_news(&self, author: PartyId, view: u32) -> bool {
        let step = self.tally.latest(author).saturating_add(VIEWS_AHEAD);
        self.turns.contains(&author) && view <= self.last_view && view >= step
    }

    /// Notes that an author has come to a view.
    pub fn note(&mut self, author: PartyId, view: u32) {
        self.tally.note(author, view);
    }

    /// Notes that an author has voted under an admitted ballot for something that this member cannot count, such as a value that it has not read. The
    /// vote counts for time alone: a quorum that has voted, for whatever, makes the ticks of that step run.
    pub fn note_vote(&mut self, author: PartyId, ballot: Ballot) {
        self.tally.note(author, ballot.view);
        self.tally.spoke(author, ballot);
    }

    /// Takes a proposal or vote that is admitted, signed and [checked](crate::check).
    pub fn take<E: Electorate>(
        &mut self,
        electorate: &E,
        (author, ballot): (PartyId, Ballot),
        body: &[u8],
        signature: &Signature,
    ) {
        self.tally.note(author, ballot.view);
        if ballot.kind != VoteKind::Proposal {
            return self.tally.vote(author, ballot, body, signature);
        }
        let Ok(Proposal { value, polka }) = Proposal::decode(body) else { return };
        let digest = electorate.value_digest(&value);
        self.tally.keep_value(digest, value);
        self.tally.propose(ballot.view, digest, polka.as_ref().map(VoteCertificate::view));
        polka.into_iter().for_each(|polka| self.adopt(polka));
    }

    /// Takes all votes of a certificate that is valid. One of a view that is not kept is ignored.
    pub fn take_votes(&mut self, certificate: &VoteCertificate) {
        let (ballot, digest) = (certificate.ballot(), certificate.digest());
        for (author, signature) in certificate.signatures() {
            if self.admits(*author, ballot) {
                self.tally.note(*author, ballot.view);
                self.tally.vote(*author, ballot, digest, signature);
            }
        }
    }

    /// A quorum's votes for a value under a ballot, if they are here.
    #[must_use]
    pub fn quorum_at(&self, ballot: Ballot) -> Option<VoteCertificate> {
        self.tally.quorum_at(ballot)
    }

    /// Takes the value behind a digest that is wanted.
    pub fn take_value<E: Electorate>(&mut self, electorate: &E, value: &[u8]) -> bool {
        let digest = electorate.value_digest(value);
        let wanted = self.wanted_value() == Some(digest);
        if wanted {
            self.tally.keep_value(digest, value.to_vec());
        }
        wanted
    }

    /// Takes a quorum of prevotes that others have seen, and the value that it is for. The caller has checked both. Without this, members that are
    /// locked on a value could wait for ever for those to whom a liar did not show its prevote.
    pub fn take_polka(&mut self, polka: VoteCertificate, value: &[u8]) {
        self.tally.keep_value(*polka.digest(), value.to_vec());
        self.adopt(polka);
    }

    /// The latest quorum of prevotes that this member knows of.
    #[must_use]
    pub const fn polka(&self) -> Option<&VoteCertificate> {
        self.polka.as_ref()
    }

    /// Whether this member is locked on a value: then something may have been decided that it has not heard of.
    #[must_use]
    pub const fn is_locked(&self) -> bool {
        self.locked.is_some()
    }

    /// After a restart: takes what this member has said itself, in the order in which it said it, so that it says nothing else under
    /// the same ballot and stays locked on what it has precommitted.
    pub fn recall<E: Electorate>(&mut self, electorate: &E, ballot: Ballot, body: &[u8], signature: &Signature) {
        let Some(voter) = self.voter else { return };
        if ballot.view > self.view {
            self.start_view(ballot.view);
        }
        self.take(electorate, (voter, ballot), body, signature);
        match ballot.kind {
            VoteKind::Proposal => {}
            VoteKind::Prevote => self.enter(Step::Prevote),
            VoteKind::Precommit => {
                self.enter(Step::Precommit);
                if let Ok(Some(digest)) = vote_of(body) {
                    self.locked = Some((ballot.view, digest));
                }
            }
        }
    }

    /// Takes a decision that others made; it must be valid.
    pub fn decide(&mut self, certificate: VoteCertificate) {
        if self.decision.is_none() {
            self.decision = Some(certificate);
        }
    }

    /// A tick has passed.
    pub fn tick(&mut self) {
        let runs = match self.step {
            Step::Propose => true,
            Step::Prevote => self.tally.has_quorum(Ballot::new(VoteKind::Prevote, self.view)),
            Step::Precommit => self.tally.has_quorum(Ballot::new(VoteKind::Precommit, self.view)),
        };
        self.waited += u32::from(runs);
    }

    fn is_late(&self) -> bool {
        let spare = if self.step == Step::Propose { PROPOSAL_TICKS } else { PROPOSAL_TICKS - 1 };
        let among = u32::try_from(self.turns.len() / MEMBERS_A_TICK).unwrap_or(u32::MAX);
        let more = among.saturating_mul(self.view.min(DOUBTED_VIEWS).saturating_add(1));
        self.waited >= spare.saturating_add(self.view.min(GROWING_VIEWS)).saturating_add(more)
    }

    fn enter(&mut self, step: Step) {
        (self.step, self.waited) = (step, 0);
    }

    fn start_view(&mut self, view: u32) {
        self.view = view;
        self.enter(Step::Propose);
        let keep =
            self.polka.as_ref().map(|polka| *polka.digest()).into_iter().chain(self.locked.map(|(_, digest)| digest));
        self.tally.forget_views_before(self.oldest_view(), keep);
    }

    /// The oldest view whose messages are kept.
    #[must_use]
    pub const fn oldest_view(&self) -> u32 {
        self.view.saturating_sub(VIEWS_BEHIND)
    }

    /// Remembers the latest polka (lines 42, 43).
    fn adopt(&mut self, polka: VoteCertificate) {
        if self.polka.as_ref().is_none_or(|known| known.view() < polka.view()) {
            self.polka = Some(polka);
        }
    }

    /// What to say next, if anything. To be asked until there is nothing.
    pub fn next(&mut self, judge: &mut impl Judge) -> Option<(Ballot, Vec<u8>)> {
        if let Some(polka) = self.tally.polka() {
            match self.tally.value(polka.digest()) {
                Some(_) => self.adopt(polka),
                // Nobody can propose what it has not read.
                None => self.unread = Some(*polka.digest()),
            }
        }
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
                Step::Prevote => (VoteKind::Precommit, self.precommit()?),
                Step::Precommit => {
                    // Lines 47, 65 to 67.
                    if !self.is_late() || view >= self.last_view {
                        return None;
                    }
                    self.start_view(view + 1);
                    continue;
                }
            };
            match kind {
                VoteKind::Prevote => self.enter(Step::Prevote),
                VoteKind::Precommit => self.enter(Step::Precommit),
                _ => {}
            }
            return Some((Ballot::new(kind, view), body));
        }
    }

    /// Lines 14 to 19, 22 to 33, 57 to 60.
    fn propose_or_prevote(&mut self, voter: PartyId, judge: &mut impl Judge) -> Option<(VoteKind, Vec<u8>)> {
        let Some((digest, polka_view)) = self.tally.proposal(self.view) else {
            if self.leader(self.view) == Some(voter)
                && let Some(proposal) = self.proposal(judge)
            {
                return Some((VoteKind::Proposal, proposal.encode()));
            }
            return self.is_late().then(|| (VoteKind::Prevote, Vec::new()));
        };
        let free = self.locked.is_none_or(|(view, locked)| locked == digest || polka_view.is_some_and(|v| view <= v));
        let known_valid = polka_view.is_some() || self.locked.is_some_and(|(_, locked)| locked == digest);
        let verdict = match (free, known_valid) {
            (false, _) => Verdict::Invalid,
            (true, true) => Verdict::Valid,
            (true, false) => self.tally.value(&digest).map_or(Verdict::Unknown, |value| judge.judge(value)),
        };
        match verdict {
            Verdict::Valid => Some((VoteKind::Prevote, digest.to_vec())),
            Verdict::Invalid => Some((VoteKind::Prevote, Vec::new())),
            Verdict::Unknown => self.is_late().then(|| (VoteKind::Prevote, Vec::new())),
        }
    }

    fn proposal(&self, judge: &mut impl Judge) -> Option<Proposal> {
        let Some(polka) = &self.polka else { return judge.propose().map(|value| Proposal { value, polka: None }) };
        let value = self.tally.value(polka.digest())?.to_vec();
        // A polka of this very view can only be for this leader's own proposal.
        Some(Proposal { value, polka: Some(polka.clone()).filter(|polka| polka.view() < self.view) })
    }

    /// Lines 36 to 41, 44 to 46, 61 to 64.
    fn precommit(&mut self) -> Option<Vec<u8>> {
        let slot = Ballot::new(VoteKind::Prevote, self.view);
        match self.tally.majority(slot) {
            // The proposal must be here (line 36): a member locked on what it has not read could neither propose it nor vote for
            // anything else, and one liar that shows a value to some and its prevote to others would stop everybody.
            Some(Some(digest)) if self.tally.value(&digest).is_some() => {
                self.locked = Some((self.view, digest));
                Some(digest.to_vec())
            }
            Some(None) => Some(Vec::new()),
            Some(Some(_)) | None => self.is_late().then(Vec::new),
        }
    }
}
