//! `theta-bench ceremony`: what it costs to make a key, by nodes that are processes of their own, or by the machines alone.

mod alone;
mod scrape;

use std::{collections::BTreeMap, io, time::Duration};

use clap::Args;
use serde::Serialize;
use theta::{
    connect::Session,
    exit::Failure,
    group::plan::{KeySpec, Plan},
    interrupt::Unfinished,
    output::{self, Output},
    units,
};
use theta_client::{CeremonyEnd, KeyChange};
use theta_cluster::{Cluster, Lifetime, this_program};
use theta_schemes::{Delivery, Suite};
use tokio::time::{self, Instant};

use self::scrape::{Traffic, traffic};
use super::process;

/// How long the nodes may take to come up and connect.
const GETTING_READY: Duration = Duration::from_secs(300);

/// Options of `theta-bench ceremony`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-bench ceremony --nodes 31 --threshold 11
  theta-bench ceremony --nodes 127 --threshold 43
  theta-bench ceremony --nodes 127 --threshold 43 --alone     the machines alone, by kind of message

Nodes are processes of their own with stores, connections and policies as in earnest, which share this machine's cores; the \
CPU of the busiest is what the ceremony would take at least if each had a core. With --alone the same machines run in this \
process, one after the other: no network, no store, and messages arrive at once.")]
pub(crate) struct CeremonyArgs {
    /// How many nodes
    #[arg(long, value_name = "N", default_value_t = 31)]
    nodes: u16,
    /// How many of them the key takes
    #[arg(long, value_name = "K", default_value_t = 11)]
    threshold: u16,
    /// The key's suite
    #[arg(long, value_name = "SUITE", default_value = "sg02-ristretto255")]
    suite: Suite,
    /// How often, one key after the other
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    times: u16,
    /// How long one may take
    #[arg(long, value_name = "TIME", default_value = "4m", value_parser = units::parse_duration)]
    patience: Duration,
    /// Only the machines, without network and stores
    #[arg(long)]
    alone: bool,
}

/// What one key cost.
#[derive(Debug, Serialize)]
struct Held {
    seconds: f64,
    outcome: String,
    /// CPU of the nodes: the busiest, all together.
    cpu_busiest_seconds: f64,
    cpu_all_seconds: f64,
    /// The most memory that a node has had so far.
    peak_memory_bytes: u64,
    /// Of the node that sent most, and of all.
    sent_most_bytes: u64,
    sent_all_bytes: u64,
    messages_all: u64,
    /// The messages between custodians and their bytes, by what they are about.
    about: BTreeMap<String, (u64, u64)>,
}

#[derive(Debug, Serialize)]
struct Report {
    nodes: u16,
    threshold: u16,
    suite: &'static str,
    connect_seconds: f64,
    /// CPU of the nodes until then: the busiest, all together.
    connect_cpu_busiest_seconds: f64,
    connect_cpu_all_seconds: f64,
    peak_memory_before_bytes: u64,
    keys: Vec<Held>,
}

impl Report {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let Self { nodes, threshold, suite, connect_seconds, .. } = self;
        writeln!(out, "any {threshold} of {nodes}, {suite}; all were connected after {connect_seconds:.1} s")?;
        let (busiest, all) = (self.connect_cpu_busiest_seconds, self.connect_cpu_all_seconds);
        writeln!(out, "  CPU     busiest {busiest:.2} s, all {all:.1} s")?;
        let bytes = |count| units::Bytes(count).to_string();
        for held in &self.keys {
            writeln!(out, "{} in {:.2} s", held.outcome, held.seconds)?;
            writeln!(out, "  CPU     busiest {:.2} s, all {:.1} s", held.cpu_busiest_seconds, held.cpu_all_seconds)?;
            writeln!(out, "  memory  {} at most", bytes(held.peak_memory_bytes))?;
            writeln!(
                out,
                "  sent    {} by one at most, {} by all, in {} messages",
                bytes(held.sent_most_bytes),
                bytes(held.sent_all_bytes),
                held.messages_all
            )?;
            for (about, (messages, sent)) in &held.about {
                writeln!(out, "          {messages:>9} {about}, {}", bytes(*sent))?;
            }
        }
        Ok(())
    }
}

