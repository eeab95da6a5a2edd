//! What a replica makes of messages.

use theta_agreement::{Ballot, Electorate, Verdict, VoteKind, check};
use theta_names::NodeId;
use theta_names::codec::Reader;
use theta_rounds::PartyId;

use super::message::{MESSAGE_BYTES, Message, Polka, Vote};
use super::pending::{Source, Terms};
use super::{Effect, Host, MOST_MESSAGE, Memory, Recipient, Replica, ReplicaOffence, fits};
use crate::{Action, CertifiedEntry, Consent, Entry, LedgerError, MOST_ENTRY};

impl Replica {
    pub(super) fn receive(&mut self, from: NodeId, bytes: &[u8], host: &dyn Host, out: &mut Vec<Effect>) {
        let party = PartyId::of_node(from);
        let own = self.keys.as_ref().is_some_and(|keys| keys.party() == party);
        if own || bytes.len() > MOST_MESSAGE || !self.peers.may_speak(from, bytes.len()) {
            return;
        }
        if Message::is_of_entries(bytes) && self.distrusted.contains(&from) {
            return;
        }
        // Who sends what cannot be read harms nobody but itself.
        let Ok(message) = Message::decode(bytes) else { return };
        if !self.sitting.members().contains(&party) && !message.is_for_strangers() {
            return;
        }
        match message {
            Message::Status { height, session, echo, spoken, machine } => {
                let spoken = spoken.filter(|_| echo == Some(self.session));
                self.peers.greet(from, machine, session, spoken.map(|spoken| spoken.max(height)));
                self.peers.stands(from, height);
                self.remember();
                self.hear_height(from, height, host, out);
            }
            Message::Want { after } => self.answer(from, after, host, out),
            Message::Entries(entries) => self.take_entries(from, entries, out),
            Message::Candidate { action, reason, consents } => {
                self.take_candidate(from, (action, reason, consents), host, out);
            }
            // What does not serve here may serve where its sender is.
            Message::Warrant(warrant) => {
                if !self.knows_warrant(&warrant) && self.peers.may_bring(from) {
                    drop(self.take_warrant(*warrant));
                }
            }
            Message::Votes { height, votes, polka } => {
                self.hear_height(from, height.saturating_sub(1), host, out);
                if height == self.sitting.height() && !self.is_ignored(party) {
                    let taken = self.take_votes(party, &votes).and_then(|()| self.take_polka(polka));
                    self.judge_sender(from, taken, out);
                }
            }
            Message::Quorum { height, certificate } => {
                if height > self.sitting.height() {
                    self.follow(from, height.saturating_sub(1), out);
                } else if height == self.sitting.height() && !self.is_ignored(party) {
                    let taken = self.take_quorum(from, &certificate, out);
                    self.judge_sender(from, taken, out);
                }
            }
        }
    }

    /// Whether a member's votes of this height are not looked at any more. Of a member that is stood in for either machine may have been stolen, and what
    /// it sends under the member's number is no reason not to hear the other: each message is judged for itself, as many as are let through in a tick.
    fn is_ignored(&self, party: PartyId) -> bool {
        self.ignored.contains(&party) && !self.sitting.is_double(party)
    }

    /// After an offence the sender's votes of this height are not looked at any more, and it is not blamed again.
    fn judge_sender(&mut self, from: NodeId, taken: Result<(), ReplicaOffence>, out: &mut Vec<Effect>) {
        let Err(offence) = taken else { return };
        if !self.ignored.insert(PartyId::of_node(from)) {
            return;
        }
        // It may be a vote under a warrant that has not come here yet: what is ignored is heard again when it has.
        if !(self.state.is_small() && offence.is_of_signatures()) {
            out.push(Effect::Blame(from, offence));
        }
    }

    /// A peer says how far it is: who is behind is sent what it lacks, who is ahead is asked.
    fn hear_height(&mut self, from: NodeId, height: u64, host: &dyn Host, out: &mut Vec<Effect>) {
        let own = self.state.height();
        if height < own && self.brings(height) {
            self.answer(from, height, host, out);
        } else if height > own {
            self.follow(from, height, out);
        }
    }

