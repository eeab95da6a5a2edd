//! The run: processes the events in the order of their times.

mod chain;
mod ends;
mod events;
mod exchange;
mod far;
mod hosts;
mod kills;
mod ledger;
mod quarantines;
mod trials;
mod warrants;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use theta_authority::Gate;
use theta_ceremonies::CeremonyKeys;
use theta_ledger::{Genesis, SignedWarrant};
use theta_names::{Epoch, KeyName, Version};
use theta_policy::{MemorySlots, Policy};
use theta_schemes::keys::AnyPublicKey;
use theta_statements::{CeremonyRequest, StateChange};
use tokio::time::Instant;

use self::chain::Order;
use self::exchange::Wish;
use self::far::Far;
use self::hosts::Hosts;
use self::kills::Kill;
use crate::byzantine::{Behaviour, Liar};
use crate::chance::below;
use crate::client::{Wanted, ceremony, changes};
use crate::group::{Failed, identity};
use crate::ledger::Reader;
use crate::node::{Life, Node};
use crate::scenario::{Aim, Fault, Sabotage, Scenario};
use crate::setup::Setup;
use crate::thief::Thief;
use crate::trace::Trace;
use crate::watch::{Invariant, Observation, Observations, Violation, Watch};

/// The interval of nodes' ticks, in milliseconds.
const TICK: u64 = 100;
/// The interval at which clients ask again, in milliseconds.
const ROUND: u64 = 1_000;
/// What is added to the number of a member for the machine in its place that is said to be gone.
const GHOST: u16 = 10_000;
/// The most events of a run, far more than any needs, so that endless runs are detected.
const MOST_EVENTS: u64 = 2_000_000;

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// A hash of all events; equal runs have equal hashes.
    pub trace: u64,
    /// The events as text, if it was asked for.
    pub lines: Vec<String>,
    /// The number of events.
    pub events: u64,
    /// The number of results that honest nodes gave.
    pub results: usize,
    /// The number of ceremonies that ended with a key or a share.
    pub ceremonies: usize,
    /// The number of right shares of the newest epochs at honest nodes in the end, over all keys.
    pub shares: usize,
    /// The nodes that honest nodes have accused.
    pub accused: BTreeSet<u16>,
    /// The sets of nodes that honest nodes have had in quarantine, with whom they named.
    pub quarantined: BTreeSet<(BTreeSet<u16>, Option<u16>)>,
    /// What adversaries did, and what was done against them.
    pub observations: Observations,
    /// The broken invariant, if there is one.
    pub violation: Option<Violation>,
}

/// An event.
#[derive(Debug)]
enum Event {
    Deliver { from: u16, to: u16, bytes: Bytes },
    Frame { from: u16, to: u16, frame: Bytes },
    Wake { node: u16, peer: u16 },
    Tick(u16),
    Round,
    Ask { node: u16, request: usize },
    Hold { node: u16, ceremony: usize },
    Change { node: u16, change: usize },
    Read(u16),
    Copy(u16),
    SetBack { node: u16, copied: bool },
    Confirm(u16),
    Steal(u16),
    Doom { node: u16, writes: u64 },
    Crash(u16),
    Start(u16),
    Part(BTreeSet<u16>),
    Heal,
    Jump { node: u16, seconds: i64, pause: u64 },
    Lose(usize),
    Sign(usize),
    Members { node: u16, wish: usize },
    Block,
    Order(u16),
}

