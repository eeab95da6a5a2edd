//! `theta-monitoring`: checks the alerts and the dashboard of this folder with a real Prometheus that watches a real group.
//!
//! Rules are checked by `promtool` first: their syntax, and `alerts.test.yml`. Then every expression of rules and dashboard is
//! asked of a Prometheus that scrapes four nodes at work, and nodes are killed: the alerts that should become pending do, and no
//! other; when the nodes are back there is none.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod check;
mod expressions;
mod prometheus;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;

/// Checks alerts and dashboard with a real Prometheus that watches a real group.
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 all is as it should be, 1 something is not, 2 the check could not be made.")]
struct Arguments {
    /// The folder with alerts.yml, alerts.test.yml, prometheus.yml and dashboard.json
    #[arg(long, value_name = "DIR", default_value = "monitoring")]
    files: PathBuf,
    /// The folder with the programs prometheus and promtool [default: they are found by PATH]
    #[arg(long, value_name = "DIR")]
    prometheus: Option<PathBuf>,
    /// The program that nodes run [default: theta beside this program]
    #[arg(long, value_name = "FILE")]
    theta: Option<PathBuf>,
}

/// Why the check did not end well.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// Something that the check is about.
    #[error("{0}")]
    Wrong(String),
    /// The check could not be made.
    #[error("{0}")]
    Impossible(String),
}

impl From<theta::exit::Failure> for Trouble {
    fn from(failure: theta::exit::Failure) -> Self {
        Self::Impossible(failure.to_string())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let checked = runtime
        .map_err(|error| Trouble::Impossible(format!("no runtime: {error}")))
        .and_then(|runtime| runtime.block_on(check::check(&arguments)));
    match checked {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("error: {trouble}");
            ExitCode::from(if matches!(trouble, Trouble::Wrong(_)) { 1 } else { 2 })
        }
    }
}
