//! Runs a ceremony at one party: signatures, the bulletin board, and what others lack. The content of statements is up
//! to a [`Logic`].
//!
//! [`Ceremony`] is a [`Machine`] of its own and not a protocol under the driver: a statement belongs to its author,
//! whichever party passes it on, so slots are by author and not by sender; and a party that has finished keeps
//! answering the others.

mod epilogue;
mod logic;
mod signed;

use core::convert::Infallible;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_rounds::{self, Blame, Channel, Effect, Machine, Malformed, Offence, PartyId, Recipient, Slot};
use theta_sharing::EncodedShare;

use super::bulletin_board::{BulletinBoard, Item, Posted};
use super::certificate::QuorumCertificate;
use super::evidence::CeremonyEvidence;
use super::group::group_named;
use super::outcome::{JoinError, Outcome};
use super::participant::Participant;
use super::plan::{Aim, CeremonyPlan};
use super::statement::{Digest, Kind, Statement};
use super::summary::{Part, Summary};
use super::wellformed::MESSAGE_BYTES;
use super::{CeremonyKeys, longest_body, longest_items, longest_summary};
use signed::Signed;

pub use epilogue::Remains;
pub use logic::Memory;
pub(super) use logic::{Admission, Logic, Outbox};

/// Statements, certificates and values.
pub const ITEMS: Slot = Slot { kind: 1, number: 0 };
/// What the sender has and lacks.
pub const SUMMARY: Slot = Slot { kind: 2, number: 0 };

/// Summaries of one party that are answered, and what each tick adds.
const REPLIES: u32 = 64;
const REPLIES_PER_TICK: u32 = 4;

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

/// A ceremony at one party.
///
/// It is a pure function of its arguments and the ordered inputs: replayed from a journal, it sends the same bytes. All
/// its secrets are derived from the `secret` that it is given: when that and the machine are destroyed, nobody can open
/// what was sealed to this party in the ceremony. Only inputs that raise [`Ceremony::revision`] need to be in the
/// journal, before the messages that they cause are sent.
pub struct Ceremony {
    plan: Arc<CeremonyPlan>,
    own: Arc<Participant>,
    logic: Box<dyn Logic>,
    board: BulletinBoard,
    outbox: Outbox,
    started: bool,
    finished: bool,
    revision: u64,
    /// Items of the last input that changed what this party knows.
    accepted: Vec<u8>,
    /// The parties that have contradicted themselves, and the contradicting statements that were examined all the same,
    /// since a proposed or decided set named them.
    contradicted: BTreeSet<PartyId>,
    others: BTreeSet<Digest>,
    ignored: BTreeSet<PartyId>,
    replies: BTreeMap<PartyId, u32>,
    /// Whether another party has said something new since the last tick.
    news: bool,
    /// How often this party has asked, and for how many ticks it has not.
    asked: usize,
    unasked: u32,
    evidence: Vec<CeremonyEvidence>,
    /// What is known of the messages that come next.
    ahead: Signed,
}

/// The inputs of a ceremony: it asks no stock for anything.
pub type Input = theta_rounds::Input<Infallible>;
/// The effects of a ceremony. If it blames a party for a statement, it has evidence that convinces anybody.
pub type Effects = theta_rounds::Effects<Ceremony>;

