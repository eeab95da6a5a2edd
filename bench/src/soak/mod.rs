//! `theta-bench soak`: hours of requests to a group whose nodes are killed and frozen.

mod faults;
mod ledger;
mod traffic;

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use clap::Args;
use theta::{
    connect::Session,
    exit::Failure,
    group::plan::{self, Plan},
    interrupt::Unfinished,
    keys::NamedKey,
    output::{self, Output},
    units,
};
use theta_cluster::{Cluster, Lifetime, this_program};
use tokio::time::{self, Instant};

use self::{
    faults::{Faults, Plague},
    ledger::Ledger,
    traffic::Traffic,
};
use super::{
    drive::{self, Pace},
    process,
    requests::{Operation, Pool},
};

/// How often figures are recorded.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long the surge takes.
const SURGE: Duration = Duration::from_secs(30);
/// The operations, in turn: ciphertexts, signatures, coins.
const MIX: [Operation; 3] = [Operation::Decapsulate, Operation::Sign, Operation::Coin];
/// The size of plaintexts and messages, in bytes.
const SIZE: usize = 1024;

/// Options of `theta-bench soak`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-bench soak                                     half an hour, 7 nodes, any 3
  theta-bench soak --duration 2m --every 10s --down 3s    a short one
  theta-bench soak --rate 150 --surge 4 --csv soak.csv

Ciphertexts, signatures and coins are asked for in turn, each another one, at a fixed rate: by default 70 % of what the \
group answers at most, which is measured first. At each --every a node drawn at random is killed with SIGKILL, or frozen with \
SIGSTOP every other time, and comes back after --down; the first --spare nodes are left alone, so that their memory can \
be followed for the whole time. After an eighth of the time the rate rises by the factor --surge for 30 s, which must be refused \
cleanly and pass. Every answer is checked; one in a hundred signatures and coins is asked for again a minute later and must be \
the same. Ends with code 1 if a request outside the surge was lost, if an answer was wrong, or if memory grew.")]
pub(crate) struct SoakArgs {
    /// How many nodes
    #[arg(long, value_name = "N", default_value_t = 7)]
    nodes: u16,
    /// How many of them it takes
    #[arg(long, value_name = "K", default_value_t = 3)]
    threshold: u16,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = units::parse_duration)]
    duration: Duration,
    /// Requests a second [default: 70 % of what the group answers at most]
    #[arg(long, value_name = "N")]
    rate: Option<NonZeroU32>,
    /// How often a node is killed or frozen
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::parse_duration)]
    every: Duration,
    /// How long it stays away
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::parse_duration)]
    down: Duration,
    /// How many nodes are left alone
    #[arg(long, value_name = "N", default_value_t = 1)]
    spare: u16,
    /// By what the rate is multiplied for 30 s after an eighth of the time; 1: not at all
    #[arg(long, value_name = "FACTOR", default_value_t = 4)]
    surge: u32,
    /// Write the figures of every ten seconds
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

impl SoakArgs {
    fn check(&self) -> Result<(), Failure> {
        let least = self.threshold.saturating_add(1).max(self.spare.saturating_add(1));
        if self.nodes < least {
            return Err(Failure::Usage(format!(
                "--nodes {}: with one node away, {} must be left and one must not be spared: give at least {least}",
                self.nodes, self.threshold
            )));
        }
        if self.down >= self.every || self.surge == 0 {
            return Err(Failure::Usage(
                "--down must be shorter than --every, so that one node is away at a time; --surge is 1 or more".into(),
            ));
        }
        Ok(())
    }
}

