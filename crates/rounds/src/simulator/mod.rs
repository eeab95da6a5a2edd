//! Whole groups of machines under a seeded scheduler: random delivery order, delay, loss, duplication, Byzantine parties.
//!
//! Everything random comes from one seed, so a run that fails is replayed by its number:
//!
//! ```text
//! THETA_SEED=1234 cargo test ...      # this seed alone
//! THETA_SEEDS=100000 cargo test ...   # more seeds than usual
//! ```
//!
//! The machines are real, of any protocol; only the network and the clock are simulated. A Byzantine party runs the
//! honest machine, too, with an [`Adversary`] between it and the network.

mod adversary;
mod report;
mod seeds;

use core::convert::Infallible;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

pub use adversary::{Adversary, Behaviour, Forgery, HonestSend, Tamper, flip_bit};
pub use report::{PartyReport, Report};
pub use seeds::for_each_seed;

use crate::{Effect, Evidence, Input, Machine, PartyId, Recipient};

/// The generator of the scheduler, of each party and of each adversary; each uses its own stream of the run's seed.
pub type SimRng = ChaCha8Rng;

/// A machine that asks no stock for anything.
pub type AnyMachine<O, M> = Box<dyn Machine<Output = O, Misbehaviour = M, Ask = Infallible, Supply = Infallible>>;

/// A number below `bound` (0 for a bound of 0), near enough to uniform for scheduling.
pub fn below(rng: &mut SimRng, bound: u64) -> u64 {
    rng.next_u64().checked_rem(bound).unwrap_or(0)
}

/// How the simulated network treats honest links. Time has no unit: only the order of events matters.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// The longest delay of a message; each gets its own, so messages overtake each other.
    pub max_delay: u64,
    /// The latest moment at which a party starts; messages that reach it before are early.
    pub max_start: u64,
    /// How many messages of a thousand arrive twice.
    pub duplicates_per_mille: u64,
    /// How many messages of a thousand are lost on links named by [`Simulator::lossy`].
    pub loss_per_mille: u64,
    /// How many ticks every unfinished party gets once no other event is left.
    pub ticks: u32,
}

impl Default for Conditions {
    fn default() -> Self {
        Self { max_delay: 100, max_start: 100, duplicates_per_mille: 50, loss_per_mille: 300, ticks: 0 }
    }
}

/// A group about to run.
pub struct Simulator<O, M: Evidence> {
    seed: u64,
    conditions: Conditions,
    rng: SimRng,
    parties: BTreeMap<PartyId, Party<O, M>>,
    lossy: BTreeSet<PartyId>,
    slow: BTreeMap<(PartyId, PartyId), u64>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, (PartyId, Event<O, M>)>,
    next_event: u64,
    now: u64,
    /// Messages for [`Recipient::OnRequest`]: sender, recipient, message.
    on_request: Vec<(PartyId, PartyId, Forgery)>,
    trace: report::Trace,
}

/// What happens to a party.
enum Event<O, M: Evidence> {
    Input(Input<Infallible>),
    Restart(AnyMachine<O, M>),
}

struct Party<O, M: Evidence> {
    machine: AnyMachine<O, M>,
    rng: SimRng,
    adversary: Option<(Box<dyn Adversary>, SimRng)>,
    restarts: u64,
    report: PartyReport<O, M>,
}

/// Whose stream of randomness it is.
#[derive(Clone, Copy)]
enum Owner {
    Party = 0,
    Adversary = 1,
    Restarted = 2,
}

/// One of the streams of party `id`. Stream 0 is the scheduler's.
fn stream(seed: u64, id: PartyId, owner: Owner) -> SimRng {
    let mut rng = SimRng::seed_from_u64(seed);
    rng.set_stream(u64::from(id.get()) | ((owner as u64) << 16));
    rng
}

impl<O, M: Evidence> Simulator<O, M> {
    /// An empty group.
    #[must_use]
    pub fn new(seed: u64, conditions: Conditions) -> Self {
        Self {
            seed,
            conditions,
            rng: SimRng::seed_from_u64(seed),
            parties: BTreeMap::new(),
            lossy: BTreeSet::new(),
            slow: BTreeMap::new(),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            now: 0,
            on_request: Vec::new(),
            trace: report::Trace::default(),
        }
    }

    /// The scheduler's generator, to choose a scenario by the same seed.
    pub const fn rng(&mut self) -> &mut SimRng {
        &mut self.rng
    }

    /// Adds an honest party.
    pub fn honest(&mut self, id: PartyId, machine: AnyMachine<O, M>) {
        self.add(id, machine, None);
    }

    /// Adds a Byzantine party: the honest machine of that party with an adversary in front of it.
    pub fn byzantine(&mut self, id: PartyId, machine: AnyMachine<O, M>, adversary: impl Adversary + 'static) {
        self.add(id, machine, Some((Box::new(adversary), stream(self.seed, id, Owner::Adversary))));
    }

    fn add(&mut self, id: PartyId, machine: AnyMachine<O, M>, adversary: Option<(Box<dyn Adversary>, SimRng)>) {
        let report = PartyReport { honest: adversary.is_none(), restarted: false, result: None, blames: Vec::new() };
        let at = below(&mut self.rng, self.conditions.max_start + 1);
        self.parties
            .insert(id, Party { machine, rng: stream(self.seed, id, Owner::Party), adversary, restarts: 0, report });
        self.at(at, id, Input::Start);
    }

    /// Whatever `party` sends may be lost on its way.
    pub fn lossy(&mut self, party: PartyId) {
        self.lossy.insert(party);
    }

    /// Delays whatever `from` sends to `to` by so much more, to make sure that other messages come first.
    pub fn hold_back(&mut self, from: PartyId, to: PartyId, delay: u64) {
        self.slow.insert((from, to), delay);
    }

