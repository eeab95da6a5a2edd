//! Links between nodes whose carrier is an attacker: it sees every frame, loses, doubles, delays, reorders, keeps, bends and invents them. Time is simulated,
//! and everything follows from a seed (`THETA_SEED` replays one).

use core::time::Duration;
use std::{
    collections::BTreeMap,
    env,
    sync::{Arc, Mutex},
    time::Instant,
};

use bytes::Bytes;
use rustls::crypto::{GetRandomFailed, SecureRandom};
use sha2::{Digest, Sha256};
use theta_network::{
    Identity,
    carrier::{Budget, CarrierLimits, Link, Local, Outbox},
    mesh::PeerCounters,
};

use crate::support::{Lcg, id, new_identity};

/// Everything is decided by a seed; its secrecy matters to nobody here.
#[derive(Debug)]
pub(crate) struct Seeded(pub(crate) Mutex<[u8; 32]>);

impl SecureRandom for Seeded {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        let mut state = self.0.lock().unwrap();
        for chunk in buffer.chunks_mut(32) {
            *state = Sha256::digest(*state).into();
            chunk.copy_from_slice(&Sha256::digest([&state[..], b"out"].concat())[..chunk.len()]);
        }
        Ok(())
    }
}

/// What the carrier does to frames, each in a hundred.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Malice {
    pub(crate) loses: usize,
    pub(crate) doubles: usize,
    /// Bends a bit in a copy that comes first.
    pub(crate) bends: usize,
    /// Plays a frame again that it has seen before.
    pub(crate) replays: usize,
    /// Sends a frame of one node to another, or in another's name.
    pub(crate) swaps: usize,
    /// Invents frames that look like steps of handshakes.
    pub(crate) invents: usize,
    /// The longest delay in milliseconds.
    pub(crate) delay: usize,
    /// What all frames take at least, in milliseconds.
    pub(crate) distance: usize,
}

/// One end: a link with what it is told to send, and what came.
pub(crate) struct End {
    pub(crate) link: Link,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) counters: Arc<PeerCounters>,
    pub(crate) sent: u32,
    pub(crate) got: Vec<u32>,
}

pub(crate) struct World {
    pub(crate) malice: Malice,
    identities: Vec<Identity>,
    locals: Vec<Arc<Local>>,
    pub(crate) ends: BTreeMap<(usize, usize), End>,
    /// Which frames the carrier keeps, by who sends them to whom.
    pub(crate) keeps: fn(usize, usize, &[u8]) -> bool,
    pub(crate) kept: Vec<(usize, usize, Bytes)>,
    random: Lcg,
    base: Instant,
    /// In microseconds.
    pub(crate) now: u64,
    under_way: BTreeMap<(u64, u64), (usize, usize, Bytes)>,
    carried: u64,
    seen: Vec<Bytes>,
    boots: u8,
    seed: u64,
}

pub(crate) fn limits() -> CarrierLimits {
    CarrierLimits { message_bytes: 1 << 20, frame_bytes: 2_000, ..CarrierLimits::default() }
}

impl World {
    pub(crate) fn new(nodes: usize, seed: u64, malice: Malice) -> Self {
        Self::with(nodes, seed, malice, &limits())
    }

    pub(crate) fn with(nodes: usize, seed: u64, malice: Malice, limits: &CarrierLimits) -> Self {
        Self::among(&vec![limits.clone(); nodes], seed, malice)
    }

    /// A world of nodes with limits of their own.
    pub(crate) fn among(limits: &[CarrierLimits], seed: u64, malice: Malice) -> Self {
        let nodes = limits.len();
        let identities: Vec<Identity> = (0..nodes).map(|_| new_identity()).collect();
        let (base, random, seen) = (Instant::now(), Lcg(seed), Vec::new());
        let mut world = Self {
            malice,
            identities,
            locals: Vec::new(),
            ends: BTreeMap::new(),
            keeps: |_, _, _| false,
            kept: Vec::new(),
            random,
            base,
            now: 0,
            under_way: BTreeMap::new(),
            carried: 0,
            seen,
            boots: 0,
            seed,
        };
        for (node, limits) in limits.iter().enumerate() {
            world.locals.push(world.local(node, limits));
        }
        for node in 0..nodes {
            (0..nodes).filter(|peer| *peer != node).for_each(|peer| world.boot(node, peer));
        }
        world
    }

