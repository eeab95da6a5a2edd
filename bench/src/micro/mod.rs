//! `theta-bench micro`: the cost of every step of every scheme, without a network.

mod experiment;
mod frost;
mod measure;
mod one_round;
mod operation;
mod record;
mod report;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use indicatif::ProgressBar;
use rand_core::CryptoRng;
use serde::Serialize;
use theta::{
    exit::Failure,
    output::{self, Output, Table},
    random, units,
};
use theta_schemes::{
    Suite,
    keys::{AnyKeyShare, AnyPublicKey, deal_any, deal_rsa_primes},
    signatures::sh00::{ModulusSize, RsaPrimes},
    with_scheme,
};
use theta_sharing::Threshold;

use self::{
    experiment::{BUILT_IN, Experiment, is_rsa},
    measure::clock::Clock,
    operation::Operation,
    record::{Bench, Row, Subject, write_tables},
};
use crate::{machine::Machine, progress};

/// The experiments that run when none is named.
const DEFAULT: [&str; 3] = ["one-round", "frost", "dealer"];
/// The most time for a raw operation: there are many, and they are short.
const RAW_TIME: Duration = Duration::from_millis(60);

/// A key of any suite.
type Key = (AnyPublicKey, Vec<AnyKeyShare>);

/// Options of `theta-bench micro`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-bench micro --quick                          everything, roughly, in a minute or two
  theta-bench micro --experiment frost               one experiment, well
  theta-bench micro --suite 'sg02-*' --suite frost-ed25519 --time 500ms
  theta-bench micro --list                           what there is to run, and to measure

Writes report.html, results.csv, machine.txt and plots/ into --out. Experiments are TOML files; the built-in ones, which \
are good to start from, are in bench/experiments/. Measure on a machine that does nothing else.")]
pub(crate) struct MicroArgs {
    /// What to measure: a built-in experiment or a TOML file; may be repeated [default: one-round, frost, dealer]
    #[arg(long = "experiment", value_name = "NAME|FILE")]
    experiments: Vec<String>,
    /// Measure these suites only: a name, or a beginning and *; may be repeated
    #[arg(long = "suite", value_name = "SUITE")]
    suites: Vec<String>,
    /// How long to repeat each operation [default: the experiment's]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    time: Option<Duration>,
    /// Little time, small groups, short plaintexts
    #[arg(long)]
    quick: bool,
    /// Where to write [default: theta-micro-DATE here]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// List experiments, suites and operations, and measure nothing
    #[arg(long)]
    list: bool,
}

/// The result in JSON.
#[derive(Serialize)]
struct Report<'a> {
    report: String,
    machine: &'a Machine,
    measurements: &'a [Row],
}

/// `theta-bench micro`.
pub(crate) fn run(args: &MicroArgs, output: Output) -> Result<(), Failure> {
    if args.list {
        return list(output);
    }
    let experiments = experiments(args)?;
    let machine = Machine::look();
    if cfg!(debug_assertions) {
        output::note("this is a debug build: its figures mean nothing");
    }
    let rows = measure(&experiments)?;
    let folder = args.out.clone().unwrap_or_else(|| {
        let date = machine.date.trim_end_matches(" UTC").replace(' ', "-").replace(':', "");
        PathBuf::from(format!("theta-micro-{date}"))
    });
    let summary: Vec<String> = experiments
        .iter()
        .map(|experiment| {
            let time = units::human(experiment.time);
            format!("{} ({}; {time} an operation)", experiment.name, experiment.description)
        })
        .collect();
    report::write(&folder, &summary.join(". "), &machine, &rows)?;
    let page = folder.join("report.html").display().to_string();
    let report = Report { report: page.clone(), machine: &machine, measurements: &rows };
    output.result(&report, |out| {
        write_tables(&rows, out)?;
        writeln!(out, "\n{} measurements, all of them and their plots in {page}", rows.len())
    })
}

fn experiments(args: &MicroArgs) -> Result<Vec<Experiment>, Failure> {
    let named: Vec<&str> = args.experiments.iter().map(String::as_str).collect();
    let names = if named.is_empty() { &DEFAULT[..] } else { &named };
    let mut experiments = names.iter().map(|name| Experiment::load(name)).collect::<Result<Vec<_>, _>>()?;
    for experiment in &mut experiments {
        if args.quick {
            experiment.quicken();
        }
        experiment.time = args.time.unwrap_or(experiment.time);
        if !args.suites.is_empty() {
            experiment.restrict(&args.suites)?;
        }
    }
    experiments.retain(|experiment| experiment.keys() > 0);
    if experiments.is_empty() {
        return Err(Failure::Usage(
            "nothing is left to measure: no experiment has these suites (and, with --quick, small groups)".to_owned(),
        ));
    }
    Ok(experiments)
}

