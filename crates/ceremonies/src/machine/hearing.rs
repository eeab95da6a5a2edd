//! What a party makes of what it hears: statements of any author's, from whoever passes them on.

use theta_rounds::{Blame, Channel, Effect, Malformed, Offence, PartyId, Slot};

use super::logic::Admission;
use super::sending::channel_of;
use super::signed::Signed;
use super::{Ceremony, Effects, SUMMARY};
use crate::bulletin_board::{Item, Posted};
use crate::evidence::CeremonyEvidence;
use crate::statement::{Kind, Statement};
use crate::{longest_body, longest_items, longest_summary};

impl Ceremony {
    pub(super) fn receive(&mut self, from: PartyId, slot: Slot, channel: Channel, payload: &[u8], out: &mut Effects) {
        // A party that is ignored may still ask.
        if self.is_stranger(from) || (self.ignored.contains(&from) && slot != SUMMARY) {
            return;
        }
        let longest = if slot == SUMMARY { longest_summary(&self.plan) } else { longest_items(&self.plan) };
        let offence = match (channel_of(slot), slot) {
            (None, _) => Offence::UnknownSlot,
            (Some(expected), _) if !channel.carries(expected) => Offence::WrongChannel { expected, got: channel },
            // It is not read.
            _ if payload.len() > longest => Offence::TooLong { len: payload.len(), most: longest },
            (_, SUMMARY) => match self.reply(from, payload, out) {
                Ok(()) => return,
                Err(malformed) => Offence::Malformed(malformed),
            },
            _ => match Item::decode_all(payload).and_then(|items| self.take_all(items, out)) {
                Ok(()) => return,
                Err(malformed) => Offence::Malformed(malformed),
            },
        };
        // Its signed statements that others pass on still count.
        if self.ignored.insert(from) {
            out.push(Effect::Blame(Blame { party: from, slot: Some(slot), offence }));
        }
    }

    /// Takes items up to the first that the sender cannot have checked. So a party costs one false signature at most.
    fn take_all(&mut self, items: Vec<Item>, out: &mut Effects) -> Result<(), Malformed> {
        let signed = self.signed_among(&items);
        for item in items {
            let news = match &item {
                Item::Statement(statement) => self.hear(statement, &signed, out)?,
                Item::Certificate(certificate) => self.logic.take_certificate(certificate)?,
                Item::Value(value) => self.logic.take_value(value),
            };
            if news {
                self.revision += 1;
                self.news = true;
                item.encode_into(&mut self.accepted);
            }
        }
        Ok(())
    }

    /// Takes one statement of whoever's; says whether it changed anything. Signatures are looked at last, and only of what
    /// could change something.
    ///
    /// # Errors
    /// [`Malformed`]: the party that passed it on has not checked it, as every honest party does.
    fn hear(&mut self, statement: &Statement, signed: &Signed, out: &mut Effects) -> Result<bool, Malformed> {
        let (author, slot) = (statement.author(), statement.slot());
        if self.is_too_long(statement) {
            return Err(Malformed("a statement that is longer than any honest party's"));
        }
        if !self.is_of_use(statement) {
            return Ok(false);
        }
        if !signed.has(statement) && !self.ahead.has(statement) && !statement.is_signed(&self.plan) {
            return Err(Malformed("a statement with a false signature"));
        }
        if self.logic.admission(author, slot) == Admission::Note {
            self.logic.note(author, slot);
            return Ok(true);
        }
        let posted = self.board.post(statement);
        if author == self.own.party() && !matches!(posted, Posted::Known) {
            self.outbox.said.insert(slot);
            // Nobody else can have signed it, and all statements since the last start are on the bulletin board.
            self.logic.lose_memory();
        }
        match posted {
            Posted::Known => return Ok(false),
            Posted::New => {
                if self.logic.take(statement).is_err() {
                    self.convict(CeremonyEvidence::Malformed(statement.clone()), out);
                }
            }
            // This harms only its author, which may be honest and have lost its disk without knowing it.
            Posted::Conflict(_) if slot.kind == Kind::EncryptionKey => {}
            Posted::Conflict(first) => {
                self.contradicted.insert(author);
                // One that is not wanted now may be wanted later: what was decided must not be refused for having come too early.
                if self.logic.take_other(statement) {
                    self.others.insert(statement.digest());
                }
                self.convict(CeremonyEvidence::Equivocation(first, statement.clone()), out);
            }
        }
        Ok(true)
    }

    fn is_too_long(&self, statement: &Statement) -> bool {
        statement.body().len() > longest_body(&self.plan, statement.slot().kind)
    }

    /// Whether a statement could change something, if its author signed it.
    pub(super) fn is_of_use(&self, statement: &Statement) -> bool {
        let (author, slot) = (statement.author(), statement.slot());
        match self.logic.admission(author, slot) {
            _ if self.is_too_long(statement) => false,
            Admission::Drop => false,
            Admission::Note => self.logic.is_news(author, slot),
            Admission::Keep => self.is_open_to(statement),
        }
    }

    /// Whether a statement may still be of use: its author has not filled the slot, or has not contradicted itself
    /// before, or a proposed or decided set names the statement, which was not examined yet. So each author costs one contradiction,
    /// and one look at each statement that is wanted, whatever it signs.
    fn is_open_to(&self, statement: &Statement) -> bool {
        match self.board.get(statement.author(), statement.slot()) {
            None => true,
            Some(first) if first.body() == statement.body() => false,
            Some(_) if !self.contradicted.contains(&statement.author()) => true,
            Some(_) => self.logic.is_wanted(statement) && !self.others.contains(&statement.digest()),
        }
    }

    /// Keeps the first evidence against each party.
    pub(super) fn convict(&mut self, evidence: CeremonyEvidence, out: &mut Effects) {
        let party = evidence.culprit();
        if party != self.own.party() && self.evidence.iter().all(|known| known.culprit() != party) {
            out.push(Effect::Blame(Blame { party, slot: None, offence: Offence::Protocol(evidence.clone()) }));
            self.evidence.push(evidence);
        }
    }

    fn is_stranger(&self, from: PartyId) -> bool {
        from == self.own.party() || self.plan.member(from).is_none()
    }

    /// Whether what a party sends is read.
    pub(super) fn listens_to(&self, from: PartyId) -> bool {
        !self.is_stranger(from) && !self.ignored.contains(&from)
    }
}
