//! `theta-dnssec-demo`: the demonstration of a zone that three operators sign together, none of whom has its keys, with a real Knot DNS.
//!
//! It does everything that `theta` does, so that the story needs one program besides Knot, and the PKCS#11 module that Knot loads.

mod agent;
mod agent_process;
mod knot_failure;
mod measure;
mod module;
mod name_server;
mod operators;
mod permission;
mod show;
mod story;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};
use theta::{
    cli::{ProductCommand, STYLES},
    connect,
    exit::{self, Failure},
    interrupt::{Unfinished, told_to_end},
    output::{self, Output},
};
use theta_cluster::this_program;

use self::{agent::AgentArgs, agent_process::AGENT, measure::MeasureArgs, story::Stage};

const MORE: &str =
    "Every command but demo and measure is theta's: cargo build --release makes target/release/theta, the product.";

/// A zone that three operators sign with Knot DNS, on this machine; none of them has its keys.
#[derive(Debug, Parser)]
#[command(
    name = "theta-dnssec-demo",
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
    /// Have a zone signed by three operators, and watch the one who runs the name server fail to falsify it
    Demo(DemoArgs),
    /// Measure how fast Knot DNS signs zones with keys of groups, beside SoftHSM and keys in files
    Measure(MeasureArgs),
    /// The agent of one operator, who has a copy of the zone
    #[command(hide = true, name = AGENT)]
    Agent(AgentArgs),
    #[command(flatten)]
    Product(ProductCommand),
}

/// Options of `theta-dnssec-demo demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask dns          unpacks Knot DNS (Debian's packages, once), builds this program and the module, and runs the demonstration
  theta-dnssec-demo demo   if Knot DNS and ldns-verify-zone are installed

Everything is real: three nodes of a group, three agents and one name server, each a process of its own; kills are SIGKILL.")]
struct DemoArgs {
    /// The PKCS#11 module [default: beside this program]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Directory to make for the operators, which stays [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    exit::main("theta-dnssec-demo", |cli: Cli| {
        let output = Output::new(cli.json);
        match cli.command {
            Command::Demo(args) => demo(&args, output),
            Command::Measure(args) => measure::run(args, output),
            Command::Agent(args) => agent::run(&args),
            Command::Product(command) => command.run(output),
        }
    })
}

fn demo(args: &DemoArgs, output: Output) -> Result<(), Failure> {
    if let Some(dir) = &args.dir {
        return play(args, dir, output);
    }
    let made = tempfile::Builder::new().prefix("theta-dnssec-").tempdir();
    let temporary = made.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
    let _unfinished = Unfinished::watch(temporary.path())?;
    let played = play(args, &temporary.path().join("zone"), output);
    // Logs are of use if something began and did not go on as it should.
    if matches!(&played, Err(failure) if !matches!(failure, Failure::Interrupted(_) | Failure::Usage(_))) {
        output::note(format_args!("the logs are below {}", temporary.keep().display()));
    }
    played
}

fn play(args: &DemoArgs, dir: &Path, output: Output) -> Result<(), Failure> {
    let stage = Stage { program: this_program()?, module: args.module.clone(), dir: dir.to_owned() };
    connect::runtime()?.block_on(async {
        let told = told_to_end()?;
        tokio::select! {
            played = story::play(&stage, output) => played,
            signal = told => Err(Failure::Interrupted(signal)),
        }
    })
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