/// `theta-bench ceremony`.
pub(crate) fn run(args: &CeremonyArgs, output: Output) -> Result<(), Failure> {
    if args.alone {
        return alone::run(args, output);
    }
    let home = tempfile::Builder::new().prefix("theta-bench-").tempdir();
    let home = home.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
    let _unfinished = Unfinished::watch(home.path())?;
    let plan = Plan::new(args.nodes, args.threshold, vec![KeySpec::of(Suite::Sg02Ristretto255)?])?;
    output::note(format_args!("making a group of {}", args.nodes));
    let mut cluster = Cluster::create(this_program()?, &home.path().join("group"), &plan, Lifetime::Tied)?;
    let session = Session::open_for(&cluster.client_dir(), Duration::from_secs(60), args.patience)?;
    let started = Instant::now();
    cluster.start_all()?;
    session.block_on(cluster.listening(GETTING_READY))?;
    session.block_on(connected(&cluster, args.nodes, started))?;
    let connect_seconds = started.elapsed().as_secs_f64();
    let used = cpu(&cluster);
    let connect_cpu_busiest_seconds = used.iter().max().copied().unwrap_or_default().as_secs_f64();
    let connect_cpu_all_seconds = used.iter().sum::<Duration>().as_secs_f64();
    output::note(format_args!("connected after {connect_seconds:.1} s, {connect_cpu_all_seconds:.1} s of CPU"));
    let peak_memory_before_bytes = peak_memory(&cluster);
    let mut keys = Vec::new();
    for number in 1..=args.times {
        let held = hold(args, &session, &cluster, number)?;
        output::note(format_args!("{} after {:.2} s", held.outcome, held.seconds));
        keys.push(held);
    }
    let (suite, nodes, threshold) = (args.suite.name(), args.nodes, args.threshold);
    let report = Report {
        nodes,
        threshold,
        suite,
        connect_seconds,
        connect_cpu_busiest_seconds,
        connect_cpu_all_seconds,
        peak_memory_before_bytes,
        keys,
    };
    output.result(&report, |out| report.write(out))
}

/// Waits until every node is connected to every other one.
async fn connected(cluster: &Cluster, nodes: u16, started: Instant) -> Result<(), Failure> {
    let wanted = usize::from(nodes.saturating_sub(1));
    for address in cluster.metrics() {
        while traffic(address).await.is_none_or(|traffic| traffic.connected < wanted) {
            if started.elapsed() > GETTING_READY {
                return Err(Failure::NoAnswer("the nodes do not connect to each other".to_owned()));
            }
            time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

fn hold(args: &CeremonyArgs, session: &Session, cluster: &Cluster, number: u16) -> Result<Held, Failure> {
    let key = format!("made-{number}").parse().map_err(Failure::internal)?;
    let holders = (1..=args.nodes).collect();
    let change =
        KeyChange::Create { key, suite: args.suite.into(), delivery: Delivery::All, k: args.threshold, holders };
    let (sent_before, cpu_before) = (session.block_on(sent(cluster)), cpu(cluster));
    let started = Instant::now();
    let outcome = session.block_on(session.client().hold(change, |_| {}))?;
    let seconds = started.elapsed().as_secs_f64();
    // The nodes that were not needed for the answer may still be at work.
    std::thread::sleep(Duration::from_millis(500));
    let used = cpu(cluster).into_iter().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
    let (busiest, all) = used.fold((Duration::ZERO, Duration::ZERO), |(most, sum), one| (most.max(one), sum + one));
    let mut held = Held {
        seconds,
        outcome: match outcome.end {
            CeremonyEnd::Activated { .. } => format!("made by {} nodes", outcome.agreed.len()),
            CeremonyEnd::Recovered => "recovered".to_owned(),
            CeremonyEnd::Aborted => "aborted".to_owned(),
            CeremonyEnd::Cancelled => "cancelled".to_owned(),
            CeremonyEnd::Failed(why) => why,
        },
        cpu_busiest_seconds: busiest.as_secs_f64(),
        cpu_all_seconds: all.as_secs_f64(),
        peak_memory_bytes: peak_memory(cluster),
        sent_most_bytes: 0,
        sent_all_bytes: 0,
        messages_all: 0,
        about: BTreeMap::new(),
    };
    for (after, before) in session.block_on(sent(cluster)).into_iter().zip(sent_before) {
        let bytes = after.bytes.saturating_sub(before.bytes);
        held.sent_most_bytes = held.sent_most_bytes.max(bytes);
        held.sent_all_bytes = held.sent_all_bytes.saturating_add(bytes);
        for (about, (messages, bytes)) in after.about {
            let (messages_before, bytes_before) = before.about.get(&about).copied().unwrap_or_default();
            let sum = held.about.entry(about).or_default();
            sum.0 += messages.saturating_sub(messages_before);
            sum.1 += bytes.saturating_sub(bytes_before);
        }
        held.messages_all = held.messages_all.saturating_add(after.messages.saturating_sub(before.messages));
    }
    Ok(held)
}

async fn sent(cluster: &Cluster) -> Vec<Traffic> {
    let mut all = Vec::new();
    for address in cluster.metrics() {
        all.push(traffic(address).await.unwrap_or_default());
    }
    all
}

fn cpu(cluster: &Cluster) -> Vec<Duration> {
    cluster.pids().into_iter().map(|(_, pid)| process::cpu_time(pid).unwrap_or_default()).collect()
}

fn peak_memory(cluster: &Cluster) -> u64 {
    cluster.pids().into_iter().filter_map(|(_, pid)| process::peak_memory(pid)).max().unwrap_or(0)
}
