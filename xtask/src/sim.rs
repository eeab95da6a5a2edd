//! `cargo xtask sim`: many runs of simulated groups, on all cores.

use std::path::Path;
use std::process::Command;

use crate::steps::run;

/// What to run, from the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    seeds: u64,
    from: u64,
    /// Whether the scenarios are about the group's ledger.
    ledger: bool,
}

impl Options {
    /// Reads `[--ledger] [--seeds N] [--from S]`.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { seeds: 10_000, from: 0, ledger: false };
        while let Some(argument) = arguments.next() {
            let place = match argument.as_str() {
                "--ledger" => {
                    options.ledger = true;
                    continue;
                }
                "--seeds" => &mut options.seeds,
                "--from" => &mut options.from,
                _ => {
                    let usage = "cargo xtask sim [--ledger] [--seeds N] [--from S]";
                    return Err(format!("{argument:?} is not understood: {usage}"));
                }
            };
            let number = arguments.next().and_then(|number| number.parse().ok());
            *place = number.ok_or_else(|| format!("{argument} takes a number"))?;
        }
        Ok(options)
    }
}

/// Builds the simulator with optimisation and runs the seeds. Any violation is a failure, and its seed is shown.
pub(crate) fn sim(root: &Path, options: &Options) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args(["run", "--release", "--package", "theta-sim", "--"]);
    command.args(["--seeds", &options.seeds.to_string(), "--from", &options.from.to_string()]);
    command.args(options.ledger.then_some("--ledger"));
    run(root, command)
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_read_or_explained() {
        assert_eq!(parse(""), Ok(Options { seeds: 10_000, from: 0, ledger: false }));
        assert_eq!(parse("--seeds 5 --from 7"), Ok(Options { seeds: 5, from: 7, ledger: false }));
        assert_eq!(parse("--ledger --seeds 5"), Ok(Options { seeds: 5, from: 0, ledger: true }));
        for wrong in ["--seeds", "--seeds x", "--from -1", "5", "--trace"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