/// `theta-bench soak`.
pub(crate) fn run(args: &SoakArgs, output: Output) -> Result<(), Failure> {
    args.check()?;
    let home = tempfile::Builder::new().prefix("theta-soak-").tempdir();
    let home = home.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
    let _unfinished = Unfinished::watch(home.path())?;
    let plan = Plan::new(args.nodes, args.threshold, plan::default_keys())?;
    let mut cluster = Cluster::create(this_program()?, &home.path().join("group"), &plan, Lifetime::Tied)?;
    cluster.start_all()?;
    // A request may have to wait for a node that is away.
    let session = Session::open(&cluster.client_dir(), Duration::from_secs(30))?;
    session.block_on(cluster.listening(Duration::from_secs(30)))?;
    let keys = MIX.map(|operation| session.keyring().choose(None, operation.purpose()).map(|key| (operation, key)));
    let keys = keys.into_iter().collect::<Result<Vec<_>, _>>()?;
    let rate = match args.rate {
        Some(rate) => f64::from(rate.get()),
        None => 0.7 * most(&session, &keys)?,
    };
    output::note(format_args!("{rate:.0} requests a second for {}", units::human(args.duration)));
    let ledger = session.block_on(soak(args, &session, &keys, rate, &mut cluster))?;
    if let Some(path) = &args.csv {
        ledger.write_csv(path)?;
    }
    let summary = ledger.sum_up();
    output.result(&summary, |out| summary.write(out))?;
    summary.verdict()
}

/// The most requests a second that the group answers, over all kinds in turn.
fn most(session: &Session, keys: &[(Operation, NamedKey)]) -> Result<f64, Failure> {
    const COUNT: u32 = 2_000;
    let mut seconds = 0.0;
    for (operation, key) in keys {
        output::note(format_args!("what does the group answer at most? {operation} with the key {}", key.name));
        let pool = std::sync::Arc::new(Pool::make(*operation, key, SIZE as u64, COUNT)?);
        session.block_on(drive::warm_up(session.client(), &pool))?;
        let pace = Pace::Closed { workers: 32, batch: 1 };
        let run = session.block_on(drive::run(session.client(), &pool, pace, Duration::from_secs(10)))?;
        let answered = u32::try_from(run.samples.len()).map_err(Failure::internal)?;
        seconds += run.elapsed.as_secs_f64() / f64::from(answered.max(1));
    }
    let kinds = u32::try_from(keys.len()).map_err(Failure::internal)?;
    Ok(f64::from(kinds) / seconds.max(1e-9))
}

async fn soak(
    args: &SoakArgs,
    session: &Session,
    keys: &[(Operation, NamedKey)],
    rate: f64,
    cluster: &mut Cluster,
) -> Result<Ledger, Failure> {
    let begin = Instant::now();
    let end = begin + args.duration;
    // The surge comes early, so that both quarters that are compared include the memory that it takes.
    let surge_begins = begin + args.duration / 8;
    let mut ledger = Ledger::new(rate, begin, args.spare)?;
    let mut faults = Faults::new(args, begin)?;
    let mut traffic = Traffic::start(session.client(), keys, rate)?;
    let mut interval = time::interval_at(begin + INTERVAL, INTERVAL);
    let mut surge = (args.surge > 1).then_some(surge_begins);
    let mut calm = None;
    loop {
        tokio::select! {
            sample = traffic.next() => ledger.take(sample?),
            _ = interval.tick() => {
                let memory = cluster.pids().into_iter().map(|(node, pid)| (node, process::memory(pid)));
                let row = ledger.close_interval(memory)?;
                output::note(format_args!("{row}"));
                if Instant::now() >= end {
                    break;
                }
            }
            plague = faults.next() => match plague? {
                Plague::Begins(what) => {
                    what.befall(cluster)?;
                    ledger.note_fault(&what);
                }
                Plague::Ends(what) => what.end(cluster)?,
            },
            () = at(surge) => {
                surge = None;
                calm = Some(Instant::now() + SURGE);
                traffic.set_rate(rate * f64::from(args.surge));
                ledger.begin_surge();
            }
            () = at(calm) => {
                calm = None;
                traffic.set_rate(rate);
                ledger.end_surge();
            }
        }
    }
    // A frozen node goes on, and the last requests are answered.
    faults.end_all(cluster)?;
    for sample in traffic.stop().await? {
        ledger.take(sample);
    }
    Ok(ledger)
}

/// Waits until a moment, or for ever without one.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
