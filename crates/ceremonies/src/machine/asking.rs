//! What a party asks others for, and what it sends to those that ask.

use std::collections::BTreeSet;

use bytes::Bytes;
use theta_rounds::{Malformed, PartyId, Recipient};

use super::sending::{effect, messages, send};
use super::{Ceremony, Effects, REPLIES, SUMMARY};
use crate::bulletin_board::Item;
use crate::plan::Aim;
use crate::statement::Digest;
use crate::summary::{Part, Summary};

/// The least number of others that a party asks at each tick, if there are more than that. Among very many it asks as many as it takes to ask each once in
/// [`ROUND`] ticks.
const ASKED: usize = 8;
const ROUND: usize = 16;
/// How many of those it asks for one and the same dealing. It asks all of them for everything else, since dealings are long and the other
/// statements short.
const COPIES: usize = 2;
/// Among many, a party that has heard something new since the last tick asks nobody at this one, since more may be on its way. Of so many ticks in a
/// row it asks at one at the least.
const ASKS_WITHIN: u32 = 4;
/// Ticks for which a dealing is taken to be on its way from its dealer, so that a party does not pass it on.
const ON_ITS_WAY: u32 = 2;

impl Ceremony {
    /// Sends what a party lacks.
    pub(super) fn reply(&mut self, to: PartyId, summary: &[u8], out: &mut Effects) -> Result<(), Malformed> {
        let replies = self.replies.entry(to).or_insert(REPLIES);
        let Some(rest) = replies.checked_sub(1) else { return Ok(()) };
        *replies = rest;
        send(Recipient::Party(to), &self.lacking(&Summary::decode(summary)?), out);
        Ok(())
    }

    /// What the author of a summary lacks, whichever party that is and however often it has asked; empty for bytes that
    /// are no summary.
    #[must_use]
    pub fn answer(&self, summary: &[u8]) -> Vec<Bytes> {
        let items = Summary::decode(summary).map(|summary| self.lacking(&summary)).unwrap_or_default();
        messages(&items)
    }

    /// What the author of a summary lacks. If it asks for some dealings only, the new ones are left to their dealers, unless
    /// time has stopped here.
    fn lacking(&self, summary: &Summary) -> Vec<Item> {
        let age = if summary.part.is_whole() || self.finished { 0 } else { ON_ITS_WAY };
        let has = [summary.decided, summary.activated];
        let certificates = self.logic.certificates().into_iter().zip(has);
        let certificates = certificates.filter(|(_, has)| !has).filter_map(|(known, _)| known.cloned());
        // Each digest once, however often it is named.
        let wants: BTreeSet<&Digest> = summary.wants.iter().collect();
        let wanted = wants.into_iter().filter_map(|digest| self.logic.supply(digest));
        // A dealing whose slot is empty there is among the missing ones.
        let wanted = wanted.filter(|item| match item {
            Item::Statement(statement) => age == 0 || summary.has(statement),
            Item::Certificate(_) | Item::Value(_) => true,
        });
        let missing = self.board.missing(summary, age).cloned().map(Item::Statement);
        certificates.map(Item::Certificate).chain(wanted).chain(missing).collect()
    }

    /// What this party has and wants, asking for all dealings that it lacks.
    fn summary(&self) -> Summary {
        let has = self.logic.certificates().map(|certificate| certificate.is_some());
        Summary::of(&self.board, has, self.logic.view(), self.logic.wants())
    }

    /// Asks for what is lacking: all others, if they are few; of many others some, in turn, and two of these for each dealing.
    /// What is on its way is not asked for: on a machine that is slower than its ticks, questions would be most of what it reads.
    pub(super) fn ask(&mut self, out: &mut Effects) {
        let news = core::mem::take(&mut self.news);
        let own = self.own.party();
        let others: Vec<PartyId> = self.plan.parties().filter(|party| *party != own).collect();
        // In a recovery, the owner of the lost share needs to hear from all helpers.
        if others.len() <= ASKED || matches!(self.plan.aim(), Aim::Recover(..)) {
            let summary = self.summary();
            if others.iter().all(|other| self.logic.named_by(*other).is_empty()) {
                out.push(effect(Recipient::All, SUMMARY, summary.encode()));
            } else {
                others.iter().for_each(|other| self.ask_one(*other, &summary, out));
            }
            return;
        }
        self.unasked = self.unasked.saturating_add(1);
        if news && self.unasked < ASKS_WITHIN {
            return;
        }
        let mut summary = self.summary();
        let asked = ASKED.max(others.len().div_ceil(ROUND));
        let parts = asked / COPIES;
        let before = asked.saturating_mul(self.asked);
        (self.asked, self.unasked) = (self.asked.wrapping_add(1), 0);
        let start = others.partition_point(|other| *other < own);
        for turn in (before..).take(asked) {
            let (place, round) = (turn % others.len(), turn / others.len());
            let Some(other) = others.get((start + place) % others.len()) else { continue };
            // In the next round each is asked for other dealings.
            let remainder = u16::try_from((place + round) % parts).unwrap_or(0);
            summary.part = Part { remainder, modulus: u16::try_from(parts).unwrap_or(u16::MAX) };
            self.ask_one(*other, &summary, out);
        }
    }

    /// Asks one other party, also for what it alone is known to have.
    fn ask_one(&self, other: PartyId, summary: &Summary, out: &mut Effects) {
        let mut summary = summary.clone();
        summary.wants.extend(self.logic.named_by(other));
        out.push(effect(Recipient::Party(other), SUMMARY, summary.encode()));
    }
}
