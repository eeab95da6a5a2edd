//! Messages beside ceremonies: which ceremonies nodes have, their subjects, and what nodes remember of each other's
//! stores.
//!
//! A node that was not asked joins a ceremony when enough of the key's holders have it (`gossip/vouchers.rs`): one of
//! these is honest, and has decided on it by its own rules. A ceremony's id is a hash of its subject, so that all of
//! them mean the same. The subject is asked for when k nodes of any kind have the ceremony (`Roster::k`).

mod vouchers;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use theta_ceremonies::Memory;
use theta_names::NodeId;

use super::message::{Hello, Id, MOST_TOLD, Message, Part};
use super::work::{Record, Work};
use super::{Custodian, CustodyEffect};
use crate::ceremony::{Subject, longest};
use crate::request::{CeremonyState, To};
use crate::{CeremonyError, CustodyError};

/// The number of ticks between greetings.
pub(super) const GREET: u64 = 8;
/// The number of ticks between records of how many commits peers' stores have made.
const WRITE_SEEN: u64 = 40;
/// The number of ticks after which what a peer has told no longer counts.
const TICKS: u64 = 240;
/// The most unknown ceremonies of one peer that are remembered.
const MOST_LISTED: usize = 64;
/// The most questions of one peer that are answered between two greetings: twice the number of ceremonies in one.
const MOST_ANSWERS: usize = 2 * MOST_TOLD;
/// The most greetings of one peer that are examined between two of this node's: an honest peer sends one, and one for
/// each connection.
const MOST_GREETINGS: usize = 64;
/// The most ceremonies that are remembered as none of this node's.
const MOST_REFUSED: usize = 1024;

/// What peers have told of ceremonies that this node does not have.
pub(super) struct Gossip {
    /// By peer and ceremony: whether it ended at the peer, and when the peer told it.
    listed: BTreeMap<NodeId, BTreeMap<Id, (bool, u64)>>,
    /// The nodes that were asked for the subject of a ceremony, when, and whether the answer is still to come. Other
    /// answers are dropped.
    asked: BTreeMap<(NodeId, Id), (u64, bool)>,
    /// How many questions of each peer were answered since the last greetings; `greeted` counts the greetings that were
    /// examined.
    answered: BTreeMap<NodeId, usize>,
    greeted: BTreeMap<NodeId, usize>,
    /// Ceremonies that this node does not join.
    refused: BTreeSet<Id>,
    /// Whether the store was restored from a backup: then the node may have taken part in ceremonies that it does not
    /// know.
    restored: bool,
    /// The ended ceremony with which the next greeting's list begins.
    next: Option<Id>,
}

impl Gossip {
    pub(super) const fn new(restored: bool) -> Self {
        Self {
            listed: BTreeMap::new(),
            asked: BTreeMap::new(),
            answered: BTreeMap::new(),
            greeted: BTreeMap::new(),
            refused: BTreeSet::new(),
            restored,
            next: None,
        }
    }

    fn note(&mut self, peer: NodeId, id: Id, over: bool, now: u64) {
        let listed = self.listed.entry(peer).or_default();
        if self.refused.contains(&id) || (listed.len() >= MOST_LISTED && !listed.contains_key(&id)) {
            return;
        }
        let known = listed.get(&id).is_some_and(|(over, _)| *over);
        listed.insert(id, (over || known, now));
    }

    fn tellers(&self, id: &Id, over: bool) -> impl Iterator<Item = NodeId> {
        let of_peer = move |(peer, listed): (&NodeId, &BTreeMap<Id, (bool, u64)>)| {
            listed.get(id).is_some_and(|(ended, _)| *ended || !over).then_some(*peer)
        };
        self.listed.iter().filter_map(of_peer)
    }

    /// Whether another question of a peer is to be answered.
    fn may_answer(&mut self, peer: NodeId) -> bool {
        let answered = self.answered.entry(peer).or_default();
        *answered += 1;
        *answered <= MOST_ANSWERS
    }

    /// Whether another greeting of a peer is to be examined, which reads the store.
    fn may_meet(&mut self, peer: NodeId) -> bool {
        let greeted = self.greeted.entry(peer).or_default();
        *greeted += 1;
        *greeted <= MOST_GREETINGS
    }

    /// No longer counts a peer as one that has a ceremony: it did not give the subject.
    fn disbelieve(&mut self, peer: NodeId, id: &Id) {
        if let Some(listed) = self.listed.get_mut(&peer) {
            listed.remove(id);
        }
    }

    /// Whether the peer's answer is awaited; from now on it is not.
    fn takes_answer(&mut self, peer: NodeId, id: Id) -> bool {
        self.asked.get_mut(&(peer, id)).is_some_and(|(_, waits)| core::mem::take(waits))
    }

    fn forget(&mut self, id: &Id) {
        self.listed.values_mut().for_each(|listed| {
            listed.remove(id);
        });
    }

