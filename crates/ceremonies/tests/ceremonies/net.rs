//! A small network, whose parties can be killed between any two steps and restarted from their journals.
//!
//! Messages are delivered in a seeded order one at a time.

use core::convert::Infallible;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use theta_ceremonies::{CeremonyEvidence, Input};
use theta_ceremonies::{ITEMS, Kind, Memory, StatementSlot, statements_of};
use theta_rounds::Machine;
use theta_rounds::simulator::{SimRng, below};
use theta_rounds::{Channel, Effect, PartyId, Recipient, Slot};

use crate::support::test_rng;

/// A ceremony that a [`Net`] runs.
pub(crate) trait Subject: Clone {
    type Machine: Machine<Output = Self::Outcome, Misbehaviour = CeremonyEvidence, Ask = Infallible, Supply = Infallible>;
    type Outcome;

    fn parties(&self) -> Vec<PartyId>;
    /// Each life has its own secret: a lost one does not come back.
    fn machine(&self, party: PartyId, memory: Memory, life: u8) -> Self::Machine;
    fn revision(machine: &Self::Machine) -> u64;
    /// Panics unless the ceremony of these parties, none of which lied, ended well. Parties in `forgot` have lost their
    /// journals.
    fn check(&self, outcomes: &BTreeMap<PartyId, Self::Outcome>, forgot: &BTreeSet<PartyId>);
}

/// What a liar sends instead of a message; nothing if it is empty.
pub(crate) type Lie = Box<dyn FnMut(&[u8]) -> Vec<u8>>;
type Packet = (PartyId, PartyId, Slot, Bytes);

pub(crate) struct Node<C: Subject> {
    pub(crate) machine: C::Machine,
    /// The inputs that changed what the party knows: what a store would keep.
    pub(crate) journal: Vec<Input>,
    pub(crate) outcome: Option<C::Outcome>,
    /// Every statement that it ever signed, by slot: an honest party never has two.
    said: BTreeMap<StatementSlot, Bytes>,
    pub(crate) steps: usize,
    /// How often it has lost its journal.
    life: u8,
    lie: Option<Lie>,
}

pub(crate) struct Net<C: Subject> {
    pub(crate) subject: C,
    pub(crate) nodes: BTreeMap<PartyId, Node<C>>,
    pub(crate) packets: Vec<Packet>,
    pub(crate) rng: SimRng,
}

impl<C: Subject> Net<C> {
    pub(crate) fn new(subject: C, seed: u64) -> Self {
        Self::with_liars(subject, seed, Vec::new())
    }

    pub(crate) fn with_liars(subject: C, seed: u64, liars: Vec<(PartyId, Lie)>) -> Self {
        let mut liars: BTreeMap<_, _> = liars.into_iter().collect();
        let parties = subject.parties();
        let node = |id: &PartyId| {
            let machine = subject.machine(*id, Memory::Kept, 0);
            let (journal, said, lie) = (Vec::new(), BTreeMap::new(), liars.remove(id));
            (*id, Node { machine, journal, outcome: None, said, steps: 0, life: 0, lie })
        };
        let nodes = parties.iter().map(node).collect();
        let mut net = Self { subject, nodes, packets: Vec::new(), rng: test_rng(seed) };
        parties.into_iter().for_each(|id| net.step(id, Input::Start));
        net
    }

    pub(crate) fn node(&mut self, id: PartyId) -> &mut Node<C> {
        self.nodes.get_mut(&id).unwrap()
    }

    fn is_liar(&self, id: PartyId) -> bool {
        self.nodes[&id].lie.is_some()
    }

    pub(crate) fn step(&mut self, id: PartyId, input: Input) {
        let everyone: Vec<PartyId> = self.nodes.keys().copied().collect();
        let node = self.node(id);
        let before = C::revision(&node.machine);
        let effects = node.machine.handle(input.clone(), &mut test_rng(0));
        node.steps += 1;
        if C::revision(&node.machine) != before {
            node.journal.push(input);
        }
        for effect in effects {
            match effect {
                Effect::Send { to, slot, payload, .. } => {
                    let Some(payload) = self.leaves(id, slot, payload) else { continue };
                    let reaches =
                        |peer: &PartyId| *peer != id && (to == Recipient::All || to == Recipient::Party(*peer));
                    let packets = everyone.iter().filter(|p| reaches(p)).map(|p| (id, *p, slot, payload.clone()));
                    self.packets.extend(packets);
                }
                Effect::Finished(Ok(outcome)) => self.node(id).outcome = Some(outcome),
                Effect::Ask(nothing) => match nothing {},
                Effect::Finished(Err(abort)) => panic!("{id} gives up: {abort}"),
                Effect::Blame(blame) => {
                    let deserved = self.is_liar(id) || self.is_liar(blame.party);
                    assert!(deserved, "{id} accuses an honest party: {blame}");
                }
            }
        }
    }

