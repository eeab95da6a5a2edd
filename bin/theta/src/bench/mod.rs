//! `theta bench`: measurements of a running group.

mod drive;
pub(crate) mod latency;
mod load;
mod process;
mod report;
mod requests;

use clap::Subcommand;

use crate::{exit::Failure, output::Output};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Put a group under load: throughput, latency, CPU and memory
    Load(load::LoadArgs),
}

impl BenchCommand {
    /// Does it.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Load(args) => load::run(&args, output),
        }
    }
}
