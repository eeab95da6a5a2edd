//! `theta-dnssec`: programs for operators who sign a zone together.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use theta_dnssec::{
    agent::{Agent, AgentError, Sources},
    consent::Terms,
};

/// Signs a zone together with other operators, none of whom has its keys
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lets this operator's node sign what is in the operator's own copy of the zone
    #[command(after_help = "\
Example:
  theta-dnssec agent --zone-file /var/lib/zones/example.org --origin example.org. --keys zone.keys --socket /run/theta/zone.sock

The node's policy names the socket, and the rule that lets the name server sign names the agent:

  [[agent]]
  name = \"zone\"
  socket = \"/run/theta/zone.sock\"

  [[rule]]
  name = \"zone\"
  effect = \"allow\"
  clients = [\"name-server\"]
  keys = [\"zone-*\"]
  operations = [\"sign\"]
  agent = \"zone\"

The zone file is the operator's own copy, from its own source, without signatures. It and the keys are read again when they change.
The keys are those that may be in the zone, one on each line, as theta keys export NAME --format hex prints them.
The zone is signed with algorithm 15 (Ed25519), which shows the nodes what they sign, and with NSEC.")]
    Agent {
        /// The operator's own copy of the zone, unsigned
        #[arg(long, value_name = "FILE")]
        zone_file: PathBuf,
        /// The zone's name, with its dot
        #[arg(long, value_name = "NAME")]
        origin: String,
        /// The public keys that may be in the zone, one on each line
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
        /// Where the node asks
        #[arg(long, value_name = "PATH")]
        socket: PathBuf,
        /// For how many days a signature may be valid
        #[arg(long, value_name = "DAYS", default_value_t = 35, value_parser = clap::value_parser!(u32).range(1..=3_650))]
        most_days: u32,
    },
}

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
    let Command::Agent { zone_file, origin, keys, socket, most_days } = Arguments::parse().command;
    let terms = Terms { longest: most_days.saturating_mul(86_400) };
    match run(Sources { origin, zone: zone_file, keys, terms }, &socket) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(sources: Sources, socket: &Path) -> Result<(), AgentError> {
    let agent = Agent::open(sources)?;
    let failed = |error: std::io::Error| AgentError::Socket { path: socket.to_owned(), reason: error.to_string() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(failed)?;
    runtime.block_on(agent.serve(socket))
}
