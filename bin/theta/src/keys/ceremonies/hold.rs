//! Asks the nodes for a ceremony, watches it, and keeps its evidence.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use serde::Serialize;
use theta_client::{
    CeremonyEnd, CeremonyOutcome, CeremonyProgress, CeremonyRequest, ClientError, KeyChange, NodeProblem, Problem,
};
use theta_names::{Epoch, Version};
use theta_schemes::keys::KeyName;
use theta_wire::v1::CeremonyState;
use tonic::Code;

use super::{
    left_out,
    proofs::{self, Caught},
};
use crate::{
    access::{ApprovalFiles, Nonce},
    connect::{self, ClientArgs, Session},
    exit::{self, Failure},
    output::{self, GOOD, Output},
    progress::CeremonyBar,
    units,
};

/// How a ceremony is asked for.
#[derive(Debug, Args)]
pub(crate) struct CeremonyArgs {
    #[command(flatten)]
    approvals: ApprovalFiles,
    /// The request's nonce, as theta approve shows it: approvals are of one request [default: the one in the approvals' files, else a new one]
    #[arg(long, value_name = "HEX")]
    nonce: Option<Nonce>,
    /// Directory for evidence against nodes that lied, as far as it proves that
    #[arg(long, value_name = "DIR", default_value = ".")]
    evidence: PathBuf,
    /// How long the ceremony may take, with the time included in which nodes that are down may come back
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = units::parse_duration)]
    patience: Duration,
    #[command(flatten)]
    client: ClientArgs,
}

impl CeremonyArgs {
    /// Ceremonies that take no approvals, as this client.
    pub(crate) fn of(client: ClientArgs, patience: Duration) -> Self {
        Self { approvals: ApprovalFiles::default(), nonce: None, evidence: PathBuf::from("."), patience, client }
    }

    /// Prepares the connection; requests are signed if the client directory has a key for that. Who the nodes are is as the group has it
    /// now, if they tell.
    pub(crate) fn open(&self) -> Result<Session, Failure> {
        let session = self.client.open_signed(&self.approvals, self.patience)?;
        session.renew();
        Ok(session)
    }
}

/// A ceremony that succeeded.
#[derive(Serialize)]
pub(crate) struct Held {
    id: String,
    aim: String,
    key: String,
    version: Version,
    epoch: Epoch,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    agreed: Vec<u16>,
    silent: Vec<u16>,
    without_share: Vec<u16>,
    culprits: Vec<Caught>,
    latency_ms: f64,
    #[serde(skip)]
    latency: String,
}

/// Holds a ceremony.
pub(crate) fn hold(args: &CeremonyArgs, session: &Session, change: KeyChange) -> Result<Held, Failure> {
    let recovered = if let KeyChange::Recover { key, node, .. } = &change { Some((key.clone(), *node)) } else { None };
    let mut unapproved = false;
    let held = hold_quietly(args, session, change, &mut unapproved);
    if let (Some((key, node)), true) = (recovered, unapproved) {
        output::note(format_args!("{}", how_to_approve(key.as_str(), node)));
    }
    held
}

/// The same without advice. `unapproved`: that the nodes refuse since approvals are missing, or a rule that would ask for them.
pub(crate) fn hold_quietly(
    args: &CeremonyArgs,
    session: &Session,
    change: KeyChange,
    unapproved: &mut bool,
) -> Result<Held, Failure> {
    let mut bar = CeremonyBar::new(&describe(&change));
    let nonce = args.nonce.or_else(|| session.approved()).map_or_else(Nonce::draw, Ok)?;
    let key = change.key().clone();
    let request = CeremonyRequest { nonce: nonce.0, change };
    let held = session.block_on(session.client().hold_request(request, |progress| {
        if let Some((done, of)) = steps(progress) {
            bar.reached(progress.node.get(), done, of);
        }
    }));
    drop(bar);
    if let Err(ClientError::Denied { reason, .. }) = &held {
        *unapproved |= matches!(reason.as_str(), "no-rule" | "too-few-approvals");
    }
    let outcome = held.map_err(|error| not_ended(error, &key))?;
    let culprits = proofs::keep(&args.evidence, &session.client().group(), &outcome);
    let silent = numbers(&outcome.silent);
    let (key_id, certificate) = match &outcome.end {
        CeremonyEnd::Activated { key_id, certificate } => (Some(hex::encode(key_id)), Some(hex::encode(certificate))),
        CeremonyEnd::Recovered => (None, None),
        CeremonyEnd::Aborted => return Err(aborted(&outcome, &silent)),
        CeremonyEnd::Cancelled => {
            let (aim, key) = (&outcome.aim, &outcome.key);
            return Err(Failure::Failed(format!("the ceremony to {aim} {key} was cancelled; nothing has changed")));
        }
        CeremonyEnd::Failed(reason) => return Err(failed(&outcome, reason)),
    };
    for problem in &outcome.problems {
        output::diagnostic("warning", &exit::tidy(&problem.to_string()));
    }
    let without_share = if key_id.is_some() { left_out::tell(session, &outcome) } else { Vec::new() };
    Ok(Held {
        id: hex::encode(outcome.id),
        key: outcome.key.clone(),
        version: outcome.version,
        epoch: outcome.epoch,
        key_id,
        certificate,
        agreed: numbers(&outcome.agreed),
        silent,
        without_share,
        culprits,
        latency_ms: outcome.latency.as_secs_f64() * 1e3,
        latency: units::human(outcome.latency),
        aim: outcome.aim,
    })
}

