//! `theta-sim`: runs of whole groups, many or one again.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use theta_sim::{Scenario, run};

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
    /// How many run at once; 0 for as many as there are cores.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let well = match arguments.seed {
        Some(seed) => one(seed, arguments.trace),
        None => many(&arguments),
    };
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one seed; returns whether everything held.
fn one(seed: u64, trace: bool) -> bool {
    let scenario = Scenario::of(seed);
    println!("{scenario:#?}");
    let outcome = run(&scenario, true);
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

/// Runs many seeds on all cores; returns whether everything held in all of them.
fn many(arguments: &Arguments) -> bool {
    let cores = thread::available_parallelism().map_or(1, core::num::NonZeroUsize::get);
    let jobs = if arguments.jobs == 0 { cores } else { arguments.jobs };
    let until = arguments.from.saturating_add(arguments.seeds);
    let [next, done, events, results, ceremonies] = [arguments.from, 0, 0, 0, 0].map(AtomicU64::new);
    let (failures, over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let began = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= until {
                            return;
                        }
                        let outcome = run(&Scenario::of(seed), false);
                        done.fetch_add(1, Ordering::Relaxed);
                        events.fetch_add(outcome.events, Ordering::Relaxed);
                        results.fetch_add(outcome.results as u64, Ordering::Relaxed);
                        ceremonies.fetch_add(outcome.ceremonies as u64, Ordering::Relaxed);
                        if let Some(violation) = outcome.violation {
                            println!("seed {seed}: {violation}");
                            failures.lock().unwrap_or_else(PoisonError::into_inner).push(seed);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(200));
                let (done, seconds) = (done.load(Ordering::Relaxed), began.elapsed().as_secs());
                if seconds.is_multiple_of(10) && seconds > 0 && began.elapsed().subsec_millis() < 200 {
                    eprintln!("{done} of {} seeds, {seconds} s", arguments.seeds);
                }
            }
        });
        for worker in workers {
            if worker.join().is_err() {
                failures.lock().unwrap_or_else(PoisonError::into_inner).push(u64::MAX);
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_unstable();
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    println!(
        "{} seeds from {}: {} events, {} results, {} ends of ceremonies, {} s, {} violations",
        count(&done),
        arguments.from,
        count(&events),
        count(&results),
        count(&ceremonies),
        began.elapsed().as_secs(),
        failures.len()
    );
    if !failures.is_empty() {
        println!("replay with: cargo run --release -p theta-sim -- --trace --seed SEED, for {failures:?}");
    }
    failures.is_empty()
}
