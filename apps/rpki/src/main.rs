//! `theta-rpki`: programs for registries that run an RPKI together.

mod commands;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use theta_rpki::{
    agent::{Agent, AgentError, Pace},
    kept::Kept,
    sources::Sources,
};

/// Runs an RPKI together with other registries, none of whom has its keys
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lets this registry's node sign what follows from the registry's own data and its members' statements
    #[command(after_help = "\
Example:
  theta-rpki agent --registry registry.toml --statements statements/ --pool pool.keys --store /srv/rpki --memory agreed --socket /run/theta/rpki.sock

The first time with --new-memory, and never again: the memory keeps what was withdrawn from coming back.

The node's policy names the socket, and the rule that lets the issuer sign names the agent:

  [[agent]]
  name = \"rpki\"
  socket = \"/run/theta/rpki.sock\"
  timeout_ms = 20000

  [[rule]]
  name = \"rpki\"
  effect = \"allow\"
  clients = [\"issuer\"]
  keys = [\"rpki-*\"]
  operations = [\"sign\"]
  agent = \"rpki\"

All files are the registry's own, and are read again when they change, but for the store, into which the issuer puts what it wants signed.
docs/guides/rpki-agents.md and spec/rpki.md say what is in them.")]
    Agent {
        /// The registry's data: members, authorities, operators
        #[arg(long, value_name = "FILE")]
        registry: PathBuf,
        /// The folder with a folder for each member, in which its signed statements are, each in a file that ends with .toml
        #[arg(long, value_name = "FOLDER")]
        statements: PathBuf,
        /// The folder of what operators override, if they may
        #[arg(long, value_name = "FOLDER")]
        overrides: Option<PathBuf>,
        /// The keys of signed objects: on each line a name and a public key in base64
        #[arg(long, value_name = "FILE")]
        pool: PathBuf,
        /// The folder of contents and objects, and of what is published
        #[arg(long, value_name = "FOLDER")]
        store: PathBuf,
        /// The file of what was agreed to, which is never to be lost or set back
        #[arg(long, value_name = "FILE")]
        memory: PathBuf,
        /// Begin that file, which must not exist: for the first start alone, or if what was in it is lost for good
        #[arg(long)]
        new_memory: bool,
        /// Consent although the last consent was more than 45 days ago by this machine's clock: for the first start after such a time alone
        #[arg(long)]
        after_break: bool,
        /// Where the node asks
        #[arg(long, value_name = "PATH")]
        socket: PathBuf,
    },
    #[command(flatten)]
    ForPeople(commands::Command),
}

/// Why a command fails.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The agent does not serve.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Another command has an answer that is no good one.
    #[error(transparent)]
    ForPeople(#[from] commands::Failure),
}

fn main() -> ExitCode {
    theta_agent::program(|Arguments { command }| run(command))
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Agent { registry, statements, overrides, pool, store, memory, new_memory, after_break, socket } => {
            let sources = Sources { registry, statements, overrides, pool, store };
            let kept = if new_memory { Kept::begin(&memory) } else { Kept::open(&memory) };
            let pace = Pace { after_break, ..Pace::default() };
            Ok(serve(sources, kept.map_err(AgentError::from)?, pace, &socket)?)
        }
        Command::ForPeople(command) => Ok(command.run()?),
    }
}

fn serve(sources: Sources, kept: Kept, pace: Pace, socket: &Path) -> Result<(), AgentError> {
    let agent = Agent::open(sources, kept, pace)?;
    Ok(theta_agent::serve_alone(agent, socket)?)
}
