//! `theta-sim`: runs of whole groups, many or one again.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use theta_sim::{Distances, Observation, Observations, Outcome, Scenario, run};
use theta_wan::Profile;

/// Runs whole groups of nodes on an imagined network, clock and disk.
#[derive(Debug, Parser)]
struct Arguments {
    /// Runs this seed alone, and shows its scenario.
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// With --seed: shows all that happens.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Runs so many seeds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Scenarios about the group's ledger, and ceremonies that begin and end by it.
    #[arg(long)]
    ledger: bool,
    /// Lets messages take as long as between real places: a profile of theta-wan (lan, regional, four-regions, continents, or a
    /// file), a tick being a millisecond.
    #[arg(long, value_name = "PROFILE", value_parser = distances)]
    profile: Option<Distances>,
    /// Lets messages go through hosts that lose, double, delay, bend and repeat what they carry. Not beside --ledger.
    #[arg(long, conflicts_with = "ledger")]
    hosts: bool,
    /// Lets the nodes' hosts have a chain, by whose order slots are promised; it stands still, and forks. Not beside --ledger.
    #[arg(long, conflicts_with = "ledger")]
    chain: bool,
    /// How many run at once; 0 for as many as there are cores.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let well = match arguments.seed {
        Some(seed) => one(&arguments.scenario(seed), arguments.trace),
        None => many(&arguments),
    };
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Arguments {
    fn scenario(&self, seed: u64) -> Scenario {
        let drawn = if self.ledger { Scenario::of_ledger(seed) } else { Scenario::of(seed) };
        let drawn = if self.chain { drawn.with_chain() } else { drawn };
        Scenario { distances: self.profile.clone(), hosts: self.hosts, ..drawn }
    }
}

fn distances(name: &str) -> Result<Distances, String> {
    Profile::find(name).map(Distances::new).map_err(|error| error.to_string())
}

/// Runs one seed; returns whether everything held.
fn one(scenario: &Scenario, trace: bool) -> bool {
    let seed = scenario.seed;
    println!("{scenario:#?}");
    let outcome = run(scenario, true);
    if trace || outcome.violation.is_some() {
        outcome.lines.iter().for_each(|line| println!("{line}"));
    }
    let (results, ceremonies, events) = (outcome.results, outcome.ceremonies, outcome.events);
    println!(
        "seed {seed}: {events} events, {results} results, {ceremonies} ends of ceremonies, trace {:016x}",
        outcome.trace
    );
    match &outcome.violation {
        None => println!("all held"),
        Some(violation) => println!("{violation}"),
    }
    outcome.violation.is_none()
}

/// What many runs came to.
#[derive(Default)]
struct Sum {
    done: u64,
    events: u64,
    results: u64,
    observations: Observations,
    /// The seeds that failed.
    failures: Vec<u64>,
}

impl Sum {
    fn add(&mut self, seed: u64, outcome: &Outcome) {
        self.done += 1;
        self.events += outcome.events;
        self.results += outcome.results as u64;
        self.observations.absorb(&outcome.observations);
        if let Some(violation) = &outcome.violation {
            println!("seed {seed}: {violation}");
            self.failures.push(seed);
        }
    }

    fn print(&self, from: u64, seconds: u64) {
        let count = |observation| self.observations.count(observation);
        let (begun, activated) = (count(Observation::Begun), count(Observation::Activated));
        let (recovered, aborted) = (count(Observation::Recovered), count(Observation::Aborted));
        let (replaced, renewed) = (count(Observation::Replaced), count(Observation::Renewed));
        let (joined, left) = (count(Observation::Joined), count(Observation::Left));
        let entries = count(Observation::Adopted)
            + begun
            + activated
            + recovered
            + aborted
            + replaced
            + renewed
            + joined
            + left
            + count(Observation::OtherEntry);
        let (crashes, partitions) = (count(Observation::Crashed), count(Observation::Parted));
        let (set_back, confirmed) = (count(Observation::SetBack), count(Observation::Confirmed));
        let (followed, false_ones) = (count(Observation::Followed), count(Observation::FalseAnswer));
        println!(
            "ledger: {entries} entries decided, of them {begun} begins of ceremonies, which ended: {activated} with new shares, \
             {recovered} with a lost share, {aborted} with nothing"
        );
        println!(
            "members: {replaced} machines replaced, of which {} came back and {} were run by thieves, {} of the others with a share in the end; \
             {renewed} cards renewed; {} messages of or to machines without a place not taken",
            count(Observation::CameBack),
            count(Observation::RunByThief),
            count(Observation::ShareRegained),
            count(Observation::Unseated)
        );
        println!(
            "members: {joined} joined, {left} left; {} warrants signed, {} entries decided under them",
            count(Observation::Warranted),
            count(Observation::ByWarrant)
        );
        println!("clients: {followed} entries believed, {false_ones} false answers refused");
        println!(
            "faults: {crashes} crashes, {partitions} partitions, {set_back} stores set back, {confirmed} confirmed"
        );
        let lies: Vec<String> = self.observations.lies().map(|(kind, times)| format!("{kind} {times}")).collect();
        println!("lies: {}", lies.join(", "));
        println!(
            "slowest, in ticks with a quorum connected: entry at all {}, ceremony {}, everything {}",
            count(Observation::SlowestSpread),
            count(Observation::SlowestCeremony),
            count(Observation::SlowestEnd)
        );
        println!(
            "{} seeds from {from}: {} events, {} results, {seconds} s, {} violations",
            self.done,
            self.events,
            self.results,
            self.failures.len()
        );
        if !self.failures.is_empty() {
            println!("replay with: cargo run --release -p theta-sim -- --trace --seed SEED, for {:?}", self.failures);
        }
    }
}

/// Runs many seeds on all cores; returns whether everything held in all of them.
fn many(arguments: &Arguments) -> bool {
    let cores = thread::available_parallelism().map_or(1, core::num::NonZeroUsize::get);
    let jobs = if arguments.jobs == 0 { cores } else { arguments.jobs };
    let until = arguments.from.saturating_add(arguments.seeds);
    let (next, sum, began) = (AtomicU64::new(arguments.from), Mutex::new(Sum::default()), Instant::now());
    let lock = || sum.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= until {
                return;
            }
            let outcome = run(&arguments.scenario(seed), false);
            lock().add(seed, &outcome);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let mut told = 0;
        while workers.iter().any(|worker| !worker.is_finished()) {
            thread::sleep(Duration::from_millis(200));
            let seconds = began.elapsed().as_secs();
            if seconds >= told + 10 {
                told = seconds;
                eprintln!("{} of {} seeds, {seconds} s", lock().done, arguments.seeds);
            }
        }
        for worker in workers {
            if worker.join().is_err() {
                lock().failures.push(u64::MAX);
            }
        }
    });
    let mut sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    sum.failures.sort_unstable();
    sum.print(arguments.from, began.elapsed().as_secs());
    sum.failures.is_empty()
}