    fn refuse(&mut self, id: Id) {
        self.forget(&id);
        if self.refused.len() >= MOST_REFUSED {
            self.refused.pop_first();
        }
        self.refused.insert(id);
    }
}

impl Custodian {
    /// Whether this node may have made statements in a ceremony that it does not remember. Fewer than k peers are not
    /// believed: they could keep any node from voting, and so the others from a quorum. If they are right, the machine
    /// sees it from this node's own statements.
    pub(super) fn memory_of(&self, id: &Id) -> Memory {
        let contradicted = self.witnesses.contradicting() >= usize::from(self.group.k);
        let forgetful = self.gossip.restored || contradicted;
        if forgetful && self.gossip.tellers(id, false).next().is_some() { Memory::Lost } else { Memory::Kept }
    }

    pub(super) fn receive(&mut self, from: NodeId, bytes: &Bytes, work: &mut Work) -> Result<(), CustodyError> {
        if from == self.local || !self.group.nodes.contains(&from) {
            return Ok(());
        }
        // A message that does not decode is ignored: it harms nobody but its sender.
        match Message::decode(bytes) {
            Err(_) => Ok(()),
            Ok(Message::Ceremony { id, part, payload }) => self.hear(from, id, part, payload, work),
            Ok(Message::Hello(hello)) if self.gossip.may_meet(from) => self.meet(from, &hello, work),
            Ok(Message::Hello(_)) => Ok(()),
            Ok(Message::Ask(id)) if self.gossip.may_answer(from) => self.present(from, &id, work),
            Ok(Message::Ask(_)) => Ok(()),
            // An answer is not decoded if it was not asked for, or is longer than any subject.
            Ok(Message::Present(id, subject)) if self.gossip.takes_answer(from, id) => {
                self.consider(from, &id, &subject, work)
            }
            Ok(Message::Present(..)) => Ok(()),
            Ok(Message::Lineage(lineage)) => {
                let proved = self.witnesses.prove(from, &lineage);
                Self::tell_of(from, proved.err().flatten(), work);
                Ok(())
            }
            Ok(Message::Ledger(bytes)) => {
                self.receive_ledger(from, &bytes, work);
                Ok(())
            }
            Ok(Message::Meant { claim, now }) => {
                if self.witnesses.confirmed(from, &claim, &now) {
                    work.effects.push(CustodyEffect::StoreConfirmed { node: from });
                    self.greet(from, work);
                }
                Ok(())
            }
            Ok(Message::Now(now)) => {
                let seen = self.witnesses.observe(from, &now);
                self.witnesses.hasten();
                Self::tell_of(from, seen.err().flatten(), work);
                Ok(())
            }
        }
    }

    fn hear(&mut self, from: NodeId, id: Id, part: Part, payload: Bytes, work: &mut Work) -> Result<(), CustodyError> {
        if let Some(running) = self.running.get_mut(&id) {
            let ending = running.receive(from, part, payload, work);
            self.end_if(&id, ending, work);
            return Ok(());
        }
        if self.ended.contains_key(&id) {
            return self.help(from, &id, (part, &payload), work);
        }
        self.gossip.note(from, id, false, self.ticks);
        self.early.keep(from, (id, part, payload), self.ticks);
        self.inquire(&id, work);
        Ok(())
    }

    fn present(&self, to: NodeId, id: &Id, work: &mut Work) -> Result<(), CustodyError> {
        let subject = match self.running.get(id) {
            Some(running) => Some(running.subject.encode()),
            // The journal has the subject behind a byte for the memory.
            None if self.ended.contains_key(id) => {
                let ceremony = self.store.ceremony(id)?;
                ceremony.and_then(|ceremony| ceremony.subject.split_first().map(|(_, subject)| subject.to_vec()))
            }
            None => None,
        };
        if let Some(subject) = subject {
            work.send(To::One(to), &Message::Present(*id, subject.into()));
        }
        Ok(())
    }

    /// Greets a peer with what it needs to detect whether one of the two stores went back.
    pub(super) fn greet(&mut self, peer: NodeId, work: &mut Work) {
        let (incarnation, (remembered, fork)) = (self.store.incarnation(), self.witnesses.of(peer));
        let running = self.running.keys().take(MOST_TOLD).map(|id| (*id, false));
        let mut ceremonies: Vec<_> = running.collect();
        let ended = |(id, ended): (&Id, &super::Ended)| ended.epilogue.then_some((*id, true));
        let after: Vec<_> = match self.gossip.next {
            Some(next) => self.ended.range(next..).filter_map(ended).collect(),
            None => self.ended.iter().filter_map(ended).collect(),
        };
        ceremonies.extend(after.into_iter().take(MOST_TOLD.saturating_sub(ceremonies.len())));
        work.send(To::One(peer), &Message::Hello(Hello { incarnation, remembered, fork, ceremonies }));
    }

