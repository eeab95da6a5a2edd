//! Parties that die, forget, and come late.
//!
//! A small network of its own: messages are delivered in a seeded order one at a time, so that a party can be killed between
//! any two of them.

use std::sync::Arc;

use bytes::Bytes;
use theta_groups::Ristretto255;
use theta_protocols::Machine;
use theta_protocols::ceremony::{Conclusion, ITEMS, KeyCeremony, KeyOutcome, Memory, public_digest, rewrite};
use theta_rounds::simulator::{SimRng, below};
use theta_rounds::{Channel, Effect, Input, PartyId, Recipient, Slot};
use theta_schemes::coins::cks05::Cks05;

use crate::support::{Setting, parties, party, test_rng};

type Coin = Cks05<Ristretto255>;
type Packet = (PartyId, PartyId, Slot, Bytes);

struct Node {
    machine: KeyCeremony<Coin>,
    /// The inputs that changed what the party knows: what a store would keep.
    journal: Vec<Input>,
    outcome: Option<KeyOutcome<Coin>>,
    /// Every statement that it ever signed, by slot: one each, whatever happens.
    said: std::collections::BTreeMap<theta_protocols::ceremony::Slot, Bytes>,
    steps: usize,
}

struct Net {
    setting: Setting<Coin>,
    nodes: Vec<(PartyId, Node)>,
    packets: Vec<Packet>,
    rng: SimRng,
}

impl Net {
    fn new(k: u16, n: u16, seed: u64) -> Self {
        let setting = Setting::<Coin>::generate(k, n, seed);
        let nodes = parties(1..=n).into_iter().map(|id| {
            let machine = setting.machine(id, Memory::Kept);
            (id, Node { machine, journal: Vec::new(), outcome: None, said: Default::default(), steps: 0 })
        });
        let nodes = nodes.collect();
        let mut net = Self { setting, nodes, packets: Vec::new(), rng: test_rng(seed) };
        for id in parties(1..=n) {
            net.step(id, Input::Start);
        }
        net
    }

    fn node(&mut self, id: PartyId) -> &mut Node {
        &mut self.nodes.iter_mut().find(|(other, _)| *other == id).unwrap().1
    }

    fn step(&mut self, id: PartyId, input: Input) {
        let everyone: Vec<PartyId> = self.nodes.iter().map(|(id, _)| *id).collect();
        let node = self.node(id);
        let before = node.machine.revision();
        let effects = node.machine.handle(input.clone(), &mut test_rng(0));
        node.steps += 1;
        if node.machine.revision() != before {
            node.journal.push(input);
        }
        let mut packets = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send { to, slot, payload, .. } => {
                    if slot == ITEMS {
                        remember(node, id, &payload);
                    }
                    let reaches =
                        |peer: &PartyId| *peer != id && (to == Recipient::All || to == Recipient::Party(*peer));
                    packets.extend(everyone.iter().filter(|p| reaches(p)).map(|p| (id, *p, slot, payload.clone())));
                }
                Effect::Finished(result) => node.outcome = Some(result.unwrap()),
                Effect::Blame(blame) => panic!("an honest party is accused: {blame}"),
            }
        }
        self.packets.extend(packets);
    }

    /// Delivers one packet, or lets time pass; says whether somebody still waits.
    fn turn(&mut self) -> bool {
        if self.nodes.iter().all(|(_, node)| node.outcome.is_some()) {
            return false;
        }
        if self.packets.is_empty() {
            for id in self.nodes.iter().map(|(id, _)| *id).collect::<Vec<_>>() {
                self.step(id, Input::Tick);
            }
            return true;
        }
        let chosen = usize::try_from(below(&mut self.rng, self.packets.len() as u64)).unwrap();
        let (from, to, slot, payload) = self.packets.swap_remove(chosen);
        self.step(to, Input::Message { from, slot, channel: Channel::Broadcast, payload });
        true
    }

    /// Kills a party and starts it again from its journal; what was on its way to it is lost.
    fn revive(&mut self, id: PartyId) {
        let setting = self.setting.clone();
        self.packets.retain(|(_, to, _, _)| *to != id);
        let node = self.node(id);
        node.machine = setting.machine(id, Memory::Kept);
        node.outcome = None;
        let journal = std::mem::take(&mut node.journal);
        // It says all of it again, to the byte, and the others may hear it again.
        for input in journal {
            self.step(id, input);
        }
    }

    fn finish(&mut self) -> [u8; 32] {
        let mut turns = 0;
        while self.turn() {
            turns += 1;
            assert!(turns < 100_000, "it does not end");
        }
        let mut digests = self.nodes.iter().map(|(_, node)| {
            let Conclusion::Activated(activated) = &node.outcome.as_ref().unwrap().conclusion else {
                panic!("called off")
            };
            assert!(activated.public.matches(activated.share.as_ref().unwrap()));
            public_digest(&activated.public)
        });
        let first = digests.next().unwrap();
        assert!(digests.all(|digest| digest == first));
        first
    }
}

