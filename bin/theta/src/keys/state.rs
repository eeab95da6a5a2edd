//! `theta keys enable`, `disable`, `destroy`.

use std::{
    io::{self, BufRead, IsTerminal},
    path::Path,
    time::Duration,
};

use clap::Args;
use serde::Serialize;
use theta_client::{KeyEnd, KeyRef, KeyState, StateChange, StateChanged};
use theta_names::WallTime;
use theta_statements::UnixTime;

use crate::{
    access::ApprovalFiles,
    connect::{self, ClientArgs},
    exit::Failure,
    output::{self, GOOD, Output},
    units,
};

/// Options of `theta keys enable` and `theta keys disable`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys disable release        nobody signs with it until it is enabled again
  theta keys disable files@1        one version
  theta keys enable release

The group decides it, and its ledger shows it: nodes that are down follow when they come back. Each node that is asked to disable \
a key stops using it at once, whatever the others do; it counts as done when the other holders are too few to use it.")]
pub(crate) struct StateArgs {
    /// The key, or a version of it
    key: KeyRef,
    /// The generation that the change makes, which approvals of it name [default: the one after the last in the group's ledger]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    generation: Option<u64>,
    #[command(flatten)]
    approvals: ApprovalFiles,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `theta keys destroy`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys destroy old-release            disabled now, destroyed in seven days
  theta keys enable old-release             takes it back until an hour before
  theta keys destroy files@1 --now --yes    no way back
  theta keys destroy old-release --at 2026-12-24T00:00:00Z --approval ann.approval      at the time that was approved

When its time has come, every node destroys its shares, and keeps the public part as a tombstone; the name is never used \
again. That cannot be undone. A node that is down keeps its share until it comes back: this says which. Shares in backups stay \
where they are: destroy those, too.")]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    state: StateArgs,
    /// How long the key is disabled before, and can be taken back: more than an hour [default: 7d, or the time that was set before]
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration, conflicts_with = "now")]
    after: Option<Duration>,
    /// When it is destroyed, instead: approvals name that time (theta approve --at)
    #[arg(long, value_name = "TIME", conflicts_with_all = ["now", "after"])]
    at: Option<UnixTime>,
    /// Destroy at once
    #[arg(long)]
    now: bool,
    /// Destroy without being asked
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Changed {
    key: String,
    state: &'static str,
    generation: u64,
    /// When it is destroyed, in seconds since 1970; 0: at once.
    not_before: u64,
    /// Whether the group's ledger has it.
    decided: bool,
    nodes: Vec<u16>,
    /// For whom the decision waits.
    awaits: Vec<u16>,
    missing: Vec<u16>,
}

/// `theta keys enable`.
pub(super) fn enable(args: &StateArgs, output: Output) -> Result<(), Failure> {
    change(args, KeyState::Active.into(), output)
}

/// `theta keys disable`.
pub(super) fn disable(args: &StateArgs, output: Output) -> Result<(), Failure> {
    change(args, KeyState::Disabled.into(), output)
}

/// `theta keys destroy`.
pub(super) fn destroy(args: &DestroyArgs, output: Output) -> Result<(), Failure> {
    let today = WallTime::now().seconds();
    let after = args.after.unwrap_or(A_WEEK).as_secs();
    let when = args.at.map_or_else(|| today.saturating_add(after), |at| at.0 / 1_000);
    if !args.now && when.saturating_sub(today) <= theta_ledger::SHORTEST_WAIT {
        return Err(Failure::Usage(
            "a key waits for more than an hour (--after 2h), since nodes' clocks differ and it must not be taken back at some of them alone; --now destroys at once".to_owned(),
        ));
    }
    if !args.yes {
        let fate = if args.now { "destroyed for ever, now" } else { "disabled, and later destroyed for ever" };
        confirm_by_name(&args.state.key.to_string(), fate)?;
    }
    let wanted = Wanted {
        state: KeyState::Destroyed,
        not_before: if args.now { 0 } else { when },
        unless_doomed: args.at.is_none() && args.after.is_none(),
    };
    change(&args.state, wanted, output)
}