/// The commands that lead to the approval of a refused recovery, of a key or of `--all`.
pub(crate) fn how_to_approve(key: &str, node: u16) -> String {
    let client = connect::client_option();
    let asked = if key == "--all" { (client.as_str(), "--all".to_owned()) } else { ("", format!("--key {key}")) };
    let (at, what) = asked;
    format!(
        "a recovery takes an approval by somebody else than this client:
  theta approver new --name ann       once; the lines that it prints, and the rule recovering-takes-an-approval, go into policy.toml
                                      at k nodes at least (theta policy check policy.toml; running nodes take it by themselves)
  theta approve --as ann.key --operation keys.recover {what} --node {node}{at} -o ann.approval
  theta keys recover {key} --node {node}{client} --approval ann.approval"
    )
}

/// Why a ceremony has no end that enough nodes tell. What they were asked for may go on without this command.
fn not_ended(error: ClientError, key: &KeyName) -> Failure {
    let runs = |node: &NodeProblem| matches!(node.problem, Problem::Refused { code: Code::DeadlineExceeded, .. });
    let goes_on = matches!(&error, ClientError::NoAnswer { nodes, .. } if nodes.iter().any(runs));
    match Failure::from(error) {
        Failure::NoAnswer(text) if goes_on => Failure::NoAnswer(format!(
            "{text}; it may go on without this command: theta keys ceremonies shows it, theta keys cancel {key} takes it back"
        )),
        failure => failure,
    }
}

/// A ceremony that came to nothing. Where nodes were away, that is why.
fn failed(outcome: &CeremonyOutcome, reason: &str) -> Failure {
    let text = format!("{} {}: {reason}", outcome.aim, outcome.key);
    let away = outcome.problems.iter().filter(|problem| exit::is_absence(&problem.problem));
    let away: Vec<String> = away.map(|problem| exit::tidy(&problem.to_string())).collect();
    if away.is_empty() { Failure::Failed(text) } else { Failure::NoAnswer(format!("{text}; {}", away.join("; "))) }
}

fn aborted(outcome: &CeremonyOutcome, silent: &[u16]) -> Failure {
    let missed = if silent.is_empty() { String::new() } else { format!(": {} took no part", connect::nodes(silent)) };
    let (aim, key) = (&outcome.aim, &outcome.key);
    Failure::NoAnswer(format!(
        "the ceremony to {aim} {key} was aborted{missed}; nothing has changed: ask again when they are up"
    ))
}

fn numbers(nodes: &[theta_names::NodeId]) -> Vec<u16> {
    let mut numbers: Vec<u16> = nodes.iter().map(|node| node.get()).collect();
    numbers.sort_unstable();
    numbers
}

fn describe(change: &KeyChange) -> String {
    match change {
        KeyChange::Create { key, .. } => format!("creating {key}"),
        KeyChange::Rotate { key } => format!("rotating {key}"),
        KeyChange::Refresh { key, .. } => format!("refreshing {key}"),
        KeyChange::Reshare { key, .. } => format!("resharing {key}"),
        KeyChange::Recover { key, node, .. } => format!("recovering the share of {key} at node {node}"),
    }
}

/// Says what was done.
pub(crate) fn report(held: &[Held], output: Output) -> Result<(), Failure> {
    output.result(&held, |out| {
        for held in held {
            let Held { aim, key, version, epoch, latency, .. } = held;
            let by = connect::nodes(&held.agreed);
            let id = held.key_id.as_ref().and_then(|id| id.get(..8)).map(|id| format!(", key id {id}"));
            let id = id.unwrap_or_default();
            writeln!(
                out,
                "{GOOD}ok{GOOD:#} {aim} {key}: version {version}, epoch {epoch}{id}; {by} say so, after {latency}"
            )?;
        }
        Ok(())
    })
}

/// The steps done and the number of steps, for a node that is not done.
fn steps(progress: &CeremonyProgress) -> Option<(u32, u32)> {
    let status = &progress.status;
    (status.state() == CeremonyState::Running).then_some((status.done, status.of))
}
