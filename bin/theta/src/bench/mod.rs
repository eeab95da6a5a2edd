//! `theta bench`: measurements of a running group, and of the mathematics alone.

mod drive;
pub(crate) mod latency;
mod load;
mod micro;
mod process;
mod report;
mod requests;
mod soak;

use clap::Subcommand;

use crate::{exit::Failure, output::Output};

/// See [`crate::cli`].
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Put a group under load: throughput, latency, CPU and memory
    Load(load::LoadArgs),
    /// Load a group for a long time while its nodes are killed, frozen and flooded: nothing lost, nothing wrong, memory flat
    Soak(soak::SoakArgs),
    /// Measure every step of every scheme on this machine: time, size, memory; a table and plots
    Micro(micro::MicroArgs),
}

impl BenchCommand {
    /// Does it.
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Load(args) => load::run(&args, output),
            Self::Soak(args) => soak::run(&args, output),
            Self::Micro(args) => micro::run(&args, output),
        }
    }
}
