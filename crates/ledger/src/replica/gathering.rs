//! Among many members, a few gather the votes of each view and show them to all.
//!
//! Each view has its collectors: its leader, and members that the entry before draws. Votes for an entry go to them, and each of
//! them shows the first quorum to everybody: n messages a collector, where all to all are n^2. Nobody depends on them. A vote that
//! has come to nothing after some ticks goes to everybody, and is repeated as it is among few; votes for nothing, which nobody can
//! show, go to everybody at once. In the same way what waits for its decision is told to collectors first.
//!
//! Up to [`FEW`] members talk to each other, all to all.

use std::collections::{BTreeMap, BTreeSet};

use theta_agreement::{Ballot, Digest, Electorate, VoteCertificate, VoteKind};
use theta_names::NodeId;
use theta_rounds::PartyId;

use super::message::{Message, Vote};
use super::pending::MOST_TOLD;
use super::telling::candidate;
use super::{Effect, REPEAT_TICKS, Recipient, Replica, ReplicaOffence, STATUS_TICKS};

/// Up to so many members nothing is gathered.
const FEW: usize = 12;
/// Some things need not be done by every member. So many members do them at a time, other ones each time.
const IN_TURN: usize = 6;
/// How many members gather the votes of a view.
const COLLECTORS: usize = 6;
/// Among many, a member tells a part of the others how far it is, and each of them once in so many turns.
const ROUND: usize = 8;
/// Ticks for which collectors are waited for, and among so many members one more.
const PATIENCE: u64 = 2;
const PATIENT_AMONG: usize = 32;
/// How many of those that are ahead are asked for entries in a tick.
const ASKED_PER_TICK: usize = 2;

/// What this member leaves to collectors at this height, and gathers as one.
#[derive(Default)]
pub(super) struct Gathering {
    /// When each of this member's votes was sent, and whether to everybody.
    sent: BTreeMap<Ballot, (u64, bool)>,
    /// The quorums that were shown.
    shown: BTreeSet<Ballot>,
    /// The view whose collectors were told of what waits.
    view: u32,
    /// The latest view in which this member told everybody of what was not proposed.
    spread: Option<u32>,
    /// When the last entry was decided.
    since: u64,
    /// The heights of those that say that they are further, and who was asked last.
    ahead: BTreeMap<NodeId, u64>,
    asked: Option<NodeId>,
}

impl Gathering {
    /// A new height begins.
    pub(super) fn begin(&mut self, now: u64) {
        self.sent.clear();
        self.shown.clear();
        (self.view, self.spread, self.since) = (0, None, now);
    }

    /// Whether a vote went to everybody so many ticks ago that it is repeated.
    pub(super) fn is_old(&self, ballot: Ballot, now: u64, patience: u64) -> bool {
        self.sent.get(&ballot).is_none_or(|(since, everybody)| *everybody && now >= since.saturating_add(patience))
    }
}

impl Replica {
    /// Whether there are so many members that votes are gathered.
    pub(super) fn are_many(&self) -> bool {
        self.sitting.members().len() > FEW
    }

    /// Ticks for which collectors are waited for.
    pub(super) fn patience(&self) -> u64 {
        let among = u64::try_from(self.sitting.members().len() / PATIENT_AMONG).unwrap_or(0);
        if self.are_many() { PATIENCE.saturating_add(among) } else { 0 }
    }

    /// Whether it is this member's turn to do what it takes only some to do: among many, a few at a time, others each time.
    pub(super) fn has_turn(&self) -> bool {
        let members = self.sitting.members();
        let own = self.keys.as_ref().map(|keys| keys.party());
        let Some(place) = members.iter().position(|member| Some(*member) == own) else { return true };
        let turn = usize::try_from(self.ticks / REPEAT_TICKS).unwrap_or(0);
        let at = place.saturating_add(turn.saturating_mul(IN_TURN)).checked_rem(members.len()).unwrap_or(0);
        !self.are_many() || at < IN_TURN
    }