    fn local(&self, node: usize, limits: &CarrierLimits) -> Arc<Local> {
        let seed = Sha256::digest([self.seed.to_be_bytes(), u64::try_from(node).unwrap().to_be_bytes()].concat());
        let budget = Budget::new(limits.handshakes_per_second);
        budget.among(self.identities.len() - 1);
        Arc::new(Local {
            identity: self.identities[node].clone(),
            limits: limits.clone(),
            budget,
            random: Box::new(Seeded(Mutex::new(seed.into()))),
        })
    }

    /// Begins a life of a node's link to a peer; what it had to send before is lost.
    pub(crate) fn boot(&mut self, node: usize, peer: usize) {
        self.boots += 1;
        let outbox = Arc::new(Outbox::new(100_000, 1 << 30));
        let counters = Arc::new(PeerCounters::new(id(peer + 1)));
        let (local, key) = (Arc::clone(&self.locals[node]), self.identities[peer].fingerprint());
        let link = Link::new(local, key, [self.boots; 16], Arc::clone(&outbox), Arc::clone(&counters), self.at());
        let (sent, got) = self.ends.remove(&(node, peer)).map_or((0, Vec::new()), |end| (end.sent, end.got));
        self.ends.insert((node, peer), End { link: link.unwrap(), outbox, counters, sent, got });
    }

    pub(crate) fn at(&self) -> Instant {
        self.base + Duration::from_micros(self.now)
    }

    pub(crate) fn end(&self, node: usize, peer: usize) -> &End {
        &self.ends[&(node, peer)]
    }

    /// Tells a peer the next number, in a message of some length.
    pub(crate) fn send(&mut self, node: usize, peer: usize, length: usize) {
        let now = self.at();
        let end = self.ends.get_mut(&(node, peer)).unwrap();
        let message = crate::support::numbered(end.sent, length);
        end.outbox.push(message, now).unwrap();
        end.sent += 1;
        self.drive(node, peer);
    }

    pub(crate) fn drive(&mut self, node: usize, peer: usize) {
        let now = self.at();
        loop {
            let end = self.ends.get_mut(&(node, peer)).unwrap();
            end.link.drive(now);
            while let Some(message) = end.link.next_message(now) {
                end.got.push(crate::support::number_of(&message));
            }
            let frames: Vec<Bytes> = core::iter::from_fn(|| end.link.next_frame()).collect();
            if frames.is_empty() {
                return;
            }
            frames.into_iter().for_each(|frame| self.carry(node, peer, frame));
        }
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.random.below(100) < percent
    }

    pub(crate) fn deliver(&mut self, from: usize, to: usize, frame: Bytes, first: bool) {
        let slow =
            |world: &mut Self| 100 + world.malice.distance * 1_000 + world.random.below(1 + world.malice.delay * 1_000);
        let delay = if first { 0 } else { slow(self) };
        self.carried += 1;
        let time = self.now + u64::try_from(delay).unwrap();
        self.under_way.insert((time, self.carried), (from, to, frame));
    }

