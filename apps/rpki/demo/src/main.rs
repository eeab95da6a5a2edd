//! `theta-rpki-demo`: the demonstration of an RPKI that five registries run together, none of whom has its keys; `rpki-client` says what a router
//! would be told.
//!
//! It does everything that `theta` does, and has the agents, the issuer and the publisher, so that the story needs no other program of ours.

mod agent;
mod measure;
mod member;
mod readers;
mod registries;
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

use self::{agent::AgentArgs, measure::MeasureArgs, story::Stage};

/// The agent of one registry. A name that no typing error comes near to, so that it is never suggested.
const AGENT: &str = "_x_agent";

const MORE: &str =
    "Every command but demo and measure is theta's: cargo build --release makes target/release/theta, the product.";

/// An RPKI that five registries run together, on this machine; none of them has its keys.
#[derive(Debug, Parser)]
#[command(
    name = "theta-rpki-demo",
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
    /// Have a route origin signed by five registries, and watch the one that runs the issuer fail to withdraw it and to forge another
    Demo(DemoArgs),
    /// Measure how many objects a second five registries issue
    Measure(MeasureArgs),
    /// The agent of one registry, with its own data
    #[command(hide = true, name = AGENT)]
    Agent(AgentArgs),
    #[command(flatten)]
    Product(ProductCommand),
}

/// Options of `theta-rpki-demo demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask rpki       unpacks rpki-client and rsync (Debian's packages, once), builds this program, and runs the demonstration
  theta-rpki-demo demo   if rpki-client and rsync are installed

Everything is real: five nodes of a group and five agents, each a process of its own, rsync, and rpki-client; kills are SIGKILL.")]
struct DemoArgs {
    /// Directory to make for the registries, which stays [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    exit::main("theta-rpki-demo", |cli: Cli| {
        let output = Output::new(cli.json);
        match cli.command {
            Command::Demo(args) => demo(&args, output),
            Command::Measure(args) => measure::run(&args, output),
            Command::Agent(args) => agent::run(&args),
            Command::Product(command) => command.run(output),
        }
    })
}

fn demo(args: &DemoArgs, output: Output) -> Result<(), Failure> {
    in_a_directory(args.dir.as_deref(), |dir| play(dir, output))
}

/// Does something in a directory that does not exist, or in a temporary one.
fn in_a_directory(dir: Option<&Path>, play: impl Fn(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    if let Some(dir) = dir {
        return play(dir);
    }
    let made = tempfile::Builder::new().prefix("theta-rpki-").tempdir();
    let temporary = made.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
    let _unfinished = Unfinished::watch(temporary.path())?;
    let played = play(&temporary.path().join("rpki"));
    // Logs are of use if something began and did not go on as it should.
    if matches!(&played, Err(failure) if !matches!(failure, Failure::Interrupted(_) | Failure::Usage(_))) {
        output::note(format_args!("the logs are below {}", temporary.keep().display()));
    }
    played
}

fn play(dir: &Path, output: Output) -> Result<(), Failure> {
    let stage = Stage { program: this_program()?, dir: dir.to_owned() };
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
