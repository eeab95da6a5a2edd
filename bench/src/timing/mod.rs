//! `theta-bench timing`: whether the time of the steps on secrets depends on the secrets.

mod dudect;
mod report;
mod targets;

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde::Serialize;
use theta::{
    exit::Failure,
    output::{self, Output, Table},
    random,
};

use self::{
    dudect::Trial,
    report::{Row, Summary, write_files, write_table},
    targets::Target,
};
use crate::{machine::Machine, progress};

/// Options of `theta-bench timing`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta-bench timing                                   everything, each step for 10 s
  theta-bench timing --only 'ot-*' --seconds 60        oblivious transfer, well
  theta-bench timing --only p256-mul --seconds 600
  theta-bench timing --list                            what is tested

For each step, times with a fixed secret and with random ones are compared by Welch's t-test: |t| over 10 leaks, over 4.5 is suspect, if it \
grows with the time. Four steps that leak on purpose are always there, and have to be found. Ends with exit code 1 if anything else leaks, if \
they are not found, or if a step has too few measurements to say anything of it. Measure on a machine that does nothing else.")]
pub(crate) struct TimingArgs {
    /// Test these steps only: a name, or a beginning and *; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// How long to test each step, with what has to be prepared for it
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Write results.csv and machine.txt here, too
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// List the steps, and test nothing
    #[arg(long)]
    list: bool,
}

/// `theta-bench timing`.
pub(crate) fn run(args: &TimingArgs, output: Output) -> Result<(), Failure> {
    let targets = chosen(targets::all(), &args.only)?;
    if args.list {
        return list(&targets, output);
    }
    let machine = Machine::look();
    if cfg!(debug_assertions) {
        output::note("this is a debug build: what is found in it says nothing of a release");
    }
    let rows = test(&targets, Duration::from_secs(args.seconds))?;
    if let Some(folder) = &args.out {
        write_files(folder, &machine, &rows)?;
    }
    let summary = Summary { machine: &machine, seconds: args.seconds, steps: &rows };
    output.result(&summary, |out| write_table(&rows, out))?;
    report::verdict(&rows)
}

/// The controls, and the targets that a pattern names; all without patterns.
fn chosen(all: Vec<Target>, patterns: &[String]) -> Result<Vec<Target>, Failure> {
    let fits = |name: &str, pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    if let Some(pattern) = patterns.iter().find(|pattern| !all.iter().any(|target| fits(&target.name, pattern))) {
        return Err(Failure::Usage(format!(
            "no step is called {pattern:?}: theta-bench timing --list names them, and a beginning with a * means several"
        )));
    }
    let is_chosen = |target: &Target| patterns.is_empty() || patterns.iter().any(|it| fits(&target.name, it));
    Ok(all.into_iter().filter(|target| target.is_control || is_chosen(target)).collect())
}

/// Tests each target for a time.
fn test(targets: &[Target], time: Duration) -> Result<Vec<Row>, Failure> {
    let mut rng = random::generator()?;
    let bar = progress::bar(targets.len());
    let mut rows = Vec::with_capacity(targets.len());
    for target in targets {
        bar.set_message(target.name.clone());
        let mut trial = Trial::new(time, target.is_control, ChaCha20Rng::from_rng(&mut rng));
        (target.run)(&mut trial)?;
        let row = Row::new(target, &trial.outcome());
        bar.println(row.line());
        rows.push(row);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(rows)
}

/// `--list`.
fn list(targets: &[Target], output: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Listed<'a> {
        step: &'a str,
        classes: &'static str,
        control: bool,
    }
    let listed: Vec<_> = targets
        .iter()
        .map(|target| Listed { step: &target.name, classes: target.classes, control: target.is_control })
        .collect();
    output.result(&listed, |out| describe(targets, out))
}

fn describe(targets: &[Target], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&["step", "fixed, or random", ""], &[]);
    for target in targets {
        let remark = if target.is_control { "leaks on purpose" } else { "" };
        table.row([target.name.clone(), target.classes.to_owned(), remark.to_owned()]);
    }
    table.write(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(patterns: &[&str]) -> Result<Vec<String>, Failure> {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        Ok(chosen(targets::all(), &patterns)?.into_iter().map(|target| target.name).collect())
    }

    #[test]
    fn steps_are_chosen_by_name_and_beginning_and_controls_always() {
        let controls = ["control-comparison", "control-vartime-mul", "control-part", "control-opening"];
        assert_eq!(names(&["p256-mul"]).unwrap(), [&controls[..], &["p256-mul"]].concat());
        let several = names(&["p256-mul*", "rsa-power"]).unwrap();
        assert_eq!(several, [&controls[..], &["p256-mul", "p256-mul-base", "rsa-power"]].concat());
        assert_eq!(names(&["control-*"]).unwrap(), controls);
        assert_eq!(names(&[]).unwrap().len(), targets::all().len());
    }

    #[test]
    fn a_name_that_there_is_not_is_named() {
        let refused = names(&["p256-mul", "p257-*"]);
        assert!(matches!(refused, Err(Failure::Usage(text)) if text.contains("\"p257-*\"")));
    }
}