    /// Delivers an input at a given time, in addition to what the parties send. The test may name any sender; nothing
    /// checks it.
    pub fn at(&mut self, time: u64, to: PartyId, input: Input<Infallible>) {
        self.schedule(time, to, Event::Input(input));
    }

    /// Kills a party and starts it again as `machine`. Its memory is lost; messages that it has sent remain under way.
    pub fn restart(&mut self, time: u64, id: PartyId, machine: AnyMachine<O, M>) {
        self.schedule(time, id, Event::Restart(machine));
    }

    fn schedule(&mut self, time: u64, to: PartyId, event: Event<O, M>) {
        let number = self.next_event;
        self.next_event += 1;
        self.queue.push(Reverse((time, number)));
        self.events.insert(number, (to, event));
    }

    /// Runs until no event is left.
    #[must_use]
    pub fn run(mut self) -> Report<O, M> {
        for round in 0..=self.conditions.ticks {
            while let Some(Reverse((time, number))) = self.queue.pop() {
                self.now = time;
                match self.events.remove(&number) {
                    Some((to, Event::Input(input))) => {
                        let time_passes = matches!(input, Input::Tick);
                        self.step(to, input);
                        if time_passes {
                            self.ask(to);
                        }
                    }
                    Some((id, Event::Restart(machine))) => {
                        self.replace(id, machine);
                        self.step(id, Input::Start);
                    }
                    None => {}
                }
            }
            if round < self.conditions.ticks {
                let ids: Vec<_> = self.parties.keys().copied().collect();
                for id in ids {
                    self.at(self.now + 1, id, Input::Tick);
                }
            }
        }
        let parties = self.parties.into_iter().map(|(id, party)| (id, party.report)).collect();
        Report { seed: self.seed, trace: self.trace.finish(), parties }
    }

    fn replace(&mut self, id: PartyId, machine: AnyMachine<O, M>) {
        if let Some(party) = self.parties.get_mut(&id) {
            party.machine = machine;
            // A restarted party draws other random numbers than before.
            party.rng = stream(self.seed, id, Owner::Restarted);
            party.rng.set_stream(party.rng.get_stream() | (party.restarts << 32));
            party.restarts += 1;
            party.report.restarted = true;
            party.report.result = None;
        }
    }

    /// Handles one event at one party, with all its effects there.
    fn step(&mut self, id: PartyId, input: Input<Infallible>) {
        self.trace.input(id, &input);
        let everyone: Vec<PartyId> = self.parties.keys().copied().collect();
        let Some(party) = self.parties.get_mut(&id) else { return };
        let mut sends: Vec<(PartyId, Forgery)> = Vec::new();
        let mut kept = Vec::new();

        if let (Some((adversary, rng)), Input::Message { from, slot, channel, payload }) =
            (&mut party.adversary, &input)
        {
            let seen = HonestSend { slot: *slot, channel: *channel, payload: payload.clone() };
            for forgery in adversary.on_receive(rng, *from, &seen) {
                sends.extend(everyone.iter().map(|to| (*to, forgery.clone())));
            }
        }
        for effect in party.machine.handle(input, &mut party.rng) {
            match effect {
                Effect::Ask(nothing) => match nothing {},
                Effect::Blame(blame) => {
                    self.trace.blame(id, &blame);
                    party.report.blames.push(blame);
                }
                Effect::Finished(result) => {
                    self.trace.finished(id, result.is_ok());
                    party.report.result = Some(result);
                }
                Effect::Send { to, slot, channel, payload } => {
                    let original = HonestSend { slot, channel, payload };
                    let sends = if to == Recipient::OnRequest { &mut kept } else { &mut sends };
                    for to in everyone.iter().copied().filter(|peer| *peer != id && reaches(to, *peer)) {
                        match &mut party.adversary {
                            None => sends.push((to, original.clone())),
                            Some((adversary, rng)) => {
                                let forged = adversary.on_send(rng, to, original.clone());
                                sends.extend(forged.into_iter().map(|forgery| (to, forgery)));
                            }
                        }
                    }
                }
            }
        }
        self.on_request.extend(kept.into_iter().map(|(to, message)| (id, to, message)));
        for (to, message) in sends.into_iter().filter(|(to, _)| *to != id) {
            self.post(id, to, message);
        }
    }

    /// A tick for a party: if it has not finished, it gets the messages that the others keep for those who ask.
    fn ask(&mut self, id: PartyId) {
        let waits = self.parties.get(&id).is_some_and(|party| !party.machine.is_finished());
        let told: Vec<_> = self.on_request.iter().filter(|(_, to, _)| waits && *to == id).cloned().collect();
        for (from, to, message) in told {
            self.post(from, to, message);
        }
    }

    /// Puts a message on the network, which may lose, delay or duplicate it.
    fn post(&mut self, from: PartyId, to: PartyId, message: Forgery) {
        if self.lossy.contains(&from) && below(&mut self.rng, 1000) < self.conditions.loss_per_mille {
            return;
        }
        let copies = if below(&mut self.rng, 1000) < self.conditions.duplicates_per_mille { 2 } else { 1 };
        let Forgery { slot, channel, payload } = message;
        let held_back = self.slow.get(&(from, to)).copied().unwrap_or(0);
        for _ in 0..copies {
            let time = self.now + 1 + below(&mut self.rng, self.conditions.max_delay) + held_back;
            self.at(time, to, Input::Message { from, slot, channel, payload: payload.clone() });
        }
    }
}

fn reaches(recipient: Recipient, peer: PartyId) -> bool {
    match recipient {
        Recipient::All | Recipient::OnRequest => true,
        Recipient::Party(party) => party == peer,
    }
}
