//! `theta-bench` measures running groups, and the cryptography alone.

mod ceremony;
mod drive;
mod ecdsa;
mod lab;
mod load;
mod machine;
mod micro;
mod process;
mod progress;
mod report;
mod requests;
#[cfg(target_os = "linux")]
mod rest;
mod rules;
mod soak;
mod suites;
mod svg;
mod timing;
mod wan;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use theta::{cli::STYLES, exit, exit::Failure, node::NodeCommand, output::Output};

const MORE: &str =
    "bench/README.md says what the figures mean. Primitives, beside other implementations: cargo xtask bench.";

/// Measures Thetacrypt: what a group of nodes bears, and what every step of every scheme costs.
#[derive(Debug, Parser)]
#[command(
    name = "theta-bench",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 110,
    styles = STYLES,
    after_help = MORE,
    after_long_help = format!("{MORE}\n\n{}", exit::EXIT_CODES),
)]
struct Cli {
    /// Print results as JSON, one object on one line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a group under load: throughput, latency, CPU and memory
    Load(Box<load::LoadArgs>),
    /// Load a group for a long time while its nodes are killed, frozen and flooded: nothing lost, nothing wrong, memory flat
    Soak(soak::SoakArgs),
    /// Let a group make a key: time, CPU, memory and bytes of every node
    Ceremony(ceremony::CeremonyArgs),
    /// Measure what a group costs until its first answer, and when nobody asks
    #[cfg(target_os = "linux")]
    Rest(rest::RestArgs),
    /// What a group bears: rates doubled until it is saturated; its knee and its usable capacity
    Capacity(lab::LabArgs),
    /// A group at its knee: latencies by node, how fair they are, and where the time goes
    Steady(lab::LabArgs),
    /// Payloads of any size, one request under way
    Payload(lab::LabArgs),
    /// The network alone: round trips by transport, groups that start, keys that they make
    Network(lab::LabArgs),
    /// Make the report of a folder of results again
    Report(lab::ReportArgs),
    /// Measure every step of every scheme on this machine: time, size, memory; a table and plots
    Micro(micro::MicroArgs),
    /// Threshold ECDSA on every black box: keys, tuples, signatures; over sockets, or in a model of far networks
    Ecdsa(ecdsa::EcdsaArgs),
    /// Test whether the time of the steps on secrets depends on the secrets, by dudect; fails if it does
    Timing(timing::TimingArgs),
    /// The process that has the group of a scenario, and does what it is told
    #[command(hide = true)]
    Measure,
    /// The nodes of the groups that are made here: those of theta
    #[command(subcommand, hide = true)]
    Node(NodeCommand),
}

impl Cli {
    fn run(self) -> Result<(), Failure> {
        let output = Output::new(self.json);
        match self.command {
            Command::Load(args) => load::run(&args, output),
            Command::Soak(args) => soak::run(&args, output),
            Command::Ceremony(args) => ceremony::run(&args, output),
            #[cfg(target_os = "linux")]
            Command::Rest(args) => rest::run(&args, output),
            Command::Capacity(args) => lab::capacity(&args, output),
            Command::Steady(args) => lab::steady(&args, output),
            Command::Payload(args) => lab::payload(&args, output),
            Command::Network(args) => lab::network(&args, output),
            Command::Report(args) => lab::report(&args, output),
            Command::Measure => lab::measure(),
            Command::Micro(args) => micro::run(&args, output),
            Command::Ecdsa(args) => ecdsa::run(&args, output),
            Command::Timing(args) => timing::run(&args, output),
            Command::Node(command) => command.run(output),
        }
    }
}

fn main() -> ExitCode {
    exit::main("theta-bench", Cli::run)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
