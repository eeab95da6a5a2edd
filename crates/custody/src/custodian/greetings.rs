//! Messages between custodians, and greetings: what nodes remember of each other's stores.

use std::collections::BTreeMap;

use bytes::Bytes;
use theta_names::NodeId;

use super::message::{Hello, Id, Message, Part};
use super::work::{Record, Work};
use super::{Custodian, CustodyEffect};
use crate::CustodyError;
use crate::request::To;

/// The number of ticks between greetings.
pub(super) const GREET: u64 = 8;
/// The least number of peers that are greeted at once, if there are more than that. Among very many, as many are greeted as it takes to greet each once
/// in [`ROUND`] turns.
const GREETED: usize = 12;
const ROUND: usize = 8;
/// The number of ticks between records of how many commits peers' stores have made.
const WRITE_SEEN: u64 = 40;
/// The most greetings of one peer, and confirmations of its store, that are examined between two of this node's: an honest peer sends one, and one for
/// each connection.
const MOST_GREETINGS: usize = 64;

/// How many greetings of each peer were examined since this node's last ones.
#[derive(Default)]
pub(super) struct Greetings(BTreeMap<NodeId, usize>);

impl Greetings {
    /// Whether another greeting of a peer is to be examined, which reads the store.
    fn may_meet(&mut self, peer: NodeId) -> bool {
        let greeted = self.0.entry(peer).or_default();
        *greeted += 1;
        *greeted <= MOST_GREETINGS
    }
}

impl Custodian {
    pub(super) fn receive(&mut self, from: NodeId, bytes: &Bytes, work: &mut Work) -> Result<(), CustodyError> {
        if from == self.local {
            return Ok(());
        }
        if !self.group.nodes.contains(&from) {
            // A node that was away does not know all members: what they show of the ledger proves itself.
            if let Ok(Message::Ledger(bytes)) = Message::decode(bytes) {
                self.receive_ledger(from, &bytes, work);
            }
            return Ok(());
        }
        // A message that does not decode is ignored: it harms nobody but its sender.
        match Message::decode(bytes) {
            Err(_) => Ok(()),
            Ok(Message::Ceremony { id, part, payload }) => self.hear(from, id, part, payload, work),
            Ok(Message::Hello(hello)) if self.greetings.may_meet(from) => self.witness(from, &hello, work),
            Ok(Message::Hello(_)) => Ok(()),
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
                if self.greetings.may_meet(from) && self.witnesses.confirmed(from, &claim, &now) {
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

    fn hear(
        &mut self,
        from: NodeId,
        plan: Id,
        part: Part,
        payload: Bytes,
        work: &mut Work,
    ) -> Result<(), CustodyError> {
        let Some(id) = self.plans.get(&plan).copied() else {
            self.early.keep(from, (plan, part, payload), self.ticks);
            return Ok(());
        };
        if let Some(running) = self.running.get_mut(&id) {
            let ending = running.receive(from, part, payload, work);
            self.end_if(&id, ending, work);
            return Ok(());
        }
        if self.ended.contains_key(&id) {
            return self.help(from, (&id, plan), (part, &payload), work);
        }
        Ok(())
    }

    /// Greets a peer with what it needs to detect whether one of the two stores went back.
    pub(super) fn greet(&self, peer: NodeId, work: &mut Work) {
        let (incarnation, (remembered, fork)) = (self.store.incarnation(), self.witnesses.of(peer));
        work.send(To::One(peer), &Message::Hello(Hello { incarnation, remembered, fork }));
    }

    pub(super) fn tick_greetings(&mut self, work: &mut Work) {
        self.write_down_seen(self.ticks.is_multiple_of(WRITE_SEEN), work);
        if self.ticks.is_multiple_of(GREET) {
            self.greetings = Greetings::default();
            self.due().into_iter().for_each(|peer| self.greet(peer, work));
        }
    }

    /// The peers whose turn it is to be greeted. Each node begins with those after itself, so that not all greet the same.
    fn due(&self) -> Vec<NodeId> {
        let (mut after, before): (Vec<NodeId>, Vec<NodeId>) = self.others().partition(|peer| *peer > self.local);
        after.extend(before);
        let count = GREETED.max(after.len().div_ceil(ROUND));
        let turn = usize::try_from(self.ticks / GREET).unwrap_or(0);
        let first = turn.saturating_mul(count).checked_rem(after.len()).unwrap_or(0);
        after.rotate_left(first);
        after.truncate(count);
        after
    }

    /// Records what was seen of peers: openings and forks at once, new commits only if `all`.
    pub(super) fn write_down_seen(&mut self, all: bool, work: &mut Work) {
        let seen = self.witnesses.unwritten(all);
        work.records.extend(seen.into_iter().map(|(peer, seen)| Record::Seen(peer.get(), seen)));
        let contradictions = self.witnesses.unwritten_contradictions().into_iter();
        work.records.extend(contradictions.map(|(peer, claim)| Record::Contradicted(peer.get(), claim)));
    }
}
