//! A ceremony that runs at this node.

use bytes::Bytes;
use theta_ceremonies::{Ceremony, Effects, ITEMS, Input, Kind, SUMMARY, statements_of};
use theta_names::NodeId;
use theta_rounds::{Abort, Channel, Effect, Evidence, Machine, Malformed, PartyId, Recipient};

use super::message::{Id, Message, Part};
use super::work::{Record, Work};
use crate::ceremony::{Ending, Entry, Page, Pages, Subject, bundle};
use crate::request::{CeremonyReport, CeremonyState, CustodyEffect, EvidenceReport, To};

/// The number of ticks after which a node that has signed for nothing gives a ceremony up.
pub(super) const GIVE_UP: u32 = 960;
/// The number of ticks after which time passes more slowly, and by how much: each tick is a commit of the store.
const SLOW_AFTER: u32 = 480;
const SLOWER: u32 = 40;

pub(super) struct Running {
    pub(super) id: Id,
    pub(super) subject: Subject,
    /// When it began at this node, in seconds since 1970.
    pub(super) started: u64,
    ceremony: Ceremony,
    local: NodeId,
    /// Its entries in the journal.
    pages: Pages,
    /// The number of ticks since it began.
    age: u32,
    /// Whether this node has signed for the outcome: then it must not give up.
    signed: bool,
    progress: (u32, u32),
    silent: Vec<u16>,
    told: Option<(u32, u32, usize, usize)>,
}

/// Why a ceremony ends that needs more room than the journal has.
const FULL: &str = "its part of the journal is full: ask for it again, without those that are named below";

impl Running {
    pub(super) fn new(id: Id, ceremony: Ceremony, subject: Subject, local: NodeId) -> Self {
        Self {
            id,
            subject,
            started: 0,
            ceremony,
            local,
            pages: Pages::default(),
            age: 0,
            signed: false,
            progress: (0, 0),
            silent: Vec::new(),
            told: None,
        }
    }

    /// Takes an input. If it changes the machine, it is recorded in the journal, otherwise not. If there is no room for
    /// it, the ceremony ends.
    pub(super) fn feed(&mut self, input: Input, work: &mut Work) -> Option<Result<Ending, Abort>> {
        let revision = self.ceremony.revision();
        let entry = Entry::of(&input);
        let effects = self.ceremony.take(input);
        if self.ceremony.revision() != revision {
            let Some(Page { index, input, amends }) = self.pages.write(entry, self.ceremony.accepted(), self.signed)
            else {
                // Messages that depend on an unrecorded input must not be sent.
                let caught = effects.into_iter().filter(|effect| matches!(effect, Effect::Blame(_))).collect();
                return self.carry_out(caught, work).or(Some(Err(Abort::Input(FULL))));
            };
            let id = self.id;
            let record = if amends { Record::Amend { id, index, input } } else { Record::Input { id, index, input } };
            work.records.push(record);
        }
        self.carry_out(effects, work)
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
        self.progress = (self.progress.0.max(number(done)), self.progress.1.max(number(of)));
        ending
    }

    /// Replays an entry of the journal. Its messages were sent before, and are not sent again.
    pub(super) fn replay(&mut self, bytes: &[u8]) -> Result<Option<Result<Ending, Abort>>, Malformed> {
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

    /// Looks at items that will be received next: see [`Ceremony::look_ahead`].
    pub(super) fn look_ahead(&mut self, items: &[(NodeId, Bytes)]) {
        self.ceremony.look_ahead(items.iter().map(|(from, payload)| (PartyId::of_node(*from), payload.as_ref())));
    }

    pub(super) fn receive(
        &mut self,
        from: NodeId,
        part: Part,
        payload: Bytes,
        work: &mut Work,
    ) -> Option<Result<Ending, Abort>> {
        let slot = if part == Part::Items { ITEMS } else { SUMMARY };
        self.feed(Input::Message { from: PartyId::of_node(from), slot, channel: Channel::Broadcast, payload }, work)
    }

    pub(super) fn tick(&mut self, work: &mut Work) -> Option<Result<Ending, Abort>> {
        self.age = self.age.saturating_add(1);
        if self.age > SLOW_AFTER && !self.age.is_multiple_of(SLOWER) {
            return None;
        }
        let ending = self.feed(Input::Tick, work);
        self.look_who_is_silent();
        ending
    }

    pub(super) fn look_who_is_silent(&mut self) {
        self.silent =
            self.ceremony.silent().into_iter().map(PartyId::get).filter(|node| *node != self.local.get()).collect();
    }

    /// Whether it has run for so long without this node's signature that it is given up.
    pub(super) const fn is_hopeless(&self) -> bool {
        self.age >= GIVE_UP && !self.signed
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
        let message = Message::Ceremony { id: self.id, part, payload };
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
    pub(super) fn epilogue(&self) -> Vec<Bytes> {
        self.ceremony.epilogue()
    }

    /// Its state.
    pub(super) fn report(&self) -> CeremonyReport {
        let (done, of) = self.progress;
        CeremonyReport { awaits: self.ceremony.awaits(), ..self.report_as(CeremonyState::Running { done, of }) }
    }

    pub(super) fn report_as(&self, state: CeremonyState) -> CeremonyReport {
        let change = &self.subject.request.change;
        let subject = if self.ceremony.evidence().is_empty() { Vec::new() } else { self.subject.encode() };
        let evidence = self.ceremony.evidence().iter().map(|evidence| EvidenceReport {
            node: evidence.culprit().get(),
            misbehaviour: format!("{} ({})", evidence, evidence.name()),
            evidence: bundle(&subject, &evidence.encode()),
        });
        CeremonyReport {
            id: self.id,
            key: change.key().clone(),
            version: self.subject.version,
            epoch: self.subject.epoch,
            aim: change.aim(),
            state,
            evidence: evidence.collect(),
            silent: self.silent.clone(),
            awaits: "",
        }
    }

    /// Reports its state if that has changed.
    pub(super) fn tell(&mut self, work: &mut Work) {
        let (done, of) = self.progress;
        let now = (done, of, self.ceremony.evidence().len(), self.silent.len());
        if self.told != Some(now) {
            self.told = Some(now);
            work.effects.push(CustodyEffect::Report(self.report()));
        }
    }
}
