//! The machines of a ceremony in one process: what the mathematics and the messages cost by themselves.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use theta::{exit::Failure, output::Output, units};
use theta_ceremonies::{Aim, Ceremony, CeremonyKeys, CeremonyPlan, ITEMS, Input, Memory, PlanParts, statements_of};
use theta_groups::Secret;
use theta_names::{Epoch, NodeId};
use theta_rounds::{Channel, Effect, PartyId, Recipient};

use super::CeremonyArgs;

/// Every message that the machines sent, by what is in it.
#[derive(Debug, Default, Serialize)]
struct Sent {
    messages: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Report {
    nodes: u16,
    threshold: u16,
    suite: &'static str,
    ticks: u32,
    cpu_busiest_seconds: f64,
    cpu_all_seconds: f64,
    /// By kind of statement, or "summary".
    sent: BTreeMap<String, Sent>,
}

impl Report {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let Self { nodes, threshold, suite, ticks, .. } = self;
        writeln!(out, "any {threshold} of {nodes}, {suite}, the machines alone; {ticks} ticks")?;
        writeln!(out, "  CPU     busiest {:.3} s, all {:.2} s", self.cpu_busiest_seconds, self.cpu_all_seconds)?;
        for (kind, sent) in &self.sent {
            writeln!(out, "  {kind:16} {} in {} messages", units::Bytes(sent.bytes), sent.messages)?;
        }
        Ok(())
    }
}

struct Node {
    machine: Ceremony,
    used: Duration,
    ended: bool,
}

struct Net {
    nodes: BTreeMap<PartyId, Node>,
    packets: VecDeque<(PartyId, PartyId, Input)>,
    sent: BTreeMap<String, Sent>,
}

impl Net {
    fn step(&mut self, id: PartyId, input: Input) {
        let others: Vec<PartyId> = self.nodes.keys().copied().filter(|other| *other != id).collect();
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let started = Instant::now();
        let effects = node.machine.take(input);
        node.used += started.elapsed();
        for effect in effects {
            match effect {
                Effect::Send { to, slot, payload, .. } => {
                    let to = match to {
                        Recipient::All => others.clone(),
                        Recipient::Party(party) => vec![party],
                        Recipient::OnRequest => Vec::new(),
                    };
                    let kind = if slot == ITEMS {
                        let first = statements_of(&payload).next();
                        first.map_or("other".to_owned(), |statement| format!("{:?}", statement.slot().kind))
                    } else {
                        "summary".to_owned()
                    };
                    let count = u64::try_from(to.len()).unwrap_or(u64::MAX);
                    let sent = self.sent.entry(kind).or_default();
                    sent.messages += count;
                    sent.bytes += count * u64::try_from(payload.len()).unwrap_or(u64::MAX);
                    let channel = Channel::Broadcast;
                    let packet = |to| (id, to, Input::Message { from: id, slot, channel, payload: payload.clone() });
                    self.packets.extend(to.into_iter().map(packet));
                }
                Effect::Finished(result) => node.ended = result.is_ok(),
                Effect::Ask(nothing) => match nothing {},
                Effect::Blame(_) => {}
            }
        }
    }
}

fn machine(plan: &Arc<CeremonyPlan>, keys: Arc<CeremonyKeys>) -> Result<Ceremony, Failure> {
    let seed = Secret::new(
        theta_groups::Transcript::new("theta/bench/ceremony").with("id", &keys.member().encode()).finish32(),
    );
    Ceremony::join(Arc::clone(plan), keys, seed, None, Memory::Kept).map_err(Failure::internal)
}

/// Runs them to their end.
pub(super) fn run(args: &CeremonyArgs, output: Output) -> Result<(), Failure> {
    let ids = (1..=args.nodes).filter_map(|node| NodeId::try_from(node).ok());
    let mut rng = theta::random::generator()?;
    let keys: Vec<Arc<CeremonyKeys>> = ids.map(|id| Arc::new(CeremonyKeys::generate(id, &mut rng))).collect();
    let no_curve = || Failure::Usage(format!("keys of {} take a dealer", args.suite));
    let plan = CeremonyPlan::new(PlanParts {
        suite: args.suite.into(),
        group: args.suite.key_group().ok_or_else(no_curve)?,
        proof_of_possession: args.suite.proof_of_possession(),
        nonce: [1; 32],
        epoch: Epoch::new(0),
        aim: Aim::Generate,
        k: args.threshold,
        members: keys.iter().map(|keys| keys.member().party()).collect(),
        roster: keys.iter().map(|keys| keys.member().clone()).collect(),
        patience: 0,
    });
    let plan = Arc::new(plan.map_err(Failure::internal)?);
    let node = |keys: Arc<CeremonyKeys>| {
        let party = keys.member().party();
        Ok((party, Node { machine: machine(&plan, keys)?, used: Duration::ZERO, ended: false }))
    };
    let nodes: BTreeMap<_, _> = keys.into_iter().map(node).collect::<Result<_, Failure>>()?;
    let mut net = Net { nodes, packets: VecDeque::new(), sent: BTreeMap::new() };
    let all: Vec<PartyId> = net.nodes.keys().copied().collect();
    all.iter().for_each(|id| net.step(*id, Input::Start));
    let mut ticks = 0;
    while net.nodes.values().any(|node| !node.ended) {
        match net.packets.pop_front() {
            Some((_, to, input)) => net.step(to, input),
            None => {
                ticks += 1;
                all.iter().for_each(|id| net.step(*id, Input::Tick));
            }
        }
    }
    let busiest = net.nodes.values().map(|node| node.used).max().unwrap_or_default();
    let report = Report {
        nodes: args.nodes,
        threshold: args.threshold,
        suite: args.suite.name(),
        ticks,
        cpu_busiest_seconds: busiest.as_secs_f64(),
        cpu_all_seconds: net.nodes.values().map(|node| node.used).sum::<Duration>().as_secs_f64(),
        sent: net.sent,
    };
    output.result(&report, |out| report.write(out))
}
