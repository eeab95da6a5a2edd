//! `theta-bench ecdsa`: threshold ECDSA on every black box, over sockets or in a model of far networks.

mod backend;
mod beside;
mod cost;
mod job;
mod measure;
mod network;
mod phase;
mod report;
mod row;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, ffi::OsString, path::PathBuf};

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use theta::{
    exit::Failure,
    output::{self, Output},
};
use theta_sharing::Threshold;
use theta_wan::Profile;

use self::{
    backend::{Backend, CurveName, Names},
    beside::Comparison,
    job::Network,
    measure::{Measurement, Times},
    network::{Model, Sockets},
    report::Report,
    row::{Outcome, Subject},
};
use crate::{
    machine::Machine,
    progress,
    wan::{self, Reach},
};

/// What the network of sockets is called, as in scenarios.
const LOOPBACK: &str = "loopback";

/// Options of `theta-bench ecdsa`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-bench ecdsa                                        every black box, 2, 3 and 5 parties, P-256, over sockets
  theta-bench ecdsa --backend mascot --nodes 2 --count 200
  theta-bench ecdsa --curve p256,secp256k1 --out ecdsa
  theta-bench ecdsa --profile loopback,lan,regional,four-regions,continents     beside each other
  theta-bench ecdsa --profile lan,regional --sockets       the same over real sockets, in networks made for it
  theta-bench ecdsa --beside ./mp-spdz.sh                  and another implementation beside ours, in turn

Over loopback, which is the default, each party is a thread with mutually authenticated TLS connections to all others, as between nodes: times \
are what a clock on the wall says. The parties share this machine's cores. With a profile of theta-wan there are no sockets: time is virtual, and \
the times are those of a MODEL. A party turns to a message when it has come and the party is free, is busy for the CPU time that was really \
measured, and what it sends arrives after the profile's latency and its bytes by the profile's rate: no loss, no jitter, no TLS, no congestion. Each \
party has a core of its own there, and is in the profile's regions in turn. With --sockets, the parties are in networks of their own, with \
the profile's delay, jitter, loss and rate between them, and share this machine's cores.

A key takes the set-up of the black box (oblivious transfer, MAC keys) and the key itself; tuples are nonces and their binding to the key. Where one \
program may not send enough for --count tuples, there are as many programs as it takes, one after the other; \"at once\" is the rate of several at the same time, \
with all that each begins with, as a node that fills stocks of several keys has it. On demand is a signature where there is \
a key and nothing else: set-up, one tuple, one signature. The last figure is a signature with a tuple from the stock, one round. Every signature is \
verified. bench/README.md says what the figures mean. Measure on a machine that does nothing else.")]
pub(crate) struct EcdsaArgs {
    /// Measure these black boxes only
    #[arg(long = "backend", value_name = "NAME", value_delimiter = ',')]
    backends: Vec<Backend>,
    /// Among so many parties
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2, 3, 5], value_parser = clap::value_parser!(u16).range(2..=15))]
    nodes: Vec<u16>,
    /// On these curves
    #[arg(long = "curve", value_name = "CURVE", value_delimiter = ',', default_value = "p256")]
    curves: Vec<CurveName>,
    /// How many tuples to make
    #[arg(long, value_name = "TUPLES", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// How many programs make tuples at the same time, for the figure "at once"
    #[arg(long, value_name = "PROGRAMS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=8))]
    at_once: u16,
    /// Over these networks: loopback, or by the model lan, regional, four-regions, continents, or a profile's file
    #[arg(long = "profile", value_name = "PROFILE", value_delimiter = ',', default_value = LOOPBACK)]
    profiles: Vec<String>,
    /// With a profile, send over real sockets too, between networks of its own for each party (Linux); not by the model
    #[arg(long)]
    sockets: bool,
    /// Measure another implementation beside ours: a program that is given the black box, the number of parties and of tuples, and says in one
    /// line tuples a second, kB a tuple and party, ms for a key, ms and bytes a party for a signature
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<OsString>,
    /// Write results.csv, traffic.csv and machine.txt here, too
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// One measurement.
struct Point<'a> {
    /// None for loopback.
    profile: Option<&'a Profile>,
    /// Whether there are sockets in any case.
    sockets: bool,
    curve: CurveName,
    backend: Backend,
    threshold: Threshold,
}

