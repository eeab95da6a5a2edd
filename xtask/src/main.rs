//! The project's chores: `cargo xtask test` and those that `cargo xtask help` lists.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod debian;
mod fuzz;
mod packages;
mod sim;
mod steps;
mod suites;
mod tidy;
mod tools;
mod unsteady;

use std::{env, path::PathBuf, process::ExitCode};

const HELP: &str = "\
Chores of the project.

Usage: cargo xtask <COMMAND>

Commands:
  test    Everything that must hold: format, house rules, lints, licences, documentation, known answers, all tests
  parts   Finds, builds or unpacks the programs of other people that tests run (Knot, BIND, Krill, CometBFT and so on), once, into the
          user's cache folder; `test` does it by itself
  tidy    The house rules alone: dependency arrows, file sizes, dead files, broken links (seconds)
  bench   The benchmarks of bench/benches (minutes); figures are kept in bench/RESULTS.md
  proto   Generates the code of crates/wire from its .proto files, after one of them was changed
  fuzz    The fuzz targets of fuzz/, 20 seconds each; with --seconds N another time, with TARGET that one alone
  sim     Runs of whole simulated groups: --seeds N of them (default: 10,000), the first being --from S (default: 0); with --ledger about its ledger
  attack  Groups of real nodes (release build) attacked one way after another, and a table of what held; with --short the
          dev build and small loads (five minutes), with --only NAME one attack, with --list what there is, with --json for programs
  monitoring  Alerts and dashboard of monitoring/, with a real Prometheus that watches a group whose nodes die (a minute)
  chain   A CometBFT chain whose transactions are encrypted until they are ordered (release build); --json for programs
  dns     A zone that three operators sign with Knot DNS, none of whom has its keys (release build); --json for programs
  real dns
          How fast Knot DNS signs zones of 1,000 and 100,000 names with keys of groups, beside SoftHSM and keys in files (release build; hours);
          words after it are those of theta-dnssec-demo measure, as --names 1000 --groups 2of3
  real rpki
          How many ROAs a second five registries issue, whose agents look at each (release build; half an hour, most of it for keys); words after
          it are those of theta-rpki-demo measure, as --roas 100 --keys 10; --json for programs
  rpki    Routes that five registries sign, and that none of them can forge or withdraw (release build); --json for programs
  help    This text

Environment for `test`:
  THETA_SEEDS=N   how many seeded runs the simulator tests make (default: a few thousand)
  THETA_SEED=S    replay one seed

Exit status: 0 all good, 1 something failed, 2 the command was not understood.
";

fn main() -> ExitCode {
    let root = root();
    let mut arguments = env::args().skip(1);
    let command = arguments.next();
    let done = match command.as_deref() {
        Some("test") => steps::test(&root),
        Some("parts") => steps::parts(&root),
        Some("tidy") => steps::tidy(&root),
        Some("bench") => steps::bench(&root),
        Some("fuzz") => match fuzz::Options::parse(arguments) {
            Ok(options) => fuzz::fuzz(&root, &options),
            Err(problem) => {
                eprintln!("error: {problem}");
                return ExitCode::from(2);
            }
        },
        Some("sim") => match sim::Options::parse(arguments) {
            Ok(options) => sim::sim(&root, &options),
            Err(problem) => {
                eprintln!("error: {problem}");
                return ExitCode::from(2);
            }
        },
        Some("proto") => steps::proto(&root),
        Some("attack") => steps::attack(&root, &arguments.collect::<Vec<_>>()),
        Some("monitoring") => steps::monitoring(&root),
        Some("chain") => steps::chain(&root, &arguments.collect::<Vec<_>>()),
        Some("dns") => steps::dns(&root, &arguments.collect::<Vec<_>>()),
        Some("real") => match arguments.next().as_deref() {
            Some("dns") => steps::real_dns(&root, &arguments.collect::<Vec<_>>()),
            Some("rpki") => steps::real_rpki(&root, &arguments.collect::<Vec<_>>()),
            _ => {
                eprintln!("error: real of what? the commands are real dns and real rpki");
                return ExitCode::from(2);
            }
        },
        Some("rpki") => steps::rpki(&root, &arguments.collect::<Vec<_>>()),
        Some("help" | "--help" | "-h") | None => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!(
                "error: no command {other:?}; the commands are test, parts, tidy, bench, proto, fuzz, sim, attack, monitoring, chain, dns, rpki, real dns, real rpki, help"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("\nerror: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's folder, which is the parent of this crate's.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}
