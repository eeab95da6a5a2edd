//! Groups of many on a machine that is slower than their ticks.
//!
//! What each message, tick and commit costs is a constant, and a few cores do it all: so ticks are late just as they are on a real machine, and
//! what is sent can be counted, the same in each run.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use theta_ceremonies::statements_of;
use theta_custody::{CeremonyState, CustodyEffect, CustodyInput, To};
use theta_schemes::{Delivery, Suite};
use theta_statements::KeyChange;

use crate::net::{Net, name, party};

/// Microseconds between two ticks.
const PERIOD: u64 = 250_000;
/// Microseconds of a core that it takes to send a message, to receive it, to pass a tick, and to take a batch of inputs.
const SENDS: u64 = 110;
const RECEIVES: u64 = 150;
const TICKS: u64 = 300;
const COMMITS: u64 = 500;
/// The most messages that are taken in one batch.
const BATCH: usize = 64;

/// The most messages that are read from connections in a turn of a node.
const READ: usize = 16;

/// What waits at a node, and its next tick.
#[derive(Default)]
struct Desk {
    /// What was sent to it and is not read from its connections yet: it does not know how much that is.
    wire: VecDeque<(u16, Bytes)>,
    mail: VecDeque<(u16, Bytes)>,
    due: u64,
    /// How many messages are to be read before the tick that is due passes.
    before: Option<usize>,
}

/// A group on `cores` cores.
struct Machine {
    net: Net,
    desks: BTreeMap<u16, Desk>,
    cores: u64,
    /// Microseconds since the begin.
    clock: u64,
    /// Microseconds that all cores have worked.
    worked: u64,
    sent: BTreeMap<String, u64>,
    ticks: u64,
}

impl Machine {
    fn new(net: Net, cores: u64) -> Self {
        let desk = |number: &u16| (*number, Desk { due: u64::from(*number) * 1_931 % PERIOD, ..Desk::default() });
        let desks = net.nodes.keys().map(desk).collect();
        Self { net, desks, cores, clock: 0, worked: 0, sent: BTreeMap::new(), ticks: 0 }
    }

    fn work(&mut self, micros: u64) {
        self.worked += micros;
        self.clock += micros / self.cores;
    }

    fn carry(&mut self, from: u16, effects: Vec<CustodyEffect>) {
        for effect in effects {
            let CustodyEffect::Send { to, bytes } = effect else { continue };
            let all = || self.desks.keys().copied().filter(|node| *node != from).collect();
            let others: Vec<u16> = if let To::One(node) = to { vec![node.get()] } else { all() };
            *self.sent.entry(kind(from, &bytes)).or_default() += others.len() as u64;
            self.work(SENDS * others.len() as u64);
            for to in others {
                self.desks.get_mut(&to).unwrap().wire.push_back((from, bytes.clone()));
            }
        }
    }

    /// One turn of a node: some of its mail, and its tick if that is due and what came before it is read.
    fn turn(&mut self, number: u16) -> bool {
        let desk = self.desks.get_mut(&number).unwrap();
        if desk.before.is_none() && desk.due <= self.clock {
            desk.before = Some(desk.mail.len());
        }
        let arrives = desk.wire.len().min(READ);
        desk.mail.extend(desk.wire.drain(..arrives));
        let count = desk.mail.len().min(BATCH);
        let mail = desk.mail.drain(..count);
        let mut inputs: Vec<CustodyInput> =
            mail.map(|(from, bytes)| CustodyInput::Message { from: party(from), bytes }).collect();
        desk.before = desk.before.map(|before| before.saturating_sub(count));
        let ticks = desk.before == Some(0);
        if ticks {
            desk.before = None;
            // A late tick puts off the next one.
            desk.due = desk.due.max(self.clock) + PERIOD;
            inputs.push(CustodyInput::Tick(self.net.now + self.clock / 1_000_000));
            self.ticks += 1;
        }
        if inputs.is_empty() {
            return false;
        }
        self.work(COMMITS + count as u64 * RECEIVES + u64::from(ticks) * TICKS);
        let effects = self.net.node(number).custodian.as_mut().unwrap().handle_all(inputs);
        self.carry(number, effects);
        true
    }

