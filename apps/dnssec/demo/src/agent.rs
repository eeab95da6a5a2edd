//! The agent of one operator, as a process of its own. It is the one of `theta-dnssec agent`, and ends with the demonstration.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use theta::{connect, exit::Failure};
use theta_cluster::end_of_input;
use theta_dnssec::{
    agent::Agent,
    consent::Terms,
    digests::Guesses,
    sources::{CopyFrom, Sources},
};

/// The zone's name.
pub(crate) const ZONE: &str = "example.";
/// Its own records, beside those of its names.
pub(crate) const RECORDS: &str =
    "$ORIGIN example.\n$TTL 1\n@ SOA ns admin 1 3600 60 86400 1\n@ NS ns\nns A 127.0.0.1\n";
/// The operator's own copy of the zone, in the operator's directory.
pub(crate) const COPY: &str = "example.zone";
/// The keys that the operators have agreed on, there.
pub(crate) const KEYS: &str = "zone.keys";
/// Where the operator's node asks, there.
pub(crate) const SOCKET: &str = "zone.sock";

/// For how long signatures may be valid, in seconds.
const LONGEST: u32 = 35 * 86_400;
/// After how many days those of Knot end.
const LIFETIME: u32 = 14;

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The operator's directory
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Serves until standard input ends.
pub(crate) fn run(args: &AgentArgs) -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).init();
    let agent = Agent::open(sources(&args.dir)).map_err(failed)?;
    let socket = args.dir.join(SOCKET);
    connect::runtime()?.block_on(async {
        tokio::select! {
            served = theta_agent::serve(agent, &socket) => served.map_err(failed),
            () = end_of_input() => Ok(()),
        }
    })
}

/// What an agent knows that has its files in this directory.
pub(crate) fn sources(dir: &Path) -> Sources {
    Sources {
        origin: ZONE.to_owned(),
        zone: CopyFrom::File(dir.join(COPY)),
        keys: dir.join(KEYS),
        nsec3: None,
        terms: Terms::lasting(LONGEST),
        guesses: Guesses::of_days(&[LIFETIME]),
        key_request: None,
    }
}

/// Writes a file of an operator's directory, so that the agent reads all of it or nothing.
pub(crate) fn put(dir: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = dir.join(name);
    let draft = path.with_extension("new");
    let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path));
    written.map_err(|error| Failure::writing(&path, &error))
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}
