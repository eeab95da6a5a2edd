//! `theta-bench ceremony`: what it costs to make a key, by nodes that are processes of their own, or by the machines alone.

mod alone;
mod hold;

use std::{io, time::Duration};

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
use theta_cluster::{Cluster, Lifetime, this_program};
use theta_schemes::Suite;
use tokio::time::Instant;

pub(crate) use self::hold::{GETTING_READY, Held, Wanted, connected, cpu, hold, peak_memory, sent};
#[cfg(target_os = "linux")]
use super::wan;
use super::wan::Reach;

/// Options of `theta-bench ceremony`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-bench ceremony --nodes 31 --threshold 11
  theta-bench ceremony --nodes 127 --threshold 43
  theta-bench ceremony --nodes 31 --threshold 11 --wan four-regions
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
    /// Put the nodes into networks of their own by a profile of theta-wan: lan, regional, four-regions, continents, or a file
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "PROFILE", conflicts_with = "alone")]
    wan: Option<String>,
    /// Only the machines, without network and stores
    #[arg(long)]
    alone: bool,
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
    #[cfg(target_os = "linux")]
    let reach = args.wan.as_deref().map(|profile| wan::lay_aloud(profile, args.nodes)).transpose()?;
    #[cfg(not(target_os = "linux"))]
    let reach: Option<Reach> = None;
    let reach = reach.unwrap_or(Reach::Here);
    let home = tempfile::Builder::new().prefix("theta-bench-").tempdir();
    let home = home.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
    let _unfinished = Unfinished::watch(home.path())?;
    let plan = Plan::new(args.nodes, args.threshold, vec![KeySpec::of(Suite::Sg02Ristretto255)?])?;
    output::note(format_args!("making a group of {}", args.nodes));
    let dir = home.path().join("group");
    let mut cluster = Cluster::create_at(reach.site(), this_program()?, &dir, &plan, Lifetime::Tied)?;
    let session = Session::open_for(&cluster.client_dir(), Duration::from_secs(60), args.patience)?;
    let started = Instant::now();
    cluster.start_all()?;
    session.block_on(cluster.listening(GETTING_READY))?;
    connected(&cluster, &reach, args.nodes, started)?;
    let connect_seconds = started.elapsed().as_secs_f64();
    let used = cpu(&cluster);
    let connect_cpu_busiest_seconds = used.iter().max().copied().unwrap_or_default().as_secs_f64();
    let connect_cpu_all_seconds = used.iter().sum::<Duration>().as_secs_f64();
    output::note(format_args!("connected after {connect_seconds:.1} s, {connect_cpu_all_seconds:.1} s of CPU"));
    let peak_memory_before_bytes = peak_memory(&cluster);
    let mut keys = Vec::new();
    for number in 1..=args.times {
        let name = format!("made-{number}");
        let wanted = Wanted { name: &name, suite: args.suite, nodes: args.nodes, threshold: args.threshold };
        let held = hold(&wanted, &session, &cluster, &reach)?;
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