    /// A node that forgot what it has said learns at which heights it cannot have spoken.
    ///
    /// Let own be its height. If it had spoken after own + 1, own + 1 would have been decided before its start: a quorum of the members that
    /// decide own + 1 would have precommitted it. A quorum of the same members has told, since its start, that they have precommitted
    /// nothing after own, and an honest member is in both, a contradiction. So own + 2 is safe, however the members change afterwards. A liar that claims to
    /// have said more than it can have does not count.
    fn remember(&mut self) {
        if self.memory == Memory::Lost && self.level_peers() >= self.sitting.quorum() {
            self.memory = Memory::From(self.state.height().saturating_add(2));
        }
    }

    fn answer(&mut self, to: NodeId, after: u64, host: &dyn Host, out: &mut Vec<Effect>) {
        if after >= self.state.height() || !self.peers.may_answer(to) {
            return;
        }
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for height in after.saturating_add(1)..=self.state.height() {
            let Some(entry) = host.entry(height) else { break };
            bytes += entry.encode().len();
            if bytes > MESSAGE_BYTES && !entries.is_empty() {
                break;
            }
            entries.push(entry);
        }
        if !entries.is_empty() {
            out.push(Effect::Send(Recipient::One(to), Message::Entries(entries).encode()));
        }
    }

    /// Takes the entries that follow; one that is false is its sender's offence, and ends the message.
    fn take_entries(&mut self, from: NodeId, entries: Vec<CertifiedEntry>, out: &mut Vec<Effect>) {
        let mut taken = false;
        if self.distrusted.contains(&from) {
            return;
        }
        for entry in entries {
            match self.take_entry(entry, out) {
                Ok(()) => taken = true,
                // It was decided here in the meantime, or comes too early.
                Err(LedgerError::Height { .. }) => {}
                Err(error) => {
                    self.distrusted.insert(from);
                    out.push(Effect::Blame(from, ReplicaOffence::FalseEntry(error)));
                    return;
                }
            }
        }
        // There may be more where these came from.
        if taken && self.peers.may_ask(from) {
            let after = self.state.height();
            out.push(Effect::Send(Recipient::One(from), Message::Want { after }.encode()));
        }
    }

    /// Takes the entries that follow, whoever had them, as far as they are certified.
    pub(super) fn take_certified(&mut self, entries: Vec<CertifiedEntry>, out: &mut Vec<Effect>) {
        for entry in entries {
            match self.take_entry(entry, out) {
                Ok(()) | Err(LedgerError::Height { .. }) => {}
                Err(_) => return,
            }
        }
    }

    /// Whatever this node agrees to, it wants decided, too: else one that a client could reach alone would wait for its own turn. What takes
    /// consents is kept if it has one, and signatures are looked at only where they are news.
    fn take_candidate(
        &mut self,
        from: NodeId,
        (action, reason, consents): (Action, Vec<u8>, Vec<Consent>),
        host: &dyn Host,
        out: &mut Vec<Effect>,
    ) {
        let digest = action.digest();
        let known = self.pending.terms(&digest).cloned();
        let claimed = matches!(&action, Action::Members(change) if change.claims_proof(&reason));
        let proves = claimed && known.as_ref().is_none_or(|terms| terms.demand.needed > 0);
        let barred = self.doubted.contains(&from) || (known.is_none() && !self.pending.has_room_for(from));
        // Its reason may be a warrant, which takes a signature of each operator.
        if barred || (proves && !reason.is_empty() && !self.peers.may_bring(from)) {
            return;
        }
        let terms = match known.clone().filter(|_| !proves) {
            Some(terms) => terms,
            None => match Terms::of(&self.state, &action, &reason) {
                Ok(terms) => terms,
                Err(_) => return,
            },
        };
        if proves && known.is_some() {
            return self.pending.prove(&digest, reason, terms);
        }
        let known = known.is_some();
        let time = self.time();
        let news = |consent: &&Consent| {
            let counts = terms.demand.is_of(consent.node) && consent.covers(time);
            counts && (!known || self.pending.lacks(&digest, consent, time))
        };
        let news: Vec<Consent> = consents.iter().filter(news).take(terms.demand.needed).copied().collect();
        // It may be of a machine that was replaced at a height that one of the two has not seen: nobody is blamed for it.
        if !news.iter().all(|consent| self.state.is_consent(&terms.demand, &terms.subject, consent)) {
            self.doubted.insert(from);
            return;
        }
        if !known {
            let may = (terms.demand.needed == 0 || !news.is_empty()) && fits(&action, &reason, &terms.demand);
            // To look at the certificate of a ceremony costs as much as all its signatures.
            let costly = matches!(action, Action::End { .. });
            if !may || (costly && !self.peers.may_judge(from)) {
                return;
            }
            let entry = self.state.next_entry(action.clone(), reason.clone(), self.now);
            let valid = if claimed {
                self.state.check_entry(&entry).is_ok()
            } else {
                host.judge(&self.state, &entry) == Verdict::Valid
            };
            if !valid {
                return;
            }
            self.pending.insert(Source::Peer(from), (entry.action, entry.reason), terms, self.ticks);
        }
        news.into_iter().for_each(|consent| self.pending.consent(&digest, consent));
        if let Some(keys) = &self.keys
            && !reason.is_empty()
            && self.pending.show(&digest, keys.party().node(), from)
        {
            out.push(Effect::Asked(action, reason));
        }
    }