/// `theta-bench ecdsa`.
pub(crate) fn run(args: &EcdsaArgs, output: Output) -> Result<(), Failure> {
    let profiles = profiles(&args.profiles)?;
    let points = points(args, &profiles)?;
    if args.sockets && profiles.iter().any(Option::is_none) {
        return Err(Failure::Usage(format!(
            "--sockets is for profiles of theta-wan: over {LOOPBACK} there are sockets without it"
        )));
    }
    let machine = Machine::look();
    if cfg!(debug_assertions) {
        output::note("this is a debug build: its figures mean nothing");
    }
    let count = usize::try_from(args.count).map_err(Failure::internal)?;
    let bar = progress::bar(points.len());
    let (mut results, mut comparisons) = (Vec::with_capacity(points.len()), Vec::new());
    for point in &points {
        let result = measured(point, count, Times::usual(args.at_once.into()), &bar)?;
        bar.println(result.line());
        if let (Some(program), None, CurveName::P256) = (&args.beside, point.profile, point.curve) {
            let theirs = beside::measure(program, point.backend, point.threshold.n(), count)?;
            comparisons.extend(theirs.map(|theirs| Comparison::new(&result.row, &theirs)));
        }
        results.push(result);
        bar.inc(1);
    }
    bar.finish_and_clear();
    report::check_traffic(&results)?;
    let report = Report { machine: &machine, results: &results, beside: &comparisons };
    if let Some(folder) = &args.out {
        report::write_files(folder, &report)?;
    }
    output.result(&report, |out| report.write(out))
}

/// The profiles of these names; none for loopback.
fn profiles(names: &[String]) -> Result<Vec<Option<Profile>>, Failure> {
    let find = |name: &String| {
        if name == LOOPBACK {
            return Ok(None);
        }
        let found = Profile::find(name).map_err(|error| Failure::Usage(format!("{error}, or {LOOPBACK}")));
        found.map(Some)
    };
    names.iter().map(find).collect()
}

/// What there is to measure: whatever black box serves so many parties.
fn points<'a>(args: &EcdsaArgs, profiles: &'a [Option<Profile>]) -> Result<Vec<Point<'a>>, Failure> {
    let backends = if args.backends.is_empty() { Backend::value_variants() } else { &args.backends };
    let mut points = Vec::new();
    for profile in profiles {
        for curve in &args.curves {
            for backend in backends {
                let thresholds = args.nodes.iter().filter_map(|nodes| backend.threshold(*nodes));
                let point = |threshold| Point {
                    profile: profile.as_ref(),
                    sockets: args.sockets,
                    curve: *curve,
                    backend: *backend,
                    threshold,
                };
                points.extend(thresholds.map(point));
            }
        }
    }
    if points.is_empty() {
        return Err(Failure::Usage(
            "none of the black boxes serves so many parties: Shamir takes an odd --nodes from 3 to 15, Rep3 takes 3, Semi-OT and MASCOT 2 to 15"
                .to_owned(),
        ));
    }
    Ok(points)
}

/// Measures one of them.
fn measured(point: &Point<'_>, count: usize, times: Times, bar: &ProgressBar) -> Result<Outcome, Failure> {
    let Point { profile, sockets, curve, backend, threshold } = *point;
    let (name, group, is_active) = backend::with(backend, curve, Names)?;
    let network = match profile {
        None => Cow::Borrowed(LOOPBACK),
        Some(profile) if sockets => Cow::Owned(format!("{}, sockets", profile.name())),
        Some(profile) => Cow::Borrowed(profile.name()),
    };
    let say = |what: String| bar.set_message(format!("{name}, n = {}, {group}, {network}: {what}", threshold.n()));
    let mut carrier: Box<dyn Network> = match profile {
        None => Box::new(Sockets::open(threshold, &Reach::Here)?),
        // The threads of the measurement before have ended: this process has one again.
        Some(profile) if sockets => Box::new(Sockets::open(threshold, &wan::wires(profile, threshold.n())?)?),
        Some(profile) => Box::new(Model::new(profile.clone())?),
    };
    let measurement = Measurement { network: &mut *carrier, threshold, count, times, say: &say };
    let figures = backend::with(backend, curve, measurement)?;
    let is_modelled = profile.is_some() && !sockets;
    let subject = Subject { curve: group, backend: name, is_active, threshold, network: &network, is_modelled };
    Ok(Outcome::new(&subject, &figures))
}
