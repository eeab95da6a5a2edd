//! The chain beside the nodes: their hosts order what nodes claim, and bring it to them. It may stand still, and show some nodes another
//! order than the others.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use theta_authority::{Gate, Request};
use theta_custody::{Races, SlotRace, claim_of};
use theta_names::NodeId;
use theta_statements::{Digest, UnixTime};

use super::{Event, GHOST, World};
use crate::chance::below;
use crate::node::Slots;
use crate::scenario::Sabotage;
use crate::watch::{Invariant, Observation, Violation};

/// What nodes want ordered, or what has been.
type Claims = Vec<(NodeId, Bytes)>;

/// What a node has read of its order.
struct Reading {
    races: Races,
    blocks: usize,
}

pub(super) struct Order {
    k: u16,
    forked: BTreeSet<u16>,
    waiting: Claims,
    /// The blocks, and those that hosts of the fork show.
    blocks: [Vec<Claims>; 2],
    /// Lost when a node crashes: its host brings all of it again.
    read: BTreeMap<u16, Reading>,
    /// Which nodes wait for the order before they decide about a request.
    undecided: BTreeSet<(u16, usize)>,
    /// What is first for each slot of a key in an order that does not fork, and the node that has read so first.
    winners: BTreeMap<(String, u64), (u16, Digest)>,
    /// The slot and message of each request.
    races: BTreeMap<usize, SlotRace>,
}

/// What the order says of a request.
enum Place {
    First,
    Later,
    Unknown,
}

impl Order {
    pub(super) const fn new(k: u16, forked: BTreeSet<u16>) -> Self {
        Self {
            k,
            forked,
            waiting: Vec::new(),
            blocks: [Vec::new(), Vec::new()],
            read: BTreeMap::new(),
            undecided: BTreeSet::new(),
            winners: BTreeMap::new(),
            races: BTreeMap::new(),
        }
    }

    fn has_fork(&self) -> bool {
        !self.forked.is_empty()
    }

    /// A node loses what its memory had.
    pub(super) fn crash(&mut self, node: u16) {
        self.read.remove(&node);
        self.undecided.retain(|(other, _)| *other != node);
    }

    /// Puts what waits into a block, in the fork the other way round. Returns whether there is one.
    fn make_block(&mut self) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let block = core::mem::take(&mut self.waiting);
        let [straight, forked] = &mut self.blocks;
        forked.push(block.iter().rev().cloned().collect());
        straight.push(block);
        true
    }

    fn reading(&mut self, node: u16) -> &mut Reading {
        let k = self.k;
        self.read.entry(node).or_insert_with(|| Reading { races: Races::new(k), blocks: 0 })
    }

    /// Gives a node all blocks that it has not read. Returns the requests that waited for them.
    fn bring(&mut self, node: u16) -> Vec<usize> {
        let view = usize::from(self.forked.contains(&node));
        let blocks: Vec<Claims> = {
            let from = self.reading(node).blocks;
            self.blocks.get(view).map(|blocks| blocks.iter().skip(from).cloned().collect()).unwrap_or_default()
        };
        let reading = self.reading(node);
        for block in &blocks {
            reading.blocks += 1;
            for (from, claim) in block {
                reading.races.take(*from, claim);
            }
        }
        let waited: Vec<usize> =
            self.undecided.iter().filter(|(other, _)| *other == node).map(|(_, request)| *request).collect();
        self.undecided.retain(|(other, _)| *other != node);
        waited
    }

    /// Where a request's message stands in its races, at a node; the node claims what it has not claimed.
    fn place(&mut self, node: NodeId, races: &[SlotRace]) -> Place {
        let mut place = Place::First;
        for race in races {
            let reading = self.reading(node.get());
            if !reading.races.has_claimed(node, race) {
                let claim = claim_of(race);
                if !self.waiting.iter().any(|waiting| *waiting == (node, claim.clone())) {
                    self.waiting.push((node, claim));
                }
            }
            match self.reading(node.get()).races.winner(race) {
                Some(winner) if winner == race.digest => {}
                Some(_) => return Place::Later,
                None => place = Place::Unknown,
            }
        }
        place
    }
}

