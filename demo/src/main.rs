//! `theta-demo`: a real network on this machine, at work, with a node that dies and one that lies.
//!
//! It does everything that `theta` does, so that `cargo run` at the root of the project needs one program only; what it has
//! beyond the product is the demo, and the liar, which no build of the product contains.

mod acts;
mod every;
mod independent;
mod keeping;
mod liar;
mod material;
mod other;
mod show;
mod work;

use std::{
    future::Future,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use tempfile::TempDir;
use theta::{
    cli::{ProductCommand, STYLES},
    connect,
    exit::{self, Failure},
    group::plan::{self, Plan},
    interrupt::{Unfinished, told_to_end},
    output::{self, Output},
};
use theta_cluster::{Cluster, Lifetime, Show, this_program};

use self::{acts::Stage, liar::LiarArgs, material::Material};

/// The demo's node that lies. A name that no typing error comes near to, so that it is never suggested.
const LIAR: &str = "_x_liar";

const MORE: &str = "Every command but demo is theta's: cargo build --release makes target/release/theta, the product.";

/// Thetacrypt at work on this machine, and everything that theta does.
#[derive(Debug, Parser)]
#[command(
    name = "theta-demo",
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
    /// Start a real network on this machine and watch it decrypt, sign, lose a node and catch a liar
    Demo(DemoArgs),
    /// The demo's node that sends false shares
    #[command(hide = true, name = LIAR)]
    Liar(LiarArgs),
    #[command(flatten)]
    Product(ProductCommand),
}

fn main() -> ExitCode {
    exit::main("theta-demo", |cli: Cli| {
        let output = Output::new(cli.json);
        match cli.command {
            Command::Demo(args) => run(&args, output),
            Command::Liar(args) => liar::run(&args),
            Command::Product(command) => command.run(output),
        }
    })
}

/// Options of `theta-demo demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo run --release -- demo
  cargo run --release -- demo --file letter.txt --nodes 7 --threshold 3
  cargo run --release -- demo --all     use every suite there is; the RSA keys take seconds to minutes to make
  cargo run --release -- demo --keep    leave the network running, to try the other commands on it
  cargo run --release -- demo --chain   a CometBFT chain whose transactions are encrypted until they are ordered
  cargo run --release -- demo --dns     a zone that three operators sign, and that none of them can falsify
  cargo run --release -- demo --rpki    routes that five registries sign, and that none of them can forge or withdraw

Everything is real: each node is a process of its own, all speak mutually authenticated TLS 1.3 on loopback.")]
struct DemoArgs {
    /// What to encrypt and sign [default: README.md here or above, else a built-in text]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How many nodes there are
    #[arg(long, value_name = "N", default_value_t = 4)]
    nodes: u16,
    /// How many of them it takes
    #[arg(long, value_name = "K", default_value_t = 2)]
    threshold: u16,
    /// How often each operation is done, to measure its latency
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Use a key of every suite and check each result with an independent verifier where there is one
    #[arg(long, conflicts_with = "keep")]
    all: bool,
    /// Leave the network running at the end
    #[arg(long)]
    keep: bool,
    /// Directory to make for the group [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Show a chain instead, whose transactions nobody can read before they are ordered: the program theta-chain
    #[arg(long, conflicts_with_all = ["file", "nodes", "threshold", "rounds", "all", "keep"])]
    chain: bool,
    /// Show a zone instead, which three operators sign with Knot DNS, none of whom has its keys: the program theta-dnssec-demo
    #[arg(long, conflicts_with_all = ["file", "nodes", "threshold", "rounds", "all", "keep", "chain"])]
    dns: bool,
    /// Show an RPKI instead, whose routes none of five registries can forge or withdraw: the program theta-rpki-demo
    #[arg(long, conflicts_with_all = ["file", "nodes", "threshold", "rounds", "all", "keep", "chain", "dns"])]
    rpki: bool,
}

/// `theta-demo demo`.
fn run(args: &DemoArgs, output: Output) -> Result<(), Failure> {
    if args.chain {
        return other::CHAIN.run(args.dir.as_deref(), output);
    }
    if args.dns {
        return other::DNS.run(args.dir.as_deref(), output);
    }
    if args.rpki {
        return other::RPKI.run(args.dir.as_deref(), output);
    }
    let material = Material::load(args.file.as_deref())?;
    let keys = if args.all { every::keys()? } else { plan::default_keys() };
    // RSA keys take a dealer; all others are made by the nodes.
    let dealt = if args.all { keys.clone() } else { Vec::new() };
    let plan = Plan::new(args.nodes, args.threshold, dealt)?;
    let mut home = Home::new(args.dir.as_deref())?;
    let lifetime = if args.keep { Lifetime::Kept } else { Lifetime::Tied };
    if args.all {
        output::note("dealing the keys; those of RSA take seconds to minutes");
    }
    let cluster = Cluster::create(this_program()?, &home.group, &plan, lifetime)?;

    let show = Show::new(output);
    if args.all {
        let stage = every::Stage { show: &show, material: &material, rounds: args.rounds, nodes: plan.nodes() };
        let (_cluster, lines) = home.unless_interrupted(stage.play(cluster))?;
        return every::table(&lines, output);
    }
    let group = home.group.clone();
    keeping::forbid_destroying(&group, plan.nodes())?;
    let stage =
        Stage { show: &show, material: &material, plan: &plan, keys: &keys, group: &group, rounds: args.rounds };
    let (cluster, rows) = home.unless_interrupted(stage.play(cluster))?;
    show::table(&show, &rows)?;
    show::next(&show, &group, args.keep.then(|| cluster.pids()).as_deref());
    if args.keep {
        cluster.release();
        home.keep();
    }
    Ok(())
}

/// How long nodes may take to start and to find each other.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the group lives.
struct Home {
    group: PathBuf,
    temporary: Option<(TempDir, Unfinished)>,
}

impl Home {
    fn new(dir: Option<&Path>) -> Result<Self, Failure> {
        if let Some(dir) = dir {
            return Ok(Self { group: dir.to_owned(), temporary: None });
        }
        let made = tempfile::Builder::new().prefix("theta-demo-").tempdir();
        let temporary = made.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
        let unfinished = Unfinished::watch(temporary.path())?;
        Ok(Self { group: temporary.path().join("group"), temporary: Some((temporary, unfinished)) })
    }

    /// Plays to the end, or until a signal tells it to end. If it fails, the directory with the logs stays.
    fn unless_interrupted<T>(&mut self, play: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let played = connect::runtime()?.block_on(async {
            let told = told_to_end()?;
            tokio::select! {
                played = play => played,
                signal = told => Err(Failure::Interrupted(signal)),
            }
        });
        if matches!(&played, Err(failure) if !matches!(failure, Failure::Interrupted(_))) {
            output::note(format_args!("the nodes' logs are {}/node-*.log", self.group.display()));
            self.keep();
        }
        played
    }

    fn keep(&mut self) {
        if let Some((temporary, _unfinished)) = self.temporary.take() {
            // Only the automatic removal ends; the path is known from `group`.
            let _ = temporary.keep();
        }
    }
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