fn measure(experiments: &[Experiment]) -> Result<Vec<Row>, Failure> {
    let longest = experiments.iter().map(|experiment| experiment.time).max().unwrap_or(RAW_TIME);
    let mut bench = Bench::new(Clock::new(longest), Clock::new(longest.min(RAW_TIME)), random::generator()?);
    let mut primes: BTreeMap<u32, RsaPrimes> = BTreeMap::new();
    let bar = progress::bar(experiments.iter().map(Experiment::keys).sum());
    for experiment in experiments {
        bench.clock = Clock::new(experiment.time);
        for suite in &experiment.suites {
            for bits in experiment.moduli(*suite) {
                for threshold in &experiment.groups {
                    let size = bits.map(|bits| format!(" {bits} bits")).unwrap_or_default();
                    bar.set_message(format!("{suite}{size} {}/{}", threshold.k(), threshold.n()));
                    let mut rng = bench.generator();
                    let found = bits.map(|bits| find_primes(bits, &mut primes, &bar, &mut rng)).transpose()?;
                    let deal = |rng: &mut dyn CryptoRng| deal(*suite, *threshold, found, rng);
                    key(&mut bench, experiment, bits, &deal)?;
                    bar.inc(1);
                }
            }
        }
    }
    bar.finish_and_clear();
    Ok(bench.into_rows())
}

/// Measures every operation of one key.
fn key(
    bench: &mut Bench,
    experiment: &Experiment,
    bits: Option<u32>,
    deal: &dyn Fn(&mut dyn CryptoRng) -> Result<Key, Failure>,
) -> Result<(), Failure> {
    let mut rng = bench.generator();
    let (public, shares) = deal(&mut rng)?;
    let subject = Subject { experiment, public: &public, shares: &shares, bits };
    if experiment.wants(Operation::KeyGeneration) {
        let timing = bench.clock.repeat(|| deal(&mut rng));
        with_scheme!(public.suite(), |S| if any {
            bench.record::<S>(&subject, Operation::KeyGeneration, None, 0, timing);
        } else {
        });
    }
    let Some(share) = shares.first() else { return Err(Failure::internal("a key without shares")) };
    if !Operation::ALL.into_iter().any(|operation| operation != Operation::KeyGeneration && experiment.wants(operation))
    {
        return Ok(());
    }
    with_scheme!(public.suite(), |S| if one_round {
        match (public.get::<S>(), share.get::<S>()) {
            (Some(public), Some(key)) => one_round::run::<S>(bench, &subject, public, key),
            _ => Err(Failure::internal("a share of another key")),
        }
    } else {
        with_scheme!(public.suite(), |S| if frost {
            frost::run::<S>(bench, &subject)
        } else {
            // ECDSA: its signatures take what the holders compute together, which has no steps of one party to measure.
            Ok(())
        })
    })
}

fn deal(
    suite: Suite,
    threshold: Threshold,
    primes: Option<&RsaPrimes>,
    rng: &mut dyn CryptoRng,
) -> Result<Key, Failure> {
    match primes {
        Some(primes) => deal_rsa_primes(suite, primes, threshold, rng).map_err(Failure::internal),
        None => Ok(deal_any(suite, threshold, rng)),
    }
}

/// Finds primes once for each size, because finding them takes longer than everything else.
fn find_primes<'a>(
    bits: u32,
    known: &'a mut BTreeMap<u32, RsaPrimes>,
    bar: &ProgressBar,
    rng: &mut dyn CryptoRng,
) -> Result<&'a RsaPrimes, Failure> {
    let size = ModulusSize::try_from(bits).map_err(Failure::internal)?;
    Ok(known.entry(bits).or_insert_with(|| {
        bar.set_message(format!("looking for the safe primes of {bits} bits"));
        RsaPrimes::generate(size, &mut |_| bar.tick(), rng)
    }))
}

/// `--list`.
fn list(output: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Listed {
        experiments: Vec<&'static str>,
        suites: Vec<&'static str>,
        operations: Vec<&'static str>,
    }
    let listed = Listed {
        experiments: BUILT_IN.iter().map(|(name, _)| *name).collect(),
        suites: Suite::ALL.map(Suite::name).to_vec(),
        operations: Operation::ALL.map(Operation::name).to_vec(),
    };
    let experiments = BUILT_IN.iter().map(|(name, _)| Experiment::load(name)).collect::<Result<Vec<_>, _>>()?;
    output.result(&listed, |out| describe(&experiments, out))
}

fn describe(experiments: &[Experiment], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&["experiment", "keys", "what"], &[1]);
    for experiment in experiments {
        table.row([experiment.name.clone(), experiment.keys().to_string(), experiment.description.clone()]);
    }
    table.write(out)?;
    writeln!(out)?;
    let mut table = Table::new(&["suite", "kind", "what"], &[]);
    for suite in Suite::ALL {
        let kind = if is_rsa(suite) { "RSA".to_owned() } else { suite.group().to_owned() };
        table.row([suite.name().to_owned(), kind, suite.description().to_owned()]);
    }
    table.write(out)?;
    writeln!(out, "\noperations: {}", Operation::ALL.map(Operation::name).join(", "))
}