/// How long a key waits if nobody says otherwise.
const A_WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The state that a key is to have.
#[derive(Clone, Copy)]
struct Wanted {
    state: KeyState,
    /// When it is destroyed, in seconds since 1970; 0: at once.
    not_before: u64,
    /// Whether a time that was set before stays, so that whoever asks again changes nothing.
    unless_doomed: bool,
}

impl From<KeyState> for Wanted {
    fn from(state: KeyState) -> Self {
        Self { state, not_before: 0, unless_doomed: false }
    }
}

/// Asks for confirmation of a loss: a person types the key's name, a program has to pass `--yes`.
pub(crate) fn confirm_by_name(key: &str, fate: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(format!("{key} would be {fate}: add --yes if this is meant")));
    }
    output::note(format_args!("{key} will be {fate}. Type its name to go on:"));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::reading(Path::new("standard input"), &error))?;
    if answer.trim() == key { Ok(()) } else { Err(Failure::Failed(format!("{key} is left as it is"))) }
}

fn change(args: &StateArgs, wanted: Wanted, output: Output) -> Result<(), Failure> {
    let Wanted { state, not_before, unless_doomed } = wanted;
    let session = args.client.open_signed(&args.approvals, args.client.timeout())?;
    let (name, version) = (args.key.name.as_str(), args.key.version);
    let (changed, not_before) = session.block_on(async {
        let client = session.client();
        let generation = match args.generation {
            None if not_before == 0 => return Ok((client.change_state(name, version, state).await?, 0)),
            None => client.next_generation(&args.key.name).await?,
            Some(generation) => {
                if state == KeyState::Destroyed {
                    client.renew().await?;
                }
                generation
            }
        };
        let change = StateChange { key: args.key.name.clone(), version, state, generation, not_before };
        let end = client.end_of(&change.key, version).filter(|_| state == KeyState::Destroyed);
        let is_so = |at| Ok((StateChanged::before(generation.saturating_sub(1)), at));
        match end {
            Some(KeyEnd::Destroyed) => is_so(0),
            Some(KeyEnd::Doomed(at)) if at <= WallTime::now().seconds() => is_so(0),
            Some(KeyEnd::Doomed(at)) if unless_doomed && args.generation.is_none() => is_so(at),
            _ => Ok::<_, Failure>((client.make_change(change).await?, not_before)),
        }
    })?;
    for problem in &changed.problems {
        output::diagnostic("warning", &crate::exit::tidy(&problem.to_string()));
    }
    let report = Changed {
        key: args.key.to_string(),
        // Until its time has come the key is disabled, and can be taken back.
        state: if not_before > 0 { KeyState::Disabled } else { state }.name(),
        generation: changed.generation,
        not_before,
        decided: changed.decided,
        awaits: changed.awaits.iter().map(|node| node.get()).collect(),
        nodes: changed.nodes.iter().map(|node| node.get()).collect(),
        missing: changed.problems.iter().map(|problem| problem.node.get()).collect(),
    };
    output.result(&report, |out| {
        // An older version that is enabled decrypts again, but its state is not called active.
        let word = if state == KeyState::Active { "enabled" } else { report.state };
        let (key, generation) = (&report.key, report.generation);
        if !report.decided {
            let nodes = connect::nodes(&report.nodes);
            writeln!(out, "{GOOD}ok{GOOD:#} {key} is {word} at {nodes}, and the other holders are too few to use it")?;
            let awaits = if report.awaits.is_empty() { &report.missing } else { &report.awaits };
            let awaits = connect::nodes(awaits);
            return writeln!(
                out,
                "the group's decision (generation {generation}) waits for {awaits}, and follows by itself"
            );
        }
        if not_before > 0 {
            let when = UnixTime(not_before.saturating_mul(1_000));
            writeln!(out, "{GOOD}ok{GOOD:#} {key} is disabled, and destroyed at {when}")?;
            let client = connect::client_option();
            writeln!(out, "until an hour before, theta keys enable {key}{client} takes it back")?;
        } else {
            writeln!(out, "{GOOD}ok{GOOD:#} {key} is {word}")?;
        }
        if report.missing.is_empty() {
            return Ok(());
        }
        writeln!(out, "{} will follow when it can be reached", connect::nodes(&report.missing))
    })
}