    /// Those that gather the votes of a view.
    fn collectors(&self, view: u32) -> BTreeSet<PartyId> {
        let drawn = self.sitting.drawn(view, COLLECTORS);
        self.agreement.leader(view).into_iter().chain(drawn).collect()
    }

    fn gathers(&self, view: u32) -> bool {
        let own = self.keys.as_ref().map(|keys| keys.party());
        self.are_many() && own.is_some_and(|own| self.collectors(view).contains(&own))
    }

    fn send_to_collectors(&self, view: u32, message: &[u8], out: &mut Vec<Effect>) {
        let own = self.keys.as_ref().map(|keys| keys.party());
        let others = self.collectors(view).into_iter().filter(|party| Some(*party) != own);
        out.extend(others.map(|party| Effect::Send(Recipient::One(party.node()), message.to_vec())));
    }

    /// Tells those who propose next of what waits for its decision, or everybody.
    pub(super) fn tell_proposers(&self, message: Vec<u8>, out: &mut Vec<Effect>) {
        if self.are_many() {
            self.send_to_collectors(self.agreement.view(), &message, out);
        } else {
            out.push(Effect::Send(Recipient::All, message));
        }
    }

    /// As a collector, tells the leader of something that proves itself and that this member has: the leader may come to it much later, and time
    /// runs at all that are there.
    pub(super) fn tell_leader(&self, digest: &Digest, out: &mut Vec<Effect>) {
        let (own, view) = (self.keys.as_ref().map(|keys| keys.party()), self.agreement.view());
        let proves = self.pending.terms(digest).is_some_and(|terms| terms.demand.needed == 0);
        let Some(leader) = self.agreement.leader(view).filter(|leader| Some(*leader) != own) else { return };
        if let Some(wanted) = self.pending.get(digest).filter(|_| proves && self.gathers(view)) {
            let message = candidate(&wanted, own.map(PartyId::node));
            out.push(Effect::Send(Recipient::One(leader.node()), message));
        }
    }

    /// Repeats what waits for its decision: to everybody, or among many to some and to those who propose next, who are told at once when a
    /// view begins.
    pub(super) fn tell_candidates(&mut self, due: &[NodeId], out: &mut Vec<Effect>) {
        let own = self.keys.as_ref().map(|keys| keys.party().node());
        let view = self.agreement.view();
        let begins = self.are_many() && core::mem::replace(&mut self.gathering.view, view) != view;
        let repeats = self.ticks.is_multiple_of(STATUS_TICKS);
        if !begins && !repeats {
            return;
        }
        if self.agreement.proposed_value().is_none() {
            self.pending.own().iter().take(MOST_TOLD).for_each(|digest| self.tell_leader(digest, out));
        }
        let since = self.ticks.saturating_sub(if begins { 0 } else { self.patience() });
        for wanted in self.pending.to_tell(own, self.ticks / STATUS_TICKS, since) {
            let message = candidate(&wanted, own);
            self.tell_proposers(message.clone(), out);
            if self.are_many() && repeats {
                out.extend(due.iter().map(|node| Effect::Send(Recipient::One(*node), message.clone())));
            }
        }
    }

    /// As a collector, tells everybody once in a view of what its leader has not proposed in time, with the consents that it takes: time runs
    /// for all from then on.
    pub(super) fn tell_unproposed(&mut self, out: &mut Vec<Effect>) {
        let (view, time, patience) = (self.agreement.view(), self.time(), self.patience());
        let told = self.gathering.spread == Some(view) || self.agreement.proposed_value().is_some();
        if told || !self.are_many() || !self.is_ready(self.ticks.saturating_sub(patience)) {
            return;
        }
        // One after the other, since one is enough.
        let own = self.keys.as_ref().map(|keys| keys.party());
        let Some(place) = self.collectors(view).iter().position(|party| Some(*party) == own) else { return };
        let turn = u64::try_from(place).unwrap_or(u64::MAX).saturating_add(1);
        if !self.is_ready(self.ticks.saturating_sub(patience.saturating_mul(turn))) {
            return;
        }
        self.gathering.spread = Some(view);
        let bounds = self.bounds();
        let wanted = self.pending.oldest(time, |action, reason, time| bounds.allow(action, reason, time));
        if let Some(wanted) = wanted {
            let (action, reason, consents) = (wanted.action.clone(), wanted.reason.to_vec(), wanted.consents);
            let message = Message::Candidate { action, reason, consents };
            out.push(Effect::Send(Recipient::All, message.encode()));
        }
    }

