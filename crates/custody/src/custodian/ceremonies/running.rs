//! A ceremony that runs at this node.

use std::collections::BTreeSet;

use bytes::Bytes;
use theta_ceremonies::{
    Ceremony, Effects, ITEMS, Input, Kind, Memory, SUMMARY, Statement, StatementSlot, rewrite, statements_of,
};
use theta_names::{KeyName, NodeId, Version};
use theta_rounds::{Abort, Channel, Effect, Machine, Malformed, PartyId, Recipient};

use super::progress::Progress;
use crate::ceremony::{Ending, Entry, Page, Pages, Subject};
use crate::custodian::message::{Id, Message, Part};
use crate::custodian::work::{Record, Work};
use crate::request::{CeremonyReport, CeremonyState, CustodyEffect, EvidenceReport, To};

/// The number of ticks without progress after which a node agrees that nothing will come of a ceremony.
const STUCK: u32 = 160;
/// The same of a recovery: nothing goes on without the node whose share it is, and whoever is back asks for it again.
const STUCK_RECOVERY: u32 = 64;
/// The number of ticks after which it does so of a recovery that goes on and on: honest nodes need fewer for all their attempts.
const ATTEMPTS: u32 = 2_500;
/// The number of ticks after which time passes more slowly, and by how much: each tick is a commit of the store.
const SLOW_AFTER: u32 = 480;
const SLOWER: u32 = 40;

pub(in crate::custodian) struct Running {
    pub(in crate::custodian) id: Id,
    /// The id of its plan, by which its messages are known.
    plan: Id,
    pub(in crate::custodian) subject: Subject,
    /// When it began at this node, in seconds since 1970.
    pub(in crate::custodian) started: u64,
    ceremony: Ceremony,
    local: NodeId,
    /// How it began, of one that goes on after a start: it is silent until this node knows whether its store was set back.
    resumed: Option<Memory>,
    /// Its entries in the journal.
    pages: Pages,
    /// The number of ticks since it began.
    age: u32,
    /// Whether this node has signed for the outcome: then it must not give up.
    signed: bool,
    progress: Progress,
    /// Its age when it learned that the others had ended.
    late: Option<u32>,
    /// What it has come to here; the group decides whether that counts.
    pub(super) ending: Option<Result<Ending, Abort>>,
    /// For how many ticks it has been over here.
    pub(super) over: u64,
    /// Once the journal has no room for what this node has heard: where it has made statements that follow from that. It never says them.
    unsaid: Option<BTreeSet<StatementSlot>>,
    silent: Vec<u16>,
    told: Option<(u32, u32, usize, usize)>,
}

/// Why a ceremony ends that needs more room than the journal has.
const FULL: &str = "its part of the journal is full: ask for it again, without those that are named below";

impl Running {
    pub(in crate::custodian) fn new((id, plan): (Id, Id), ceremony: Ceremony, subject: Subject, local: NodeId) -> Self {
        let progress = Progress::new(subject.holders.len());
        Self {
            id,
            plan,
            subject,
            started: 0,
            ceremony,
            local,
            resumed: None,
            pages: Pages::default(),
            age: 0,
            signed: false,
            progress,
            late: None,
            ending: None,
            over: 0,
            unsaid: None,
            silent: Vec::new(),
            told: None,
        }
    }

    /// Takes an input. If it changes the machine, it is recorded in the journal, otherwise not. If there is no room for
    /// it, the ceremony ends here: from then on it only tells others what it said before.
    pub(in crate::custodian) fn feed(&mut self, input: Input, work: &mut Work) -> Option<Result<Ending, Abort>> {
        if let Some(unsaid) = self.unsaid.take() {
            self.recall(input, &unsaid, work);
            self.unsaid = Some(unsaid);
            return None;
        }
        let revision = self.ceremony.revision();
        let (entry, heard) = (Entry::of(&input), !matches!(input, Input::Tick));
        let effects = self.ceremony.take(input);
        if self.ceremony.revision() != revision {
            work.speaks |= self.said_in(&effects).next().is_some();
            // A recovery goes on by attempts, of which each needs a few statements.
            if heard && self.subject.is_recovery() {
                self.progress.move_on(self.age);
            }
            let Some(Page { index, input, amends }) = self.pages.write(entry, self.ceremony.accepted(), self.signed)
            else {
                // Messages that depend on an unrecorded input must not be sent, now or later: after a start this node might say something else.
                self.unsaid = Some(self.said_in(&effects).map(|statement| statement.slot()).collect());
                let caught = effects.into_iter().filter(|effect| matches!(effect, Effect::Blame(_))).collect();
                return self.carry_out(caught, work).or(Some(Err(Abort::Input(FULL))));
            };
            let id = self.id;
            let record = if amends { Record::Amend { id, index, input } } else { Record::Input { id, index, input } };
            work.records.push(record);
        }
        self.carry_out(effects, work)
    }