    /// The carrier's part.
    fn carry(&mut self, from: usize, to: usize, frame: Bytes) {
        assert!(frame.len() <= self.locals[from].limits.frame_bytes, "a frame of {} bytes", frame.len());
        if (self.keeps)(from, to, &frame) {
            self.kept.push((from, to, frame));
            return;
        }
        if self.chance(self.malice.bends) {
            let mut bent = frame.to_vec();
            let place = self.random.below(bent.len());
            bent[place] ^= 1 << self.random.below(8);
            self.deliver(from, to, bent.into(), true);
        }
        if self.chance(self.malice.invents) {
            for kind in 1..=4 {
                let mut invented: Vec<u8> = (0..150).map(|_| u8::try_from(self.random.below(256)).unwrap()).collect();
                invented[..18].copy_from_slice(&frame[..18]);
                invented[1] = kind;
                // The attempt that it has seen, with a share of its own.
                if let (1, Some(attempt)) = (frame[1], frame.get(18..34)) {
                    invented[18..34].copy_from_slice(attempt);
                }
                self.deliver(from, to, invented.into(), true);
            }
        }
        if self.chance(self.malice.replays) && !self.seen.is_empty() {
            let place = self.random.below(self.seen.len());
            let again = self.seen[place].clone();
            self.deliver(from, to, again, false);
        }
        if self.chance(self.malice.swaps) {
            let other = self.random.below(self.identities.len());
            self.deliver(from, other, frame.clone(), false);
            let mut turned = frame.to_vec();
            turned[2..10].copy_from_slice(&frame[10..18]);
            turned[10..18].copy_from_slice(&frame[2..10]);
            self.deliver(to, from, turned.into(), false);
        }
        if self.seen.len() < 5_000 {
            self.seen.push(frame.clone());
        }
        if self.chance(self.malice.doubles) {
            self.deliver(from, to, frame.clone(), false);
        }
        if !self.chance(self.malice.loses) {
            self.deliver(from, to, frame, false);
        }
    }

    /// Lets time pass until something holds, or as long as may be.
    pub(crate) fn run(&mut self, seconds: u64, mut holds: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + seconds * 1_000_000;
        while !holds(self) {
            let frame = self.under_way.first_key_value().map(|((time, _), _)| *time);
            let now = self.at();
            let due = self.ends.iter().map(|(key, end)| (end.link.due(now), *key)).min().unwrap();
            let timer = u64::try_from(due.0.saturating_duration_since(self.base).as_micros()).unwrap() + 1;
            let next = frame.unwrap_or(u64::MAX).min(timer).max(self.now);
            if next > end {
                self.now = end;
                return holds(self);
            }
            self.now = next;
            if frame.is_some_and(|time| time <= timer) {
                let ((_, _), (from, to, frame)) = self.under_way.pop_first().unwrap();
                let now = self.at();
                if let Some(end) = self.ends.get_mut(&(to, from)) {
                    end.link.receive(frame, now);
                    self.drive(to, from);
                }
            } else {
                self.drive(due.1.0, due.1.1);
            }
        }
        true
    }

    pub(crate) fn all_has_come(&self) -> bool {
        self.ends.iter().all(|((node, peer), end)| {
            self.end(*peer, *node).got.len() == usize::try_from(end.sent).unwrap() && end.outbox.is_empty()
        })
    }

    /// Every message has come once, in order.
    pub(crate) fn assert_order(&self) {
        for ((node, peer), end) in &self.ends {
            let sent: Vec<u32> = (0..self.end(*peer, *node).sent).collect();
            assert_eq!(end.got, sent, "at {node} from {peer}, seed {}", self.seed);
            assert_eq!(end.counters.protocol_errors.get(), 0, "nobody is blamed for what the carrier does");
        }
    }
}

pub(crate) fn seeds(most: u64) -> impl Iterator<Item = u64> {
    let given = env::var("THETA_SEED").ok().and_then(|seed| seed.parse().ok());
    given.map_or(0..most, |seed: u64| seed..seed + 1)
}

fn traffic(world: &mut World, rounds: usize) {
    let keys: Vec<(usize, usize)> = world.ends.keys().copied().collect();
    for _ in 0..rounds {
        for (node, peer) in &keys {
            let length = [8, 300, 1_500, 20_000][world.random.below(4)];
            world.send(*node, *peer, length);
        }
        world.run(1, |_| true);
        let pause = world.now + u64::try_from(world.random.below(30_000)).unwrap();
        world.run(1, |world| world.now >= pause);
    }
}

#[test]
fn a_carrier_that_does_its_part_is_as_good_as_a_connection() {
    let mut world = World::new(3, 1, Malice { delay: 1, ..Malice::default() });
    traffic(&mut world, 50);
    assert!(world.run(10, World::all_has_come));
    world.assert_order();
    for end in world.ends.values() {
        let counters = &end.counters;
        let steps = counters.false_handshakes.get();
        assert_eq!((counters.frames_resent.get(), steps, counters.reconnects.get()), (0, 0, 0));
    }
}