    /// Sends what this member has just said: to everybody, or to those that gather it.
    pub(super) fn tell_vote(&mut self, vote: Vote, out: &mut Vec<Effect>) {
        let ballot = vote.ballot;
        let gathered = self.are_many() && ballot.kind != VoteKind::Proposal && !vote.body.is_empty();
        self.gathering.sent.insert(ballot, (self.ticks, !gathered));
        let message = Message::Votes { height: self.sitting.height(), votes: vec![vote], polka: None }.encode();
        if gathered {
            self.send_to_collectors(ballot.view, &message, out);
        } else {
            out.push(Effect::Send(Recipient::All, message));
        }
    }

    /// Tells everybody what collectors have made nothing of.
    pub(super) fn tell_overdue(&mut self, out: &mut Vec<Effect>) {
        let (now, patience) = (self.ticks, self.patience());
        let mut votes = Vec::new();
        for (ballot, (since, everybody)) in &mut self.gathering.sent {
            if !*everybody && now >= since.saturating_add(patience) {
                (*since, *everybody) = (now, true);
                votes.extend(self.said.get(ballot).map(|said| said.vote.clone()));
            }
        }
        let oldest = self.agreement.view().saturating_sub(1);
        votes.retain(|vote| vote.ballot.view >= oldest);
        if !votes.is_empty() {
            let message = Message::Votes { height: self.sitting.height(), votes, polka: None };
            out.push(Effect::Send(Recipient::All, message.encode()));
        }
    }

    /// As a collector, shows everybody the quorums of this view, and the one that decides.
    pub(super) fn show_quorums(&mut self, out: &mut Vec<Effect>) {
        if !self.are_many() {
            return;
        }
        let prevotes = Ballot::new(VoteKind::Prevote, self.agreement.view());
        let decision = self.agreement.decision().map(VoteCertificate::ballot);
        for ballot in core::iter::once(prevotes).chain(decision) {
            if self.gathering.shown.contains(&ballot) {
                continue;
            }
            let Some(certificate) = self.agreement.quorum_at(ballot) else { continue };
            self.gathering.shown.insert(ballot);
            if self.gathers(ballot.view) {
                let message = Message::Quorum { height: self.sitting.height(), certificate };
                out.push(Effect::Send(Recipient::All, message.encode()));
            }
        }
    }

    /// Takes a quorum that a collector shows. It is looked at only if it could change something.
    pub(super) fn take_quorum(
        &mut self,
        from: NodeId,
        certificate: &VoteCertificate,
        out: &mut Vec<Effect>,
    ) -> Result<(), ReplicaOffence> {
        let ballot = certificate.ballot();
        let late = ballot.kind == VoteKind::Prevote
            && self.agreement.polka().is_some_and(|known| known.view() >= certificate.view());
        let kept = certificate.signatures().keys().all(|author| self.agreement.admits(*author, ballot));
        if late || !kept || self.agreement.quorum_at(ballot).is_some() {
            return Ok(());
        }
        if ballot.kind == VoteKind::Proposal || !certificate.is_valid(&self.sitting) {
            return Err(ReplicaOffence::FalsePrevotes);
        }
        self.agreement.take_votes(certificate);
        for (author, signature) in certificate.signatures() {
            let digest = certificate.digest();
            let Some(machine) = self.sitting.signer_of_checked(*author, ballot, digest, signature) else { continue };
            let known = self.heard.entry((*author, ballot, machine)).or_insert_with(|| digest.to_vec());
            let double = known.as_slice() != certificate.digest() && !self.sitting.is_double(*author);
            if double && self.ignored.insert(*author) {
                out.push(Effect::Blame(author.node(), ReplicaOffence::Equivocation(self.sitting.height())));
            }
        }
        // What was decided is asked for where it was not read.
        let read = self.agreement.value(certificate.digest()).is_some();
        if ballot.kind == VoteKind::Precommit && !read && self.peers.may_ask(from) {
            let want = Message::Want { after: self.state.height() };
            out.push(Effect::Send(Recipient::One(from), want.encode()));
        }
        Ok(())
    }

