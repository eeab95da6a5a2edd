//! `theta-rpki-issuer`: makes what is to be published, has the nodes sign it, and leaves it in a folder.

mod ending;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use theta_client::{OpenError, blocking::Client};
use theta_names::WallTime;
use theta_rpki::{
    kept::{self, MemoryError},
    sources::{SourceError, Sources},
    verified::Verified,
};
use theta_rpki_issuer::{
    Learnt,
    issue::{IssueError, Issuer, Report, check_clock},
    output::Output,
    state::{StateError, StateFile},
};

use self::ending::Ending;

/// Issues certificates, ROAs, ASPAs, lists and manifests for an RPKI that several registries run together
///
/// What is to be published follows from the registry's data and the members' statements. The nodes sign each thing only if their own registries'
/// agents find the same (theta-rpki agent). It has no key, and may be run by any registry, by one at a time.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Examples:
  theta-rpki-issuer --registry registry.toml --statements statements/ --pool pool.keys --store /srv/rpki --state issued --client issuer.client --new-state
  theta-rpki-issuer --registry registry.toml --statements statements/ --pool pool.keys --store /srv/rpki --state issued --client issuer.client --every 60

The first run begins the state; later ones go on with it. If it is lost, a new one begins with what an agent remembers (--new-state --from-memory agreed). The store is the folder that agents read (--store of theta-rpki agent); what is in its rsync/ is
what theta-rpki-publication publishes. It may be ended at any time: the next run goes on. With --every it ends after SIGTERM as soon as a run is done. Exit code 1: something was not signed, and is said.
docs/guides/rpki-issuer.md says how it fits together."
)]
struct Arguments {
    /// The registry's data: members, authorities
    #[arg(long, value_name = "FILE")]
    registry: PathBuf,
    /// The folder of members' signed statements, with a folder for each member
    #[arg(long, value_name = "FOLDER")]
    statements: PathBuf,
    /// The folder of the operators' overrides that this registry has taken up: of what operators state in members' places it follows those that are in the store as
    /// well. Without it, all that are in the store
    #[arg(long, value_name = "FOLDER")]
    overrides: Option<PathBuf>,
    /// The keys of signed objects: on each line a name at the nodes and a public key in base64
    #[arg(long, value_name = "FILE")]
    pool: PathBuf,
    /// The folder that agents read, and whose rsync/ is published
    #[arg(long, value_name = "FOLDER")]
    store: PathBuf,
    /// The file of what was asked for; it is never to be lost or set back
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// Begin a new state, where nothing was ever issued
    #[arg(long)]
    new_state: bool,
    /// Take what an agent remembers, from the file of its memory or a copy of it: where the state was lost or is an old one, or others have had things signed that
    /// it does not know of. More than once for several agents
    #[arg(long, value_name = "FILE")]
    from_memory: Vec<PathBuf>,
    /// The last run was more than 45 days ago, and the clock is right
    #[arg(long)]
    after_break: bool,
    /// Ask at once for what was refused often: else, after eight tries in a day, there is one in half an hour
    #[arg(long)]
    retry: bool,
    /// The client file of this issuer, or its client directory
    #[arg(long, value_name = "FILE", env = "THETA_CLIENT")]
    client: PathBuf,
    /// How many objects are signed in one call to each node; an agent decides about 16 of one client at once, or fewer if others ask as well
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    at_once: u16,
    /// Go on, and look for what is due so often; without it there is one run
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    every: Option<u32>,
    /// Print what each run did as a line of JSON
    #[arg(long)]
    json: bool,
}

/// Why it ends.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("{}: {reason}", path.display())]
    Client { path: PathBuf, reason: Box<OpenError> },
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error("cannot say what was done: {0}")]
    Answer(#[from] io::Error),
    #[error("cannot watch for SIGTERM: {0}")]
    Ending(io::Error),
    #[error("not signed: {0}, as said above; what was published before still is")]
    Unsigned(usize),
}