#[test]
fn whatever_the_carrier_does_each_message_comes_once_and_in_order() {
    for seed in seeds(60) {
        let mut draw = Lcg(seed ^ 0xfeed);
        let malice = Malice {
            loses: draw.below(35),
            doubles: draw.below(30),
            bends: draw.below(100),
            replays: draw.below(60),
            swaps: draw.below(40),
            invents: draw.below(50),
            delay: draw.below(300),
            distance: 0,
        };
        let mut world = World::new(3, seed, malice);
        traffic(&mut world, 20);
        assert!(world.run(300, World::all_has_come), "seed {seed}: {malice:?}");
        world.assert_order();
    }
}

#[test]
fn a_false_frame_before_each_right_one_keeps_nobody_from_calling() {
    let mut world = World::new(2, 5, Malice { bends: 100, invents: 100, replays: 100, delay: 5, ..Malice::default() });
    world.send(0, 1, 8);
    world.send(1, 0, 8);
    assert!(world.run(5, World::all_has_come), "after {} us", world.now);
    world.assert_order();
    let false_steps: u64 = world.ends.values().map(|end| end.counters.false_handshakes.get()).sum();
    assert!(false_steps > 0, "the false steps were looked at, and changed nothing");
}

#[test]
fn a_flood_of_calls_costs_what_is_allowed_and_ends_no_session() {
    let limits = CarrierLimits { handshakes_per_second: 200, ..limits() };
    let mut world = World::with(2, 6, Malice { delay: 2, ..Malice::default() }, &limits);
    world.send(0, 1, 8);
    assert!(world.run(5, World::all_has_come));
    // Ten thousand false frames of each kind in a second, in the peer's name, while it speaks.
    let hello = world
        .seen
        .iter()
        .find(|frame| frame[1] == 1 && frame[10..18] == world.identities[0].fingerprint().as_bytes()[..8]);
    let (hello, begin) = (hello.unwrap().clone(), world.now);
    for number in 0..10_000_u64 {
        for kind in [1, 3, 4] {
            let mut invented = [&hello[..], &Sha256::digest(number.to_be_bytes())[..]].concat();
            (invented[1], invented[20]) = (kind, u8::try_from(number % 256).unwrap());
            let length = if kind == 1 { hello.len() } else { invented.len() };
            world.carried += 1;
            let key = (begin + number * 100, world.carried);
            world.under_way.insert(key, (0, 1, Bytes::copy_from_slice(&invented[..length])));
        }
        if number % 100 == 0 {
            world.send(0, 1, 8);
            world.send(1, 0, 8);
            let until = begin + number * 100;
            world.run(1, |world| world.now >= until);
        }
    }
    assert!(world.run(2, World::all_has_come));
    world.assert_order();
    let counters = &world.end(1, 0).counters;
    // What one second and the bursts allow; hellos are answered, and count for nothing.
    assert!(counters.false_handshakes.get() < 500, "{}", counters.false_handshakes.get());
    assert!(counters.false_frames.get() >= 9_000, "{}", counters.false_frames.get());
    let reconnects: u64 = world.ends.values().map(|end| end.counters.reconnects.get()).sum();
    assert_eq!(reconnects, 0, "no session ended");
}

#[test]
fn somebody_gets_through_a_flood_that_begins_before_it_calls() {
    let mut world = World::new(2, 7, Malice { delay: 2, ..Malice::default() });
    world.send(0, 1, 8);
    let tags: Vec<u8> = {
        world.run(1, |world| !world.seen.is_empty());
        world.seen[0][2..18].to_vec()
    };
    // Five thousand false calls and ends a second, of both nodes to each other, for as long as it takes.
    let back = [&tags[8..], &tags[..8]].concat();
    for number in 0..40_000_u64 {
        for (from, to, route) in [(0, 1, &tags), (1, 0, &back)] {
            for kind in [1, 3] {
                let filling = Sha256::digest(number.to_be_bytes());
                let frame =
                    [&[1, kind][..], route, &filling, &filling[..16], &filling[..if kind == 1 { 0 } else { 32 }]]
                        .concat();
                world.carried += 1;
                world.under_way.insert((number * 400, world.carried), (from, to, frame.into()));
            }
        }
    }
    assert!(world.run(15, World::all_has_come), "not within 15 seconds of a flood");
    world.assert_order();
}