    /// Makes a key among all; whether every node has it within so many seconds of the machine.
    fn create(&mut self, k: u16, seconds: u64) -> bool {
        let all: Vec<u16> = self.desks.keys().copied().collect();
        let change = KeyChange::Create {
            key: name("made"),
            suite: Suite::Sg02Ristretto255.into(),
            delivery: Delivery::All,
            k,
            holders: all.clone(),
        };
        let request = self.net.request(change);
        for number in &all {
            let mut effects = Vec::new();
            let custodian = self.net.node(*number).custodian.as_mut().unwrap();
            custodian.hold(request.clone(), Vec::new(), &mut effects).unwrap();
            self.carry(*number, effects);
        }
        let id = request.digest();
        while self.clock < seconds * 1_000_000 {
            let mut busy = false;
            for number in &all {
                busy |= self.turn(*number);
            }
            if !busy {
                let next = self.desks.values().map(|desk| desk.due).min().unwrap();
                self.clock = self.clock.max(next);
            }
            let made = |number: &u16| matches!(self.net.state(*number, &id), CeremonyState::Activated { .. });
            if all.iter().all(made) {
                return true;
            }
        }
        false
    }

    /// What it took, and what was sent, by kind.
    fn report(&self) -> String {
        let messages: u64 = self.sent.values().sum();
        let (clock, worked) = (self.clock / 1_000_000, self.worked / 1_000_000);
        let ticks = self.ticks / self.desks.len() as u64;
        let kinds = self.sent.iter().map(|(kind, count)| format!("\n  {kind:24} {count}"));
        let kinds: String = kinds.collect();
        format!("{clock} s, {worked} s of cores, {messages} messages, {ticks} ticks a node{kinds}")
    }
}

/// What a message is, by its first statement and whether that is its sender's.
fn kind(from: u16, bytes: &Bytes) -> String {
    match bytes.get(1) {
        Some(1) => {
            let first = statements_of(&bytes.slice(34..)).next();
            let own = |author: u16| if author == from { "" } else { ", passed on" };
            first.map_or("certificates".to_owned(), |statement| {
                format!("{:?}{}", statement.slot().kind, own(statement.author().get()))
            })
        }
        Some(2) => "summary".to_owned(),
        Some(3) => "greeting".to_owned(),
        Some(9) => format!("ledger {}", bytes.get(3).copied().unwrap_or(0)),
        _ => "store".to_owned(),
    }
}

fn group(n: u16) -> Net {
    let mut net = Net::new(n.div_ceil(3), n, 3);
    net.until(4, |_| false);
    net
}

/// On one core, where messages wait unread on connections while ticks go on, a key is made, and questions stay few: news say that more is on its
/// way. `THETA_CUSTODY_NODES` and `THETA_CUSTODY_CORES` (several, between commas) measure other groups.
#[test]
fn a_machine_slower_than_its_ticks_asks_few_questions() {
    let n: u16 = std::env::var("THETA_CUSTODY_NODES").map_or(31, |n| n.parse().unwrap());
    for cores in std::env::var("THETA_CUSTODY_CORES").unwrap_or("1".to_owned()).split(',') {
        let mut machine = Machine::new(group(n), cores.parse().unwrap());
        let made = machine.create(n.div_ceil(3), 400);
        println!("{n} nodes, {cores} cores: {}", machine.report());
        assert!(made, "it does not end");
        // One to each other member, at the most: without regard to news there are more than twice as many.
        let summaries = machine.sent.get("summary").copied().unwrap_or(0);
        assert!(summaries <= u64::from(n) * u64::from(n), "{summaries} questions");
    }
}