    pub(super) fn tick_gossip(&mut self, work: &mut Work) {
        self.write_down_seen(self.ticks.is_multiple_of(WRITE_SEEN), work);
        if !self.ticks.is_multiple_of(GREET) {
            return;
        }
        let now = self.ticks;
        self.gossip.answered.clear();
        self.gossip.greeted.clear();
        for listed in self.gossip.listed.values_mut() {
            listed.retain(|_, (_, told)| now.saturating_sub(*told) < TICKS);
        }
        self.gossip.asked.retain(|_, (asked, _)| now.saturating_sub(*asked) < TICKS);
        self.others().collect::<Vec<_>>().into_iter().for_each(|peer| self.greet(peer, work));
        // If there are more than fit into one greeting, the next greeting has others.
        let room = MOST_TOLD.saturating_sub(self.running.len());
        let from = self.gossip.next.unwrap_or_default();
        self.gossip.next = self.ended.range(from..).filter(|(_, ended)| ended.epilogue).nth(room).map(|(id, _)| *id);
    }

    fn meet(&mut self, from: NodeId, hello: &Hello, work: &mut Work) -> Result<(), CustodyError> {
        self.witness(from, hello, work)?;
        for (id, over) in &hello.ceremonies {
            let given_up = |ended: &super::Ended| *over && matches!(ended.report.state, CeremonyState::Failed(_));
            let wanted = !self.running.contains_key(id) && self.ended.get(id).is_none_or(given_up);
            if wanted {
                self.gossip.note(from, *id, *over, self.ticks);
                self.inquire(id, work);
            }
        }
        Ok(())
    }

    /// Records what was seen of peers: openings and forks at once, new commits only if `all`.
    pub(super) fn write_down_seen(&mut self, all: bool, work: &mut Work) {
        let seen = self.witnesses.unwritten(all);
        work.records.extend(seen.into_iter().map(|(peer, seen)| Record::Seen(peer.get(), seen)));
        let contradictions = self.witnesses.unwritten_contradictions().into_iter();
        work.records.extend(contradictions.map(|(peer, claim)| Record::Contradicted(peer.get(), claim)));
    }

    /// Asks for the subject of a ceremony if enough nodes have it.
    fn inquire(&mut self, id: &Id, work: &mut Work) {
        if self.may_join(id).is_none() {
            return;
        }
        for peer in self.gossip.tellers(id, false).collect::<Vec<_>>() {
            let last = self.gossip.asked.get(&(peer, *id));
            if last.is_none_or(|(last, _)| self.ticks >= last.saturating_add(GREET)) {
                self.gossip.asked.insert((peer, *id), (self.ticks, true));
                work.send(To::One(peer), &Message::Ask(*id));
            }
        }
    }

    /// If enough nodes have the ceremony to ask for its subject, what this node remembers of it.
    fn may_join(&self, id: &Id) -> Option<Memory> {
        let k = usize::from(self.group.k);
        if self.running.contains_key(id) {
            return None;
        }
        let Some(ended) = self.ended.get(id) else {
            return (self.gossip.tellers(id, false).count() >= k).then(|| self.memory_of(id));
        };
        // A ceremony that this node gave up succeeded elsewhere.
        let given_up = matches!(ended.report.state, CeremonyState::Failed(_));
        (given_up && self.gossip.tellers(id, true).count() >= k).then_some(Memory::Lost)
    }

    /// Joins the presented ceremony if enough of the nodes that count have it.
    fn consider(&mut self, from: NodeId, id: &Id, subject: &[u8], work: &mut Work) -> Result<(), CustodyError> {
        let Some(memory) = self.may_join(id) else { return Ok(()) };
        let short = subject.len() <= longest(self.group.nodes.len());
        let subject = if short { Subject::decode(subject).ok() } else { None };
        let planned = subject.and_then(|subject| {
            let plan = subject.plan(&self.group).ok()?;
            Some((subject, plan)).filter(|(_, plan)| plan.id().as_bytes() == id)
        });
        let Some((subject, plan)) = planned else {
            self.gossip.disbelieve(from, id);
            return Ok(());
        };
        if !subject.nodes().contains(&self.local) || !self.admits(&subject)? {
            self.gossip.refuse(*id);
            self.early.take(id);
            return Ok(());
        }
        let given_up = self.ended.contains_key(id);
        let told: BTreeSet<NodeId> = self.gossip.tellers(id, given_up).collect();
        if !self.is_vouched_for(&subject, &told) {
            return Ok(());
        }
        if let Some(rival) = self.rival(&subject) {
            // So many have gone on to a later epoch that the ceremony of this one has succeeded among them.
            let overtaken = subject.epoch > rival.subject.epoch;
            if !overtaken {
                return Ok(());
            }
            let why = CeremonyState::Failed("others have come further: this node joins them there".to_owned());
            let rival = rival.id;
            self.close(&rival, why, Vec::new(), work);
        }
        match self.launch(subject, plan, Some(memory), work) {
            Ok(_) => self.gossip.forget(id),
            Err(CeremonyError::StoreFailed(_)) => {}
            Err(_) => self.gossip.refuse(*id),
        }
        Ok(())
    }
}