/// What the next run is told.
struct Next {
    after_break: bool,
    retry: bool,
    /// What members' files have come to.
    verified: Option<Verified>,
}

fn main() -> ExitCode {
    theta_agent::program(|arguments: Arguments| run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = Client::open(&arguments.client)
        .map_err(|reason| Failure::Client { path: arguments.client.clone(), reason: reason.into() })?;
    let mut state = StateFile::open(&arguments.state, arguments.new_state)?;
    let mut next = Next { after_break: arguments.after_break, retry: arguments.retry, verified: None };
    check_clock(&state.state, now(), next.after_break)?;
    learn(arguments, &mut state, &mut next)?;
    let Some(every) = arguments.every else {
        let report = issue(arguments, &client, &mut state, &mut next)?;
        say(&report, arguments.json)?;
        return if report.failures.is_empty() { Ok(()) } else { Err(Failure::Unsigned(report.failures.len())) };
    };
    let ending = Ending::watch().map_err(Failure::Ending)?;
    loop {
        // What cannot be read or published now may be mended until the next time; a state that cannot be written may not.
        match issue(arguments, &client, &mut state, &mut next) {
            Ok(report) => {
                (next.after_break, next.retry) = (false, false);
                say(&report, arguments.json)?;
            }
            Err(Failure::Source(error)) => tracing::error!("{error}"),
            Err(Failure::Issue(error @ IssueError::Output(_))) => tracing::error!("{error}"),
            Err(error) => return Err(error),
        }
        if ending.comes_within(Duration::from_secs(every.into())) {
            tracing::info!("ends by SIGTERM; what was published stays");
            return Ok(());
        }
    }
}

fn sources(arguments: &Arguments) -> Sources {
    let Arguments { registry, statements, overrides, pool, store, .. } = arguments;
    Sources {
        registry: registry.clone(),
        statements: statements.clone(),
        overrides: overrides.clone(),
        pool: pool.clone(),
        store: store.clone(),
    }
}

fn now() -> i64 {
    i64::try_from(WallTime::now().seconds()).unwrap_or(i64::MAX)
}

fn learn(arguments: &Arguments, state: &mut StateFile, next: &mut Next) -> Result<(), Failure> {
    if !arguments.from_memory.is_empty() {
        let (registry, _, pool) = sources(arguments).read(&mut next.verified)?;
        for path in &arguments.from_memory {
            let Learnt { certificates, keys } = state.state.learn(&kept::look(path)?, &registry, &pool, now());
            tracing::info!("{}: {certificates} certificates and {keys} keys that were not known", path.display());
        }
    }
    // All of it or nothing: a new state that knows nothing of what was issued would be taken for good.
    Ok(state.save()?)
}

fn issue(arguments: &Arguments, client: &Client, state: &mut StateFile, next: &mut Next) -> Result<Report, Failure> {
    let (registry, stated, pool) = sources(arguments).read(&mut next.verified)?;
    let now = now();
    check_clock(&state.state, now, next.after_break)?;
    let authorised = state.authorised(&stated, now)?;
    let issuer = Issuer {
        registry: &registry,
        authorised: &authorised,
        pool: &pool,
        hands: client,
        output: &Output::new(&arguments.store),
        most: arguments.at_once.into(),
        now,
        after_break: next.after_break,
        retry: next.retry,
    };
    Ok(issuer.run(state)?)
}

fn say(report: &Report, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, report)?;
        writeln!(out)?;
        return out.flush();
    }
    let Report { certificates, objects, published, failures } = report;
    for one in published.iter().filter(|one| one.is_new) {
        writeln!(out, "{} has a new manifest with {} files", one.authority, one.files)?;
    }
    writeln!(
        out,
        "{certificates} new certificates of authorities, {objects} new objects, {} authorities published, {} things not signed",
        published.len(),
        failures.len()
    )?;
    out.flush()
}
