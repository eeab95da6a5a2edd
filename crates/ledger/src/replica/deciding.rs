//! How a height is decided: what this node says at it, and how the next one begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use theta_agreement::{Agreement, Ballot, MemberKeys, VoteCertificate, VoteKind};

use super::judging::{Bounds, Chamber};
use super::message::Vote;
use super::pending::Terms;
use super::{DropReason, Effect, Host, Memory, Replica, Said};
use crate::sitting::Sitting;
use crate::{Action, CertifiedEntry, Entry, LedgerError};

impl Replica {
    /// Says what there is to say, and takes what is decided.
    pub(super) fn settle(&mut self, host: &dyn Host, out: &mut Vec<Effect>) {
        loop {
            let (state, sitting, warrants) = (&self.state, &self.sitting, self.warrants.as_slice());
            let bounds = Bounds { state, sitting, warrants, latest: self.latest() };
            let mut chamber = Chamber { bounds, pending: &self.pending, host, now: self.now };
            if let Some((ballot, body)) = self.agreement.next(&mut chamber) {
                self.say(ballot, body, out);
                continue;
            }
            self.show_quorums(out);
            let oldest = self.agreement.oldest_view();
            self.heard.retain(|(_, ballot, _), _| ballot.view >= oldest);
            // Precommits for values stay: an entry that has one of this node's must not surprise it.
            self.said.retain(|ballot, said| {
                ballot.view >= oldest || (ballot.kind == VoteKind::Precommit && !said.vote.body.is_empty())
            });
            let decided = self.agreement.decision().zip(self.agreement.decided_value());
            let Some((certificate, value)) = decided else { return };
            // Honest members have read it before they voted for it.
            let Ok(entry) = Entry::decode(value) else { return };
            let certified = self.certified(entry, certificate.clone());
            if let Err(error) = self.take_entry(certified, out) {
                out.push(Effect::Undecided(error));
                return self.begin_again();
            }
            self.send_status(self.heralds(), out);
        }
    }

    fn say(&mut self, ballot: Ballot, body: Vec<u8>, out: &mut Vec<Effect>) {
        let Some(keys) = self.keys.clone() else { return };
        if self.said.contains_key(&ballot) {
            return;
        }
        let signature = self.sitting.sign(&keys, ballot, &body);
        self.agreement.take(&self.sitting, (keys.party(), ballot), &body, &signature);
        let locks = ballot.kind == VoteKind::Precommit && !body.is_empty();
        let polka = if locks { self.polka() } else { None };
        let said = Said { height: self.sitting.height(), vote: Vote { ballot, body, signature }, polka };
        out.push(Effect::Record(said.clone()));
        let vote = said.vote.clone();
        self.said.insert(ballot, said);
        self.tell_vote(vote, out);
    }

    /// Begins the height anew, as after a restart: with what this node has said, and without what it has heard, which the others repeat.
    pub(super) fn begin_again(&mut self) {
        self.agreement = begin(&self.sitting, self.keys.as_deref(), self.memory, &self.said);
        self.heard.clear();
        self.ignored.clear();
    }

    /// Takes the next entry, and begins the height after it.
    pub(super) fn take_entry(&mut self, certified: CertifiedEntry, out: &mut Vec<Effect>) -> Result<(), LedgerError> {
        self.state.advance(&certified)?;
        self.forget_machines(&certified.entry.action);
        if self.is_unremembered(&certified.certificate) && self.lose_memory() {
            out.push(Effect::Forgot);
        }
        if matches!(certified.entry.action, Action::Members(_)) {
            self.pending.forget_consents();
        }
        let action = certified.entry.action.digest();
        out.push(Effect::Decided(Box::new(certified)));
        self.pending.remove(&action);
        for (action, refusal, own) in self.pending.retain(|action, reason| Terms::of(&self.state, action, reason)) {
            if own {
                out.push(Effect::Dropped(action, DropReason::Refused(refusal)));
            }
        }
        self.sitting = self.next_sitting();
        if let Memory::From(height) = self.memory
            && self.sitting.height() >= height
        {
            (self.memory, self.forgot_below, self.owes_remembering) = (Memory::Kept, height.saturating_sub(1), true);
        }
        let owes = self.owes_remembering && self.memory == Memory::Kept;
        if owes && self.state.running().keys().all(|number| *number >= self.forgot_below) {
            self.owes_remembering = false;
            out.push(Effect::Remembers);
        }
        let votes = |keys: &&Arc<MemberKeys>| self.memory == Memory::Kept && self.sitting.seats(keys);
        let voter = self.keys.as_ref().filter(votes).map(|keys| keys.party());
        self.agreement = Agreement::new(&self.sitting, voter);
        self.said.clear();
        self.heard.clear();
        self.ignored.clear();
        self.distrusted.clear();
        self.gathering.begin(self.ticks);
        Ok(())
    }

    /// Whether a certificate has this node's own vote, which is not among what it has said.
    fn is_unremembered(&self, certificate: &VoteCertificate) -> bool {
        let own = self.keys.as_ref().is_some_and(|keys| self.sitting.has_vote_of(keys, certificate));
        own && !self.said.contains_key(&certificate.ballot())
    }
}

/// The agreement on the entry of a height at which this node has said this.
pub(super) fn begin(
    sitting: &Sitting,
    keys: Option<&MemberKeys>,
    memory: Memory,
    said: &BTreeMap<Ballot, Said>,
) -> Agreement {
    let recalls = matches!(memory, Memory::Kept | Memory::Unconfirmed);
    let mut agreement = Agreement::new(sitting, keys.filter(|_| recalls).map(MemberKeys::party));
    let mut said: Vec<&Said> = said.values().collect();
    said.sort_by_key(|said| (said.vote.ballot.view, said.vote.ballot.kind));
    for said in said {
        let Vote { ballot, body, signature } = &said.vote;
        agreement.recall(sitting, *ballot, body, signature);
        if let Some((certificate, value)) = &said.polka {
            agreement.take_polka(certificate.clone(), value);
        }
    }
    // A machine that votes by a warrant has said something, and votes again when it has the warrant again.
    if memory == Memory::Unconfirmed || !keys.is_some_and(|keys| sitting.seats(keys)) {
        agreement.abstain();
    }
    agreement
}