/// Whatever a party says, it has said nothing else in that slot, in this life or an earlier one.
fn remember(node: &mut Node, id: PartyId, payload: &[u8]) {
    rewrite(payload, |statement| {
        if statement.author() == id {
            let first = node.said.entry(statement.slot()).or_insert_with(|| statement.body().clone());
            assert_eq!(first, statement.body(), "{id} contradicts itself in {:?}", statement.slot());
        }
        Vec::new()
    });
}

/// The whole ceremony, once for each step at which party 2 can die.
#[test]
fn a_party_may_die_at_every_step() {
    let mut undisturbed = Net::new(2, 4, 1);
    undisturbed.finish();
    let steps = undisturbed.node(party(2)).steps;
    assert!(steps > 8);
    for last in 1..=steps {
        let mut net = Net::new(2, 4, 1);
        while net.node(party(2)).steps < last && net.turn() {}
        net.revive(party(2));
        net.finish();
    }
}

/// Everybody dies again and again, at random.
#[test]
fn everybody_may_die_many_times() {
    let mut all_deaths = 0;
    for seed in 0..10 {
        let mut net = Net::new(2, 4, 100 + seed);
        let mut deaths = 0;
        while net.turn() {
            if deaths < 12 && below(&mut net.rng, 6) == 0 {
                let unlucky = party(1 + u16::try_from(below(&mut net.rng, 4)).unwrap());
                net.revive(unlucky);
                deaths += 1;
            }
        }
        all_deaths += deaths;
        net.finish();
    }
    assert!(all_deaths > 30);
}

/// A journal replayed gives the same messages in the same order.
#[test]
fn a_replay_is_exact() {
    let mut net = Net::new(3, 5, 7);
    net.finish();
    let setting = net.setting.clone();
    let journal = net.node(party(3)).journal.clone();
    let replay = || {
        let mut machine = setting.machine(party(3), Memory::Kept);
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
    };
    assert_eq!(replay(), replay());
}

/// Who lost everything but its identity and its name in the plan gets key and share from the others, who are done.
#[test]
fn who_forgot_everything_is_told() {
    for seed in 0..6 {
        let mut net = Net::new(2, 4, 200 + seed);
        let when = 5 + 9 * usize::try_from(seed).unwrap();
        while net.node(party(1)).steps < when && net.turn() {}
        net.packets.retain(|(_, to, _, _)| *to != party(1));
        let amnesiac = net.setting.machine(party(1), Memory::Lost);
        let node = net.node(party(1));
        (node.machine, node.outcome) = (amnesiac, None);
        node.journal.clear();
        net.step(party(1), Input::Start);
        net.finish();
    }
    // And after the end.
    let mut net = Net::new(2, 4, 300);
    let digest = net.finish();
    let amnesiac = net.setting.machine(party(1), Memory::Lost);
    let node = net.node(party(1));
    (node.machine, node.outcome) = (amnesiac, None);
    net.step(party(1), Input::Start);
    assert_eq!(net.finish(), digest);
}

#[test]
fn strangers_and_wrong_shares_are_refused() {
    use std::marker::PhantomData;
    use theta_protocols::ceremony::JoinError;

    let setting = Setting::<Coin>::generate(2, 3, 1);
    let join = |who, share| {
        let keys = crate::support::keys_of(party(who));
        KeyCeremony::new(PhantomData::<Coin>, Arc::clone(&setting.plan), keys, share, Memory::Kept).map(drop)
    };
    assert_eq!(join(4, None), Err(JoinError::Stranger));
    assert_eq!(join(1, None), Ok(()));
    let dealt = theta_schemes::keys::deal::<Coin>(setting.plan.threshold(), &mut test_rng(1));
    let share = dealt.shares.into_iter().next().map(Arc::new);
    assert_eq!(join(1, share), Err(JoinError::Share));
}