struct World<'a> {
    scenario: &'a Scenario,
    setup: Setup,
    policies: BTreeMap<u16, Policy>,
    /// The gate of nodes that ask none of these.
    open: Gate<MemorySlots>,
    wanted: Vec<Wanted>,
    ceremonies: Vec<CeremonyRequest>,
    changes: Vec<StateChange>,
    nodes: BTreeMap<u16, Node>,
    far: Option<Far>,
    hosts: Option<Hosts>,
    order: Option<Order>,
    rng: ChaCha8Rng,
    base: Instant,
    now: u64,
    queue: BTreeMap<(u64, u64), Event>,
    events: u64,
    side: BTreeSet<u16>,
    watch: Watch,
    trace: Trace,
    /// Which nodes permitted each request, and which have its result.
    permitted: BTreeSet<(usize, u16)>,
    served: BTreeSet<(usize, u16)>,
    /// Which nodes refused a request because its slot is not certified for it, and whether for good.
    refused: BTreeMap<(usize, u16), bool>,
    /// The ends of ceremonies, by node.
    ended: BTreeMap<(usize, u16), String>,
    names: BTreeMap<usize, [u8; 32]>,
    /// The public keys that honest nodes have had, by node and position in the scenario.
    known: BTreeMap<(u16, usize), Vec<AnyPublicKey>>,
    /// Which nodes accepted a client's request for a ceremony.
    held: BTreeSet<(usize, u16)>,
    /// Which nodes have made a change of a key's state, or a later one.
    taken: BTreeSet<(usize, u16)>,
    /// The newest epoch of each version of a key at any honest node.
    newest: BTreeMap<(KeyName, Version), Epoch>,
    thief: Thief,
    /// The changes of members that are asked for.
    wishes: Vec<Wish>,
    /// The warrants that each operator has signed.
    signed: BTreeMap<u16, Vec<SignedWarrant>>,
    /// With what the ledger begins, and a client that follows it.
    genesis: Genesis,
    reader: Option<Reader>,
    shares: usize,
    quarantined: BTreeSet<(BTreeSet<u16>, Option<u16>)>,
    kills: BTreeMap<u16, Kill>,
    saboteur: u16,
}

fn liar(scenario: &Scenario, number: u16, behaviour: Behaviour) -> Result<Liar, Failed> {
    let mut rng = ChaCha8Rng::seed_from_u64(scenario.seed);
    rng.set_stream(u64::from(number));
    let all = || scenario.liars.keys().map(|liar| identity(*liar)).collect::<Result<Vec<_>, _>>();
    let group = || Ok::<(CeremonyKeys, _), Failed>((identity(number)?, all()?));
    Liar::new(behaviour, identity(number)?, rng, group)
}