    /// Notes that a peer is further; among few it is asked at once.
    pub(super) fn follow(&mut self, peer: NodeId, height: u64, out: &mut Vec<Effect>) {
        if self.are_many() {
            self.gathering.ahead.insert(peer, height);
        } else if self.peers.may_ask(peer) {
            out.push(Effect::Send(Recipient::One(peer), Message::Want { after: self.state.height() }.encode()));
        }
    }

    /// Asks some of those that were further a tick ago, if this member has not come there meanwhile.
    pub(super) fn ask_ahead(&mut self, out: &mut Vec<Effect>) {
        let after = self.state.height();
        self.gathering.ahead.retain(|_, height| *height > after);
        for _ in 0..ASKED_PER_TICK {
            let Gathering { ahead, asked, .. } = &mut self.gathering;
            let next = asked.and_then(|last| ahead.keys().find(|peer| **peer > last)).or_else(|| ahead.keys().next());
            let Some(peer) = next.copied() else { return };
            ahead.remove(&peer);
            *asked = Some(peer);
            out.push(Effect::Send(Recipient::One(peer), Message::Want { after }.encode()));
        }
    }

    /// Whether to send one that speaks of an earlier height what it lacks. Among many, what was just decided may be on its way, and not all
    /// answer.
    pub(super) fn brings(&self, height: u64) -> bool {
        let just = height.saturating_add(1) == self.state.height()
            && self.ticks < self.gathering.since.saturating_add(self.patience());
        !self.are_many() || (!just && self.has_turn())
    }

    /// The members that are told now how far this one is: among many some in turn, beginning with those after itself.
    pub(super) fn due(&self) -> Vec<NodeId> {
        let own = self.keys.as_ref().map(|keys| keys.party());
        let members = self.sitting.members();
        let place = members.iter().position(|member| Some(*member) == own);
        let mut others: Vec<NodeId> = members.iter().map(|party| party.node()).collect();
        if let Some(place) = place {
            others.rotate_left(place);
            others.remove(0);
        }
        let count = FEW.max(others.len().div_ceil(ROUND));
        let turn = usize::try_from(self.ticks / STATUS_TICKS).unwrap_or(0);
        if self.are_many() {
            let first = turn.saturating_mul(count).checked_rem(others.len()).unwrap_or(0);
            others.rotate_left(first);
            others.truncate(count);
        }
        others
    }

    /// The members that are told at once that an entry was decided: among many those 1, 2, 4 and so on places further, which tell others
    /// in their turn; so all hear it from several. Among few all are told, by more than may lie, others at each height.
    pub(super) fn heralds(&self) -> Vec<NodeId> {
        let Some(own) = self.keys.as_ref().map(|keys| keys.party()) else { return Vec::new() };
        let members = self.sitting.members();
        let Some(place) = members.iter().position(|member| *member == own) else { return Vec::new() };
        let at = |steps: usize| members.get(place.saturating_add(steps).checked_rem(members.len())?).copied();
        let doubling = core::iter::successors(Some(1_usize), |steps| steps.checked_mul(2));
        let further = doubling.take_while(|steps| *steps < members.len()).filter_map(at);
        if self.are_many() {
            return further.map(|party| party.node()).collect();
        }
        let turn = place.saturating_add(self.sitting.first_leader()).checked_rem(members.len()).unwrap_or(0);
        if turn > self.state.faulty() {
            return Vec::new();
        }
        members.iter().filter(|member| **member != own).map(|party| party.node()).collect()
    }
}