    /// Answers others that ask, without what is not to be said. Nothing else is heard any more.
    fn recall(&mut self, input: Input, unsaid: &BTreeSet<StatementSlot>, work: &mut Work) {
        if !matches!(input, Input::Message { slot: SUMMARY, .. }) {
            return;
        }
        for effect in self.ceremony.take(input) {
            let Effect::Send { to, slot: ITEMS, payload, .. } = effect else { continue };
            let local = self.local;
            let told = rewrite(&payload, |statement| {
                let is_unsaid = statement.author().node() == local && unsaid.contains(&statement.slot());
                if is_unsaid { Vec::new() } else { vec![statement] }
            });
            if let Some(told) = told.filter(|told| !told.is_empty()) {
                self.send(to, Part::Items, told.into(), work);
            }
        }
    }

    fn carry_out(&mut self, effects: Effects, work: &mut Work) -> Option<Result<Ending, Abort>> {
        let mut ending = None;
        for effect in effects {
            match effect {
                Effect::Send { to, slot, payload, .. } => {
                    let part = if slot == SUMMARY { Part::Summary } else { Part::Items };
                    self.note_signature(part, &payload);
                    self.send(to, part, payload, work);
                }
                Effect::Blame(blame) => work.effects.push(CustodyEffect::Culprit {
                    node: blame.party.node(),
                    offence: Box::new(blame.offence),
                    ceremony: self.id,
                }),
                Effect::Ask(nothing) => match nothing {},
                Effect::Finished(result) => {
                    ending = Some(result.and_then(|outcome| Ending::of(outcome, &self.subject)));
                }
            }
        }
        let (done, of) = self.ceremony.contributions();
        let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let (certificates, view) = self.ceremony.stage();
        self.progress.note((number(done), number(of)), (number(certificates), view), self.age);
        ending
    }

    /// Replays an entry of the journal. Its messages were sent before, and are not sent again.
    pub(in crate::custodian) fn replay(&mut self, bytes: &[u8]) -> Result<Option<Result<Ending, Abort>>, Malformed> {
        let (input, times) = self.pages.read(bytes)?;
        let mut ending = None;
        for _ in 0..times {
            if matches!(input, Input::Tick) {
                self.age = self.age.saturating_add(if self.age < SLOW_AFTER { 1 } else { SLOWER });
            }
            let effects = self.ceremony.take(input.clone());
            ending = self.carry_out(effects, &mut Work::default()).or(ending);
        }
        Ok(ending)
    }

    /// It began with this memory, and what the journal has of it is replayed.
    pub(in crate::custodian) const fn resume(&mut self, memory: Memory, started: u64) {
        (self.resumed, self.started) = (Some(memory), started);
    }

    /// Goes on after a start, with the memory that this node now knows to have. Returns false if it has lost what the ceremony
    /// began with: then the ceremony must begin anew.
    pub(super) fn vouch(&mut self, memory: Memory) -> bool {
        match self.resumed {
            // The journal may be that of a copy, also where the ceremony began so before.
            Some(_) if memory == Memory::Lost => return false,
            Some(_) => {
                self.resumed = None;
                self.progress.move_on(self.age);
            }
            None => {}
        }
        true
    }

    /// Whether nobody has confirmed yet that this node remembers what it said.
    pub(super) const fn is_unconfirmed(&self) -> bool {
        self.resumed.is_some()
    }