    fn take_votes(&mut self, author: PartyId, votes: &[Vote]) -> Result<(), ReplicaOffence> {
        votes.iter().try_for_each(|vote| self.take_vote(author, vote))
    }

    /// Takes one vote. Signatures are looked at last, and only of what could change something.
    fn take_vote(&mut self, author: PartyId, vote: &Vote) -> Result<(), ReplicaOffence> {
        let Vote { ballot, body, signature } = vote;
        let longest = if ballot.kind == VoteKind::Proposal { 2 * MOST_ENTRY } else { 32 };
        if body.len() > longest {
            return Err(ReplicaOffence::Malformed("a vote that is longer than any honest member's"));
        }
        let kept = self.agreement.admits(author, *ballot);
        let ahead = ballot.view > self.agreement.view() && self.agreement.is_news(author, ballot.view);
        let noted = ahead && !self.noted.contains(&author);
        let mut machines = self.heard.range((author, *ballot, [0; 32])..=(author, *ballot, [u8::MAX; 32]));
        if (!kept && !noted) || machines.any(|(_, heard)| heard == body) {
            return Ok(());
        }
        let Some(machine) = self.sitting.signer(author, *ballot, body, signature) else {
            return Err(ReplicaOffence::FalseSignature);
        };
        if !kept {
            self.noted.insert(author);
            self.agreement.note(author, ballot.view);
            return Ok(());
        }
        // It comes again when the value is here. A leader that shows its value to some alone could otherwise keep the others waiting for this
        // vote for ever.
        if self.sitting.is_stand_in(author, &machine) && !self.counts_in_place(*ballot, body) {
            self.agreement.note_vote(author, *ballot);
            return Ok(());
        }
        // Of a member that is stood in for both machines' votes are kept, and it counts once for each value: one that was stolen does not
        // keep the other from voting. Who has the one does not answer for the other.
        if self.heard.contains_key(&(author, *ballot, machine)) {
            let offence = ReplicaOffence::Equivocation(self.sitting.height());
            return if self.sitting.is_double(author) { Ok(()) } else { Err(offence) };
        }
        let time = if ballot.kind == VoteKind::Proposal { proposed_time(body) } else { None };
        let sitting = self.sitting_at(time.unwrap_or_default());
        check(&*sitting, *ballot, body).map_err(|malformed| ReplicaOffence::Malformed(malformed.0))?;
        self.heard.insert((author, *ballot, machine), body.clone());
        self.agreement.take(&self.sitting, (author, *ballot), body, signature);
        Ok(())
    }

    fn take_polka(&mut self, polka: Option<Polka>) -> Result<(), ReplicaOffence> {
        let Some((certificate, value)) = polka else { return Ok(()) };
        if self.agreement.polka().is_some_and(|known| known.view() >= certificate.view()) {
            return Ok(());
        }
        let same = self.sitting.value_digest(&value) == *certificate.digest();
        let prevotes = certificate.ballot() == Ballot::new(VoteKind::Prevote, certificate.view());
        let sitting = self.sitting_at(Entry::decode(&value).map_or(0, |entry| entry.time));
        if !same || !prevotes || value.len() > MOST_ENTRY || !certificate.is_valid(&*sitting) {
            return Err(ReplicaOffence::FalsePrevotes);
        }
        self.agreement.take_polka(certificate, &value);
        Ok(())
    }
}

/// The time of a proposed entry, as it says.
fn proposed_time(body: &[u8]) -> Option<u64> {
    Some(Entry::decode(Reader::new(body).bytes().ok()?).ok()?.time)
}