impl Ceremony {
    /// Joins a ceremony. `secret` is drawn for this ceremony alone, and kept as long as it runs and no longer; a party
    /// that lost its journal makes no statement that depends on it. `share` is this party's share of the key with which
    /// the ceremony begins: without it, a holder takes part but neither deals nor helps, unless it is the owner of the
    /// lost share. If that owner has lost its journal, it listens for what it has asked before, and then asks anew.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(
        plan: Arc<CeremonyPlan>,
        keys: Arc<CeremonyKeys>,
        secret: Secret<[u8; 32]>,
        share: Option<&EncodedShare>,
        memory: Memory,
    ) -> Result<Self, JoinError> {
        if plan.member(keys.party()) != Some(keys.member()) {
            return Err(JoinError::Stranger);
        }
        let own = Arc::new(Participant::new(keys, *plan.id(), secret));
        let group = group_named(plan.group().name()).ok_or(JoinError::Plan)?;
        let logic = group.logic(&plan, &own, share, memory)?;
        Ok(Self::new(plan, own, logic))
    }

    fn new(plan: Arc<CeremonyPlan>, own: Arc<Participant>, logic: Box<dyn Logic>) -> Self {
        Self {
            plan,
            own,
            logic,
            board: BulletinBoard::default(),
            outbox: Outbox::default(),
            started: false,
            finished: false,
            revision: 0,
            accepted: Vec::new(),
            contradicted: BTreeSet::new(),
            others: BTreeSet::new(),
            ignored: BTreeSet::new(),
            replies: BTreeMap::new(),
            news: false,
            asked: 0,
            unasked: 0,
            evidence: Vec::new(),
            ahead: Signed::default(),
        }
    }

    /// Takes one input, as [`Machine::handle`] does. No ceremony uses the generator of that method, since its
    /// randomness is derived from its secret.
    pub fn take(&mut self, input: Input) -> Effects {
        let mut out = Vec::new();
        let before = self.revision;
        self.accepted.clear();
        match input {
            Input::Start => {
                self.revision += u64::from(!self.started);
                self.started = true;
            }
            Input::Message { from, slot, channel, payload } => self.receive(from, slot, channel, &payload, &mut out),
            Input::Tick if self.started && !self.finished => self.tick(&mut out),
            Input::Tick => {}
            Input::Supply(nothing) => match nothing {},
        }
        // An input that changes nothing makes nothing possible: a repeated message costs no more than reading it.
        if self.started && self.revision != before {
            self.settle(&mut out);
        }
        out
    }

    /// Rises with every input that changed what this party knows.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The items of the last message that changed what this party knows, as a message: replaying it replaces replaying
    /// the whole. Empty if there are none, and after inputs of other kinds.
    #[must_use]
    pub fn accepted(&self) -> &[u8] {
        &self.accepted
    }

    /// The parties that lied so far, with evidence.
    #[must_use]
    pub fn evidence(&self) -> &[CeremonyEvidence] {
        &self.evidence
    }

    /// Whose statements are awaited.
    #[must_use]
    pub fn silent(&self) -> Vec<PartyId> {
        self.logic.silent(&self.board)
    }

    /// What is awaited, for people: the end of a sentence that begins "It waits for".
    #[must_use]
    pub fn awaits(&self) -> &'static str {
        self.logic.awaits()
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
                self.others.insert(statement.digest());
                self.logic.take_other(statement);
                self.convict(CeremonyEvidence::Equivocation(first, statement.clone()), out);
            }
        }
        Ok(true)
    }

    fn is_too_long(&self, statement: &Statement) -> bool {
        statement.body().len() > longest_body(&self.plan, statement.slot().kind)
    }

    /// Whether a statement could change something, if its author signed it.
    fn is_of_use(&self, statement: &Statement) -> bool {
        let (author, slot) = (statement.author(), statement.slot());
        match self.logic.admission(author, slot) {
            _ if self.is_too_long(statement) => false,
            Admission::Drop => false,
            Admission::Note => self.logic.is_news(author, slot),
            Admission::Keep => self.is_open_to(statement),
        }
    }

    /// Whether a statement may still be of use: its author has not filled the slot, or has not contradicted itself
    /// before, or a proposed or decided set names the statement. So each author costs one contradiction, whatever it
    /// signs.
    fn is_open_to(&self, statement: &Statement) -> bool {
        match self.board.get(statement.author(), statement.slot()) {
            None => true,
            Some(first) if first.body() == statement.body() => false,
            Some(_) if !self.contradicted.contains(&statement.author()) => true,
            Some(_) => self.logic.is_wanted(statement) && !self.others.contains(&statement.digest()),
        }
    }

    /// Keeps the first evidence against each party.
    fn convict(&mut self, evidence: CeremonyEvidence, out: &mut Effects) {
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
    fn listens_to(&self, from: PartyId) -> bool {
        !self.is_stranger(from) && !self.ignored.contains(&from)
    }

    fn receive(&mut self, from: PartyId, slot: Slot, channel: Channel, payload: &[u8], out: &mut Effects) {
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

    /// Sends what a party lacks.
    fn reply(&mut self, to: PartyId, summary: &[u8], out: &mut Effects) -> Result<(), Malformed> {
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

    fn tick(&mut self, out: &mut Effects) {
        self.revision += 1;
        self.logic.tick();
        self.board.tick();
        for replies in self.replies.values_mut() {
            *replies = REPLIES.min(*replies + REPLIES_PER_TICK);
        }
        self.ask(out);
    }

    fn certificates(&self) -> [Option<&QuorumCertificate>; 2] {
        self.logic.certificates()
    }

    const fn board(&self) -> &BulletinBoard {
        &self.board
    }

    /// The decided value and dealings, as far as they are here.
    fn decided(&self) -> Vec<Item> {
        self.logic.decided().iter().filter_map(|digest| self.logic.supply(digest)).collect()
    }

    /// What this party has and wants, asking for all dealings that it lacks.
    fn summary(&self) -> Summary {
        let has = self.logic.certificates().map(|certificate| certificate.is_some());
        Summary::of(&self.board, has, self.logic.view(), self.logic.wants())
    }

    /// Asks for what is lacking: all others, if they are few; of many others some, in turn, and two of these for each dealing.
    /// What is on its way is not asked for: on a machine that is slower than its ticks, questions would be most of what it reads.
    fn ask(&mut self, out: &mut Effects) {
        let news = core::mem::take(&mut self.news);
        let own = self.own.party();
        let others: Vec<PartyId> = self.plan.parties().filter(|party| *party != own).collect();
        // In a recovery, the owner of the lost share needs to hear from all helpers.
        if others.len() <= ASKED || matches!(self.plan.aim(), Aim::Recover(..)) {
            out.push(effect(Recipient::All, SUMMARY, self.summary().encode()));
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
            out.push(effect(Recipient::Party(*other), SUMMARY, summary.encode()));
        }
    }

    /// Goes on until there is nothing more to say.
    fn settle(&mut self, out: &mut Effects) {
        loop {
            self.logic.advance(&mut self.board, &mut self.outbox);
            core::mem::take(&mut self.outbox.faults).into_iter().for_each(|fault| self.convict(fault, out));
            let mut said = Vec::new();
            for (slot, body) in core::mem::take(&mut self.outbox.say) {
                let statement = self.own.sign(slot, body);
                self.hear_own(&statement);
                said.push(Item::Statement(statement));
            }
            if said.is_empty() {
                break;
            }
            // The inputs that made this party sign are replayed to it, so it never meets its own statements as news.
            self.revision += 1;
            send(Recipient::All, &said, out);
        }
        if !self.finished
            && let Some(outcome) = self.logic.outcome(&self.board, &self.evidence)
        {
            self.finished = true;
            out.push(Effect::Finished(outcome));
        }
    }

    fn hear_own(&mut self, statement: &Statement) {
        if matches!(self.board.post(statement), Posted::New) {
            // Our own statements are well-formed.
            let _ = self.logic.take(statement);
        }
    }
}

/// How messages travel: to all, or to the one that asked.
const fn channel_of(slot: Slot) -> Option<Channel> {
    match slot {
        ITEMS | SUMMARY => Some(Channel::Broadcast),
        _ => None,
    }
}

fn effect(to: Recipient, slot: Slot, payload: Vec<u8>) -> Effect<Outcome, CeremonyEvidence, Infallible> {
    Effect::Send { to, slot, channel: Channel::Broadcast, payload: Bytes::from(payload) }
}

fn send(to: Recipient, items: &[Item], out: &mut Effects) {
    let sent = messages(items).into_iter();
    out.extend(sent.map(|payload| Effect::Send { to, slot: ITEMS, channel: Channel::Broadcast, payload }));
}

/// Items in messages, few enough in each.
fn messages(items: &[Item]) -> Vec<Bytes> {
    let (mut messages, mut payload) = (Vec::new(), Vec::new());
    for item in items {
        let len = payload.len();
        item.encode_into(&mut payload);
        if payload.len() > MESSAGE_BYTES && len > 0 {
            let rest = payload.split_off(len);
            messages.push(Bytes::from(core::mem::replace(&mut payload, rest)));
        }
    }
    if !payload.is_empty() {
        messages.push(Bytes::from(payload));
    }
    messages
}

impl Machine for Ceremony {
    type Output = Outcome;
    type Misbehaviour = CeremonyEvidence;
    type Ask = Infallible;
    type Supply = Infallible;

    fn handle(&mut self, input: Input, _rng: &mut dyn CryptoRng) -> Effects {
        self.take(input)
    }

    fn contributions(&self) -> (usize, usize) {
        self.logic.contributions()
    }

    fn awaits(&self, party: PartyId) -> bool {
        !self.finished && party != self.own.party() && self.plan.member(party).is_some()
    }

    fn is_finished(&self) -> bool {
        self.finished
    }

    /// Parties that come late still get answers and help.
    fn lingers(&self) -> bool {
        self.finished
    }
}
