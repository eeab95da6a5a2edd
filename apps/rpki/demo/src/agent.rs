//! The agent of one registry, as a process of its own. It is the one of `theta-rpki agent`, and ends with the demonstration.

use std::{io, path::PathBuf};

use clap::Args;
use theta::{connect, exit::Failure};
use theta_cluster::end_of_input;
use theta_rpki::{
    agent::{Agent, Pace},
    kept::Kept,
    sources::Sources,
};

/// The registry's data, in its directory.
pub(crate) const DATA: &str = "registry.toml";
/// The statements that it has, there.
pub(crate) const STATEMENTS: &str = "statements";
/// Where the registry's node asks, there.
pub(crate) const SOCKET: &str = "rpki.sock";
/// What it has agreed to, there.
const MEMORY: &str = "memory";
/// The keys of objects, and the folder of contents, in the directory of all.
pub(crate) const POOL: &str = "pool.keys";
pub(crate) const STORE: &str = "store";

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The registry's directory
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Where a registry has what it knows.
pub(crate) fn sources(of: &std::path::Path) -> Sources {
    let all = of.parent().unwrap_or(of);
    Sources {
        registry: of.join(DATA),
        statements: of.join(STATEMENTS),
        overrides: None,
        pool: all.join(POOL),
        store: all.join(STORE),
    }
}

/// Serves until standard input ends.
pub(crate) fn run(args: &AgentArgs) -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).init();
    let kept = Kept::begin(&args.dir.join(MEMORY)).map_err(|error| Failure::Failed(error.to_string()))?;
    let agent = Agent::open(sources(&args.dir), kept, Pace::default());
    let agent = agent.map_err(|error| Failure::Failed(error.to_string()))?;
    let socket = args.dir.join(SOCKET);
    connect::runtime()?.block_on(async {
        tokio::select! {
            served = theta_agent::serve(agent, &socket) => served.map_err(|error| Failure::Failed(error.to_string())),
            () = end_of_input() => Ok(()),
        }
    })
}