impl World<'_> {
    /// The chain makes a block, if it does not stand still, and the hosts bring it to the nodes.
    pub(super) fn block(&mut self) {
        let Some(chain) = &self.scenario.chain else { return };
        self.at(self.now + chain.interval, Event::Block);
        let stands = chain.halt.contains(&self.now);
        if stands || !self.order.as_mut().is_some_and(Order::make_block) {
            return;
        }
        let late = self.scenario.weather.delay;
        for node in 1..=self.scenario.last() {
            let time = self.now + 1 + below(&mut self.rng, late);
            self.at(time, Event::Order(node));
        }
    }

    /// A host brings its node what was ordered. Clients whose requests waited for it are decided about now.
    pub(super) fn bring(&mut self, node: u16) -> Result<(), Violation> {
        if self.awake(node).is_none() {
            // It comes with the next block, or when the node is asked.
            return Ok(());
        }
        let waited = self.order.as_mut().map(|order| order.bring(node)).unwrap_or_default();
        for request in waited {
            self.at(self.now, Event::Ask { node, request });
        }
        self.note_winners(node)
    }

    /// Records what is first as this node has read; it must be first at all, if the order does not fork.
    fn note_winners(&mut self, node: u16) -> Result<(), Violation> {
        let Some(order) = self.order.as_mut().filter(|order| !order.has_fork()) else { return Ok(()) };
        let Some(reading) = order.read.get(&node) else { return Ok(()) };
        for race in order.races.values() {
            let Some(digest) = reading.races.winner(race) else { continue };
            let (first, winner) = *order.winners.entry((race.key.clone(), race.slot)).or_insert((node, digest));
            if winner != digest {
                let text = format!("nodes {first} and {node} read one order, and slot {} has two messages", race.slot);
                return self.watch.violated(Invariant::Agreement, text);
            }
        }
        Ok(())
    }

    /// Whether a node may decide about a request now: the order has said that its message is first for its slots, or has nothing to say. Liars
    /// wait for nothing.
    pub(super) fn may_decide(
        &mut self,
        number: u16,
        request: usize,
        asked: &Request,
        now: UnixTime,
    ) -> Result<bool, Violation> {
        if self.order.is_none() || number >= GHOST {
            return Ok(true);
        }
        if !self.is_honest(number) {
            self.claim_falsely(number, request, asked, now);
            return Ok(true);
        }
        let Some(wanted) = self.wanted.get(request) else { return Ok(true) };
        let presented = wanted.presented(number);
        let Some(life) = self.nodes.get(&number).and_then(|node| node.life.as_ref()) else { return Ok(true) };
        let gate: &Gate<Slots> = &life.gate;
        let races = gate.races(&presented, asked, now).map_or_else(Vec::new, |(_, races)| races);
        let (Some(order), Ok(node)) = (&mut self.order, NodeId::try_from(number)) else { return Ok(true) };
        if races.is_empty() {
            return Ok(true);
        }
        // A node that has begun again is brought what it has forgotten before it is asked.
        order.bring(number);
        order.races.extend(races.iter().map(|race| (request, race.clone())));
        let place = order.place(node, &races);
        self.note_winners(number)?;
        match place {
            _ if self.bug(number) == Some(Sabotage::NoOrder) => Ok(true),
            Place::First => Ok(true),
            Place::Later => {
                self.watch.observations.note(Observation::RaceLost);
                self.refused.insert((request, number), true);
                Ok(false)
            }
            Place::Unknown => {
                if let Some(order) = &mut self.order {
                    order.undecided.insert((number, request));
                }
                self.watch.observations.note(Observation::RaceWaited);
                Ok(false)
            }
        }
    }

    /// The honest nodes that have to promise the slot of a request because it is first in an order that is the same for all.
    pub(super) fn must_promise(&self, request: usize) -> Vec<u16> {
        let Some(order) = self.order.as_ref().filter(|order| !order.has_fork()) else { return Vec::new() };
        let Some(asked) = self.scenario.requests.get(request) else { return Vec::new() };
        let Some(held) = self.scenario.keys.get(asked.key).filter(|held| held.slots && !held.rated) else {
            return Vec::new();
        };
        let is_first = order.races.get(&request).is_some_and(|race| {
            let winner = order.winners.get(&(race.key.clone(), race.slot));
            winner.is_some_and(|(_, digest)| *digest == race.digest)
        });
        if !is_first {
            return Vec::new();
        }
        let may = |node: &u16| !held.refused_by.contains(node) && (!held.consents || asked.is_consented(*node));
        let knows = |node: &u16| !self.watch.stores.is_set_back(*node) && !self.watch.stores.was_confirmed(*node);
        self.scenario.honest().filter(|node| may(node) && knows(node)).collect()
    }

    /// The claims of a liar: for everything that it is asked, though its first claim of a slot alone counts.
    fn claim_falsely(&mut self, number: u16, request: usize, asked: &Request, now: UnixTime) {
        let (Some(order), Ok(node)) = (&mut self.order, NodeId::try_from(number)) else { return };
        let Some(wanted) = self.wanted.get(request) else { return };
        // By the policy of an honest node, as the liar's own refuses nothing.
        let honest = self.scenario.honest().find_map(|honest| self.nodes.get(&honest)?.life.as_ref());
        let Some(life) = honest else { return };
        let races = life.gate.races(&wanted.presented(number), asked, now).map_or_else(Vec::new, |(_, races)| races);
        for race in races {
            let garbage = SlotRace { digest: Digest([0xee; 32]), ..race.clone() };
            for race in [garbage, race] {
                order.waiting.push((node, claim_of(&race)));
            }
            order.waiting.push((node, Bytes::from_static(b"no claim")));
        }
    }
}