    /// The payload that leaves a party. Checks that an honest party signs nothing else in a slot than before, in this
    /// life or an earlier one.
    fn leaves(&mut self, id: PartyId, slot: Slot, payload: Bytes) -> Option<Bytes> {
        let node = self.node(id);
        if let Some(lie) = &mut node.lie {
            let forged = if slot == ITEMS { lie(&payload) } else { payload.to_vec() };
            return Some(Bytes::from(forged)).filter(|forged| !forged.is_empty());
        }
        if slot == ITEMS {
            let own = statements_of(&payload).filter(|statement| statement.author() == id);
            // A party that does not know of its loss announces another key, which harms nobody.
            for statement in own.filter(|statement| statement.slot().kind != Kind::EncryptionKey) {
                let first = node.said.entry(statement.slot()).or_insert_with(|| statement.body().clone());
                assert_eq!(first, statement.body(), "{id} contradicts itself in {:?}", statement.slot());
            }
        }
        Some(payload)
    }

    /// Delivers one packet, or lets time pass; returns whether an honest party still waits.
    pub(crate) fn turn(&mut self) -> bool {
        if self.nodes.values().all(|node| node.outcome.is_some() || node.lie.is_some()) {
            return false;
        }
        if self.packets.is_empty() {
            self.nodes.keys().copied().collect::<Vec<_>>().into_iter().for_each(|id| self.step(id, Input::Tick));
            return true;
        }
        let chosen = usize::try_from(below(&mut self.rng, self.packets.len() as u64)).unwrap();
        let (from, to, slot, payload) = self.packets.swap_remove(chosen);
        self.step(to, Input::Message { from, slot, channel: Channel::Broadcast, payload });
        true
    }

    /// Kills a party and restarts it from its journal; messages on their way to it are lost.
    pub(crate) fn revive(&mut self, id: PartyId) {
        let journal = self.restart(id, Memory::Kept);
        // It sends everything again, to the byte, and the others may receive it again.
        for input in journal {
            self.step(id, input);
        }
    }

    /// Kills a party, and restarts it without its journal and the secret in it.
    pub(crate) fn forget(&mut self, id: PartyId, memory: Memory) {
        self.node(id).life += 1;
        self.restart(id, memory);
    }

    /// Kills a party and restarts it; returns the journal that it had.
    fn restart(&mut self, id: PartyId, memory: Memory) -> Vec<Input> {
        self.packets.retain(|(_, to, _, _)| *to != id);
        let life = self.node(id).life;
        let machine = self.subject.machine(id, memory, life);
        let node = self.node(id);
        (node.machine, node.outcome) = (machine, None);
        std::mem::take(&mut node.journal)
    }

    /// Goes on to the end and checks it.
    pub(crate) fn finish(&mut self) {
        let mut turns = 0;
        while self.turn() {
            turns += 1;
            assert!(turns < 100_000, "it does not end");
        }
        let honest = self.nodes.iter_mut().filter(|(_, node)| node.lie.is_none());
        let outcomes: BTreeMap<_, _> = honest.map(|(id, node)| (*id, node.outcome.take().unwrap())).collect();
        let forgot = self.nodes.iter().filter(|(_, node)| node.life > 0).map(|(id, _)| *id).collect();
        self.subject.check(&outcomes, &forgot);
        for (id, outcome) in outcomes {
            self.node(id).outcome = Some(outcome);
        }
    }
}

/// The whole ceremony, once for each step at which a party can be killed.
pub(crate) fn die_at_every_step<C: Subject>(unlucky: PartyId, start: impl Fn() -> Net<C>) {
    let mut undisturbed = start();
    undisturbed.finish();
    let steps = undisturbed.node(unlucky).steps;
    assert!(steps > 8, "{steps} steps");
    for last in 1..=steps {
        let mut net = start();
        while net.node(unlucky).steps < last && net.turn() {}
        net.revive(unlucky);
        net.finish();
    }
}

/// Kills all parties again and again, at random; returns how often.
pub(crate) fn die_at_random<C: Subject>(mut net: Net<C>) -> u32 {
    let parties = net.subject.parties();
    let mut deaths = 0;
    while net.turn() {
        if deaths < 12 && below(&mut net.rng, 6) == 0 {
            let unlucky = parties[usize::try_from(below(&mut net.rng, parties.len() as u64)).unwrap()];
            net.revive(unlucky);
            deaths += 1;
        }
    }
    net.finish();
    deaths
}

/// What a party sends when its journal is replayed.
pub(crate) fn replay<C: Subject>(subject: &C, id: PartyId, journal: &[Input]) -> Vec<Bytes> {
    let mut machine = subject.machine(id, Memory::Kept, 0);
    let mut sent = Vec::new();
    for (position, input) in journal.iter().enumerate() {
        for effect in machine.handle(input.clone(), &mut test_rng(position as u64)) {
            if let Effect::Send { payload, .. } = effect {
                sent.push(payload);
            }
        }
    }
    assert!(machine.is_finished());
    sent
}