    /// Looks at items that will be received next: see [`Ceremony::look_ahead`].
    pub(in crate::custodian) fn look_ahead(&mut self, items: &[(NodeId, Bytes)]) {
        self.ceremony.look_ahead(items.iter().map(|(from, payload)| (PartyId::of_node(*from), payload.as_ref())));
    }

    pub(in crate::custodian) fn receive(
        &mut self,
        from: NodeId,
        part: Part,
        payload: Bytes,
        work: &mut Work,
    ) -> Option<Result<Ending, Abort>> {
        if self.is_unconfirmed() {
            return None;
        }
        let slot = if part == Part::Items { ITEMS } else { SUMMARY };
        self.feed(Input::Message { from: PartyId::of_node(from), slot, channel: Channel::Broadcast, payload }, work)
    }

    pub(in crate::custodian) fn tick(&mut self, work: &mut Work) -> Option<Result<Ending, Abort>> {
        self.age = self.age.saturating_add(1);
        if self.is_unconfirmed() || (self.age > SLOW_AFTER && !self.age.is_multiple_of(SLOWER)) {
            return None;
        }
        self.over += u64::from(self.ending.is_some());
        let ending = self.feed(Input::Tick, work);
        self.look_who_is_silent();
        ending
    }

    pub(in crate::custodian) fn look_who_is_silent(&mut self) {
        self.silent =
            self.ceremony.silent().into_iter().map(PartyId::get).filter(|node| *node != self.local.get()).collect();
    }

    /// Whether it is about this key, and this version if one is given.
    pub(super) fn is_of(&self, key: &KeyName, version: Option<Version>) -> bool {
        let (of, its, _) = self.subject.about();
        of == key && version.is_none_or(|version| version == its)
    }

    /// Whether it has made no progress for so long that none is to be expected.
    pub(super) const fn is_stuck(&self) -> bool {
        let (most, idle) = if self.subject.is_recovery() { (ATTEMPTS, STUCK_RECOVERY) } else { (u32::MAX, STUCK) };
        self.age >= most || self.progress.idle(self.age) >= idle
    }

    /// Whether it goes on, now that the others have ended, for so many ticks.
    pub(super) fn waits_late(&mut self, most: u32) -> bool {
        let since = *self.late.get_or_insert(self.age);
        self.age < since.saturating_add(most)
    }

    /// What this node has signed among the messages.
    fn said_in(&self, effects: &Effects) -> impl Iterator<Item = Statement> {
        let items = effects.iter().filter_map(|effect| match effect {
            Effect::Send { slot: ITEMS, payload, .. } => Some(payload),
            _ => None,
        });
        items.flat_map(|payload| statements_of(payload)).filter(|statement| statement.author().node() == self.local)
    }

    fn note_signature(&mut self, part: Part, payload: &Bytes) {
        if self.signed || part != Part::Items {
            return;
        }
        let local = self.local;
        self.signed = statements_of(payload)
            .any(|statement| statement.author().node() == local && statement.slot().kind == Kind::Activation);
    }

    fn send(&self, to: Recipient, part: Part, payload: Bytes, work: &mut Work) {
        let message = Message::Ceremony { id: self.plan, part, payload };
        match to {
            Recipient::Party(party) => work.send(To::One(party.node()), &message),
            Recipient::OnRequest => {}
            Recipient::All => {
                let bytes = message.encode();
                let others = self.subject.nodes().into_iter().filter(|node| *node != self.local);
                work.effects.extend(others.map(|node| CustodyEffect::Send { to: To::One(node), bytes: bytes.clone() }));
            }
        }
    }

    /// The messages that a newcomer needs to end with the same result.
    pub(in crate::custodian) fn epilogue(&self) -> Vec<Bytes> {
        self.ceremony.epilogue()
    }

    /// Its state.
    pub(in crate::custodian) fn report(&self) -> CeremonyReport {
        let (done, of) = self.progress.steps();
        let awaits = if self.ending.is_some() { "the group, to take down its end" } else { self.ceremony.awaits() };
        CeremonyReport { awaits, ..self.report_as(CeremonyState::Running { done, of }) }
    }