#[test]
fn a_node_that_restarts_is_heard_again_and_hears_what_waits_for_it() {
    for seed in seeds(30) {
        let mut world =
            World::new(2, seed, Malice { loses: 10, replays: 50, doubles: 10, delay: 40, ..Malice::default() });
        traffic(&mut world, 5);
        assert!(world.run(100, World::all_has_come), "seed {seed}");
        world.assert_order();
        // Everything that the carrier has seen so far it may play again to the new life.
        world.boot(1, 0);
        let before = world.end(0, 1).got.len();
        for _ in 0..10 {
            world.send(0, 1, 300);
            world.send(1, 0, 300);
        }
        assert!(world.run(100, World::all_has_come), "seed {seed}: after the restart");
        assert_eq!(world.end(0, 1).got.len(), before + 10);
        world.assert_order();
        assert!(world.now < 60_000_000, "seed {seed}: it took {} s", world.now / 1_000_000);
    }
}

/// What the life before had acknowledged, and not in order, the new one does not have.
#[test]
fn a_node_that_restarts_in_the_middle_hears_all_that_was_not_done() {
    for seed in seeds(40) {
        let mut world = World::new(2, seed, Malice { loses: 30, delay: 60, ..Malice::default() });
        for _ in 0..100 {
            world.send(0, 1, 1_500);
        }
        let some = 10 + usize::try_from(seed).unwrap();
        assert!(world.run(60, |world| world.end(1, 0).got.len() >= some), "seed {seed}");
        world.boot(1, 0);
        world.ends.get_mut(&(1, 0)).unwrap().got.clear();
        assert!(world.run(100, |world| world.end(0, 1).outbox.is_empty()), "seed {seed}: it is stuck");
        let got = &world.end(1, 0).got;
        assert!(got.windows(2).all(|pair| pair[1] == pair[0] + 1), "seed {seed}: {got:?}");
        assert_eq!(got.last(), Some(&99), "seed {seed}");
    }
}

#[test]
fn a_carrier_that_rests_and_goes_on_loses_nothing() {
    let mut world = World::new(2, 9, Malice { delay: 5, ..Malice::default() });
    traffic(&mut world, 5);
    assert!(world.run(10, World::all_has_come));
    world.malice.loses = 100;
    for _ in 0..50 {
        world.send(0, 1, 1_500);
    }
    let until = world.now + 60_000_000;
    world.run(60, |world| world.now >= until);
    assert!(!world.end(0, 1).link.is_connected(world.at()), "a minute without a word");
    world.malice.loses = 0;
    let healed = world.now;
    assert!(world.run(20, World::all_has_come));
    world.assert_order();
    assert!(world.now - healed < 10_000_000, "it took {} us", world.now - healed);
    assert!(world.end(0, 1).link.is_connected(world.at()));
}

#[test]
fn sessions_are_renewed_while_messages_flow() {
    let limits = CarrierLimits {
        keepalive: Duration::from_millis(100),
        dead_after: Duration::from_secs(1),
        renew_after: Duration::from_secs(2),
        ..limits()
    };
    let mut world = World::with(2, 11, Malice { loses: 5, delay: 30, ..Malice::default() }, &limits);
    for _ in 0..200 {
        traffic(&mut world, 1);
        let until = world.now + 50_000;
        world.run(1, |world| world.now >= until);
    }
    assert!(world.run(20, World::all_has_come));
    world.assert_order();
    let renewed = world.end(0, 1).counters.reconnects.get();
    assert!(renewed >= 4, "{renewed} times in {} s", world.now / 1_000_000);
}

#[test]
fn large_messages_pass_a_bad_carrier_in_good_time() {
    let mut world = World::with(2, 12, Malice { loses: 2, delay: 20, ..Malice::default() }, &CarrierLimits::default());
    world.send(0, 1, 16 << 20);
    assert!(world.run(60, World::all_has_come));
    world.assert_order();
    assert!(world.now < 30_000_000, "16 MiB took {} ms", world.now / 1_000);
    let resent = world.end(0, 1).counters.frames_resent.get();
    assert!(resent < 100, "{resent} of 520 pieces were sent again");
}
