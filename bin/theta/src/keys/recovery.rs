//! `theta keys recover --all`: a machine that lost its store gets back the share of every key that it should hold.

use std::collections::BTreeSet;

use clap::Args;
use serde::Serialize;
use theta_client::{KeyChange, KeyRef, KeyState};
use theta_ledger::LedgerState;
use theta_names::{NodeId, WallTime};

use super::ceremonies::{CeremonyArgs, Held, hold, hold_quietly, how_to_approve, report};
use crate::{
    connect::Session,
    exit::{self, Failure},
    output::{self, BAD, GOOD, Output},
};

/// Options of `theta keys recover`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta approver new --name ann                                 once; its lines and the rule go into policy.toml at k nodes
  theta approve --as ann.key --operation keys.recover --key files --node 3 -o ann.approval
  theta keys recover files --node 3 --approval ann.approval
  theta approve --as ann.key --operation keys.recover --all --node 3 -o ann.approval
  theta keys recover --all --node 3 --approval ann.approval     after theta node rejoin: every share that it should hold and has not

The others give the node its share back, which it alone learns; theirs stay as they are. The policy that theta group init writes \
allows no recovery until it has an approver, and has the rule for that ready: that a node lost its share should be known to \
somebody besides the client that asks. With --all one key comes after the other, whatever becomes of those before; exit code 1 if a share is still \
missing. The same command goes on with those.")]
pub(crate) struct RecoverArgs {
    /// The key, or a version of it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    key: Option<KeyRef>,
    /// Every key of which the node holds a share by the group's ledger, and has none
    #[arg(long)]
    all: bool,
    /// The node that lost its share
    #[arg(long, value_name = "NODE")]
    node: u16,
    #[command(flatten)]
    ceremony: CeremonyArgs,
}

/// What came of one key.
#[derive(Serialize)]
struct Recovery {
    key: String,
    recovered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ceremony: Option<Held>,
}

/// `theta keys recover`.
pub(super) fn recover(args: &RecoverArgs, output: Output) -> Result<(), Failure> {
    let session = args.ceremony.open()?;
    let Some(KeyRef { name: key, version }) = args.key.clone() else { return all(args, &session, output) };
    report(&[hold(&args.ceremony, &session, KeyChange::Recover { key, version, node: args.node })?], output)
}

fn all(args: &RecoverArgs, session: &Session, output: Output) -> Result<(), Failure> {
    let lacking = lacking(session, args.node)?;
    let (mut done, mut unapproved) = (Vec::new(), false);
    for key in &lacking {
        let change = KeyChange::Recover { key: key.name.clone(), version: key.version, node: args.node };
        done.push(match hold_quietly(&args.ceremony, session, change, &mut unapproved) {
            Ok(held) => Recovery { key: key.to_string(), recovered: true, error: None, ceremony: Some(held) },
            Err(failure) => {
                let error = Some(exit::one_line(&failure.to_string()));
                Recovery { key: key.to_string(), recovered: false, error, ceremony: None }
            }
        });
    }
    output.result(&done, |out| {
        if done.is_empty() {
            return writeln!(out, "node {} has every share that it should hold", args.node);
        }
        for Recovery { key, error, .. } in &done {
            match error {
                None => writeln!(out, "{GOOD}ok{GOOD:#} {key}: node {} has its share again", args.node)?,
                Some(error) => writeln!(out, "{BAD}failed{BAD:#} {key}: {error}")?,
            }
        }
        Ok(())
    })?;
    let missing: Vec<&str> = done.iter().filter(|key| !key.recovered).map(|key| key.key.as_str()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if unapproved {
        output::note(format_args!("{}", how_to_approve("--all", args.node)));
    }
    let (few, many, names) = (missing.len(), done.len(), missing.join(", "));
    Err(Failure::Failed(format!("{few} of {many} shares of node {} are still missing: {names}", args.node)))
}

/// The keys of which a node holds a share by the ledger, and none as it says itself.
fn lacking(session: &Session, node: u16) -> Result<Vec<KeyRef>, Failure> {
    let mut keys = shares_of(session, node)?;
    let (listed, problems) = session.block_on(session.client().list_keys());
    if let Some(problem) = problems.iter().find(|problem| problem.node.get() == node) {
        let why = exit::tidy(&problem.to_string());
        return Err(Failure::NoAnswer(format!(
            "a machine that runs gets its shares back, and this one does not answer: {why}"
        )));
    }
    let held = |key: &&theta_client::ListedKey| key.held.iter().any(|holder| holder.get() == node);
    let held: BTreeSet<(String, u32)> =
        listed.iter().filter(held).map(|key| (key.info.name.clone(), key.info.version)).collect();
    keys.retain(|key| !held.contains(&(key.name.to_string(), key.version.map_or(0, |version| version.get()))));
    Ok(keys)
}

/// The versions of keys of which a node holds a share by the ledger, as the nodes tell it now.
pub(crate) fn shares_of(session: &Session, node: u16) -> Result<Vec<KeyRef>, Failure> {
    let number = NodeId::try_from(node).map_err(|_| Failure::Usage("nodes are numbered from 1".to_owned()))?;
    session.block_on(session.client().renew())?;
    let shares = |state: &LedgerState| {
        state.seats().contains_key(&number).then(|| held(state, number).into_iter().map(|(key, _)| key).collect())
    };
    match session.client().ledger(shares) {
        None => Err(Failure::Usage("this group keeps no ledger: name each key".to_owned())),
        Some(None) => Err(Failure::Usage(format!("there is no node {node} in the group"))),
        Some(Some(shares)) => Ok(shares),
    }
}

/// The versions of keys of which a node holds a share by a ledger, and whether each is an older one.
pub(crate) fn held(state: &LedgerState, node: NodeId) -> Vec<(KeyRef, bool)> {
    let now = WallTime::now().seconds();
    let mut held = Vec::new();
    for (name, line) in state.keys() {
        for (version, history) in &line.versions {
            let holds = history.serving().is_some_and(|serving| serving.holders.contains(&node.get()));
            if holds && line.state_at(*version, now) != Some(KeyState::Destroyed) {
                let key = KeyRef { name: name.clone(), version: Some(*version) };
                held.push((key, line.primary() != Some(*version)));
            }
        }
    }
    held
}