    pub(in crate::custodian) fn report_as(&self, state: CeremonyState) -> CeremonyReport {
        let evidence = self.ceremony.evidence();
        let subject = if evidence.is_empty() { Bytes::new() } else { Bytes::from(self.subject.encode()) };
        let evidence = evidence.iter().map(|evidence| EvidenceReport::new(subject.clone(), evidence.clone()));
        let report = self.subject.report(self.id, state, "");
        CeremonyReport { evidence: evidence.collect(), silent: self.silent.clone(), ..report }
    }

    /// Reports its state if that has changed.
    pub(in crate::custodian) fn tell(&mut self, work: &mut Work) {
        let (done, of) = self.progress.steps();
        let now = (done, of, self.ceremony.evidence().len(), self.silent.len());
        if self.told != Some(now) {
            self.told = Some(now);
            work.effects.push(CustodyEffect::Report(self.report()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use theta_ceremonies::CeremonyKeys;
    use theta_groups::Secret;
    use theta_names::{Delivery, Epoch};
    use theta_schemes::Suite;
    use theta_statements::{CeremonyRequest, KeyChange};

    use super::*;
    use crate::ceremony::begin;
    use crate::request::CustodyEffect;

    fn node(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    fn keys(number: u16) -> Arc<CeremonyKeys> {
        Arc::new(CeremonyKeys::new(node(number), Secret::new([u8::try_from(number).unwrap(); 32])))
    }

    /// A new key of nodes 1 to 3, at one of them.
    fn running(number: u16) -> Running {
        let (key, suite, delivery, k, holders) =
            ("zone".parse().unwrap(), Suite::FrostEd25519, Delivery::All, 2, vec![1, 2, 3]);
        let change = KeyChange::Create { key, suite: suite.into(), delivery, k, holders: holders.clone() };
        let request = CeremonyRequest { nonce: [1; 32], change };
        let (version, epoch) = (Version::FIRST, Epoch::FIRST);
        let subject = Subject { request, version, epoch, suite, delivery, k, holders, source: None };
        let members: Vec<_> = (1..=3).map(|number| keys(number).member().clone()).collect();
        let plan = subject.plan("group", &members).unwrap();
        let identity = (&keys(number), Secret::new([9; 32]));
        let ceremony = begin(Arc::clone(&plan), identity, None, Memory::Kept).unwrap();
        Running::new(([0; 32], *plan.id().as_bytes()), ceremony, subject, node(number))
    }

    /// The messages of a part that a node sends.
    fn sent(work: Work, part: Part) -> Vec<Bytes> {
        let message = |effect| match effect {
            CustodyEffect::Send { bytes, .. } => Message::decode(&bytes).ok(),
            _ => None,
        };
        let payload = |message| match message {
            Message::Ceremony { part: its, payload, .. } if its == part => Some(payload),
            _ => None,
        };
        work.effects.into_iter().filter_map(message).filter_map(payload).collect()
    }

    #[test]
    fn what_the_journal_has_no_room_for_is_not_spoken_of() {
        let mut work = Work::default();
        let mut full = running(1);
        full.pages = Pages::almost_full(20);
        assert!(full.feed(Input::Start, &mut work).is_none());
        let mut others: Vec<Running> = [2, 3].map(running).into();
        let mut heard = Vec::new();
        for other in &mut others {
            let mut work = Work::default();
            other.feed(Input::Start, &mut work);
            heard.push((other.local, sent(work, Part::Items)[0].clone()));
        }
        // With the keys of all it deals, which nobody hears, since its journal has not the keys.
        let mut work = Work::default();
        for (from, payload) in heard {
            let ending = full.receive(from, Part::Items, payload, &mut work);
            assert!(from != node(2) || matches!(ending, Some(Err(_))), "there was room");
        }
        // There would be room for a tick.
        full.tick(&mut work);
        let mut asking = Work::default();
        others[0].tick(&mut asking);
        full.receive(node(2), Part::Summary, sent(asking, Part::Summary)[0].clone(), &mut work);
        assert!(work.records.is_empty() && !work.speaks);
        let said: Vec<_> = sent(work, Part::Items).iter().flat_map(|payload| statements_of(payload)).collect();
        let own: Vec<_> =
            said.iter().filter(|said| said.author().node() == node(1)).map(|said| said.slot().kind).collect();
        assert_eq!(own, [Kind::EncryptionKey]);
    }
}