/// Runs a scenario. With `verbose` the outcome has the events as text.
#[must_use]
pub fn run(scenario: &Scenario, verbose: bool) -> Outcome {
    match World::new(scenario, verbose) {
        Ok(world) => world.run(),
        Err(text) => Outcome {
            trace: 0,
            lines: Vec::new(),
            events: 0,
            results: 0,
            ceremonies: 0,
            shares: 0,
            accused: BTreeSet::new(),
            quarantined: BTreeSet::new(),
            observations: Observations::default(),
            violation: Some(Violation { at: 0, invariant: Invariant::Works, text }),
        },
    }
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, verbose: bool) -> Result<Self, Failed> {
        let setup = Setup::new(scenario)?;
        let (mut policies, mut nodes) = (BTreeMap::new(), BTreeMap::new());
        let saboteur = scenario.honest().next().unwrap_or(1);
        for number in 1..=scenario.last() {
            policies.insert(
                number,
                setup.policy(number, scenario.chain.is_some(), scenario.sabotage.filter(|_| number == saboteur))?,
            );
            let liar = scenario.liars.get(&number).map(|behaviour| liar(scenario, number, *behaviour)).transpose()?;
            nodes.insert(number, Node::new(number, &setup, scenario.last(), liar)?);
        }
        let wanted = scenario.requests.iter().map(|asked| Wanted::new(asked, &setup, scenario.seed));
        let wanted = wanted.collect::<Result<_, _>>()?;
        let ceremonies = (1..).zip(&scenario.ceremonies).map(|(place, planned)| ceremony(planned, place, &setup));
        let ceremonies = ceremonies.collect::<Result<Vec<CeremonyRequest>, _>>()?;
        let changes = changes(scenario, &setup)?;
        let open = setup.open_gate()?;
        let genesis = setup.roster.genesis().ok().flatten().ok_or("a group without a ledger")?;
        let wishes = Wish::all(scenario, &genesis.id())?;
        let base = Instant::now();
        let hosts = scenario.hosts.then(|| Hosts::new(scenario.last(), scenario.seed, base.into_std())).transpose()?;
        let mut watch = Watch::new(scenario);
        ceremonies.iter().for_each(|request| watch.ledger.asked(request.digest()));
        let mut world = Self {
            scenario,
            setup,
            open,
            policies,
            wanted,
            ceremonies,
            changes,
            nodes,
            far: scenario.distances.clone().map(|distances| Far::new(distances, scenario.seed)),
            hosts,
            order: scenario.chain.as_ref().map(|chain| Order::new(scenario.k, chain.forked.clone())),
            rng: ChaCha8Rng::seed_from_u64(scenario.seed ^ 0x0074_6865_7461),
            base,
            now: 0,
            queue: BTreeMap::new(),
            events: 0,
            side: BTreeSet::new(),
            watch,
            trace: Trace::new(verbose),
            permitted: BTreeSet::new(),
            served: BTreeSet::new(),
            refused: BTreeMap::new(),
            ended: BTreeMap::new(),
            names: BTreeMap::new(),
            known: BTreeMap::new(),
            held: BTreeSet::new(),
            taken: BTreeSet::new(),
            newest: BTreeMap::new(),
            thief: Thief::default(),
            wishes,
            signed: BTreeMap::new(),
            genesis,
            reader: None,
            shares: 0,
            quarantined: BTreeSet::new(),
            kills: BTreeMap::new(),
            saboteur,
        };
        if scenario.ceremonies.iter().any(|planned| matches!(planned.aim, Aim::Recover(..))) {
            world.watch.watch_recoveries();
        }
        world.plan();
        Ok(world)
    }

    /// Schedules the events of the scenario.
    fn plan(&mut self) {
        for number in 1..=self.scenario.last() {
            let since = self.scenario.arrival_of(number).map_or(0, |arrival| arrival.at);
            self.at(since, Event::Start(number));
            if since > 0 {
                self.watch.stores.replaced(number);
            }
            let first = since + 1 + below(&mut self.rng, TICK);
            self.at(first, Event::Tick(number));
        }
        self.at(1, Event::Round);
        if let Some(chain) = &self.scenario.chain {
            self.at(chain.interval, Event::Block);
        }
        self.plan_machines();
        for theft in &self.scenario.thefts {
            self.at(theft.at, Event::Steal(theft.node));
        }
        for fault in &self.scenario.faults {
            match fault {
                Fault::Partition { at, until, side } => {
                    self.at(*at, Event::Part(side.clone()));
                    self.at(*until, Event::Heal);
                }
                Fault::Crash { at, until, node, writes } => {
                    self.at(at.saturating_sub(500), Event::Doom { node: *node, writes: *writes });
                    self.at(*at, Event::Crash(*node));
                    self.at(*until, Event::Start(*node));
                }
                Fault::SetBack { copied, at, until, node, confirmed } => {
                    if let Some(copied) = copied {
                        self.at(*copied, Event::Copy(*node));
                    }
                    self.at(*at, Event::SetBack { node: *node, copied: copied.is_some() });
                    self.at(*until, Event::Start(*node));
                    if let Some(confirmed) = confirmed {
                        self.at(*confirmed, Event::Confirm(*node));
                    }
                }
                Fault::Kill { .. } => self.plan_kill(fault),
                Fault::Jump { at, node, seconds, pause } => {
                    self.at(*at, Event::Jump { node: *node, seconds: *seconds, pause: *pause });
                }
            }
        }
    }

    fn at(&mut self, time: u64, event: Event) {
        self.events += 1;
        self.queue.insert((time, self.events), event);
    }

    fn run(mut self) -> Outcome {
        let violation = self.happen().err();
        if let Some(violation) = &violation {
            self.trace.tell(|| violation.to_string());
        }
        let ceremonies = self.ended.values().filter(|end| end.starts_with("activated") || *end == "recovered").count();
        let accused = self.accused();
        for liar in self.nodes.values().filter_map(|node| node.liar.as_ref()) {
            let (behaviour, lies) = liar.lies();
            self.watch.observations.lied(behaviour.name(), lies);
            if matches!(behaviour, Behaviour::Ceremony(_)) {
                self.watch.observations.add(Observation::Lied, lies);
            }
        }
        Outcome {
            trace: self.trace.hash(),
            lines: self.trace.into_lines(),
            events: self.events,
            results: self.served.len(),
            ceremonies,
            shares: self.shares,
            accused,
            quarantined: self.quarantined,
            observations: self.watch.observations,
            violation,
        }
    }

    fn happen(&mut self) -> Result<(), Violation> {
        while let Some(((time, _), event)) = self.queue.pop_first() {
            (self.now, self.watch.now) = (time, time);
            if self.events > MOST_EVENTS {
                return self
                    .watch
                    .violated(Invariant::Bounded, format!("more than {MOST_EVENTS} events: it has no end"));
            }
            let is_round = matches!(event, Event::Round);
            self.step(event)?;
            if is_round && time >= self.scenario.calm {
                self.ledger_moves()?;
            }
            if is_round && time >= self.scenario.calm && self.is_done() {
                self.watch.observations.most(Observation::SlowestEnd, (time - self.scenario.calm) / TICK);
                break;
            }
            if time >= self.scenario.end {
                self.nothing_waits()?;
                break;
            }
        }
        self.all_agree()?;
        self.newcomer_learns_all()?;
        self.members_are_right()?;
        self.shares = self.shares_are_right()?;
        self.consents_held()?;
        self.nothing_is_learnt()
    }

    fn is_honest(&self, node: u16) -> bool {
        node < GHOST && !self.scenario.liars.contains_key(&node)
    }

    /// The scenario's bug, if this node has it.
    fn bug(&self, node: u16) -> Option<Sabotage> {
        self.scenario.sabotage.filter(|bug| node == self.saboteur || bug.is_everybodys())
    }

    fn apart(&self, a: u16, b: u16) -> bool {
        !self.side.is_empty() && self.side.contains(&(a % GHOST)) != self.side.contains(&(b % GHOST))
    }

    /// Takes the messages that a node has to send.
    fn drain(&mut self, number: u16) -> Result<(), Violation> {
        let changed = |life: &Life| life.engine.keys().generation() != life.generation;
        if self.nodes.get(&number).and_then(|node| node.life.as_ref()).is_some_and(changed) {
            self.permit(number);
        }
        self.kill_unwritten(number);
        let Some(node) = self.nodes.get_mut(&number) else { return Ok(()) };
        for (to, bytes) in node.outbox.take() {
            self.trace.absorb(&[&number.to_be_bytes(), &to.to_be_bytes(), &bytes]);
            let signs_again = self.bug(number) == Some(Sabotage::SignsAgain);
            let Some(node) = self.nodes.get_mut(&number) else { break };
            let bytes = if signs_again { node.sign_again(bytes) } else { bytes };
            if let Some(liar) = &mut node.liar {
                let state = node.life.as_ref().and_then(|life| life.engine.custodian()?.ledger());
                for (late, bytes) in liar.send(to, &bytes, state) {
                    self.post(number, to, late, &bytes);
                }
            } else if number >= GHOST {
                self.watch.voted(number, &bytes)?;
                self.post(number, to, 0, &bytes);
            } else {
                let liars = &self.scenario.liars;
                self.watch.helped(number, &bytes, |node| !liars.contains_key(&node))?;
                self.watch.sent(number, to, &bytes)?;
                self.watch.voted(number, &bytes)?;
                self.post(number, to, 0, &bytes);
                if self.kill_after(number, &bytes) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Sends a message through the network.
    fn post(&mut self, from: u16, to: u16, late: u64, bytes: &Bytes) {
        if !self.scenario.thefts.is_empty() {
            self.thief.records(from, to, bytes);
        }
        if self.hosts.is_some() && from < GHOST {
            return self.entrust(from, to, bytes);
        }
        let calm = self.now >= self.scenario.calm;
        let weather = self.scenario.weather;
        if !calm && below(&mut self.rng, 1_000) < weather.loss {
            return;
        }
        let copies = if below(&mut self.rng, 1_000) < weather.duplicates { 2 } else { 1 };
        for machine in
            [to, to + GHOST].into_iter().filter(|machine| self.nodes.contains_key(machine)).collect::<Vec<_>>()
        {
            for _ in 0..copies {
                let takes = match &mut self.far {
                    Some(far) => far.takes(self.now, from % GHOST, to, bytes.len(), calm),
                    None => Some(1 + below(&mut self.rng, weather.delay)),
                };
                let Some(takes) = takes else { continue };
                let time = self.now + late + takes;
                self.at(time, Event::Deliver { from, to: machine, bytes: bytes.clone() });
            }
        }
    }
}
