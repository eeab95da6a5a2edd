//! `theta audit prune`.

use std::{fs, num::NonZeroU16};

use clap::Args;
use serde::Serialize;
use theta_statements::Digest;
use theta_statements::audit::Checkpoint;
use theta_store::Store;

use crate::{
    access::ApprovalFiles,
    connect::ClientArgs,
    exit::Failure,
    output::{GOOD, Output},
    units::Bytes,
    vault::{self, NodePlace},
};

/// Options of `theta audit prune`.
#[derive(Debug, Args)]
#[command(after_help = "\
A running node:
  theta audit export --node 1 -o node-1.jsonl                 prints the checkpoint
  theta audit prune --node 1 --through theta-audit:1042:6f1c...

It takes a rule of that node's policy.toml with operations = [\"audit.prune\"], and is on record there. The store's file \
does not shrink meanwhile: the room in it is used again.

A stopped one:
  theta audit export --dir theta-group/node-1 -o node-1.jsonl
  theta audit prune --dir theta-group/node-1 --through theta-audit:1042:6f1c...

Removes the records that the checkpoint covers. The checkpoint must be of this very log, so nothing is removed that was not \
exported. Where the file system is full both commands use what the node has kept in reserve beside its store for this \
(theta.redb.reserve); write the export to another one. Keep the export: together with the log that goes on here it can be verified as before. The last record of all \
stays, since the next one follows it.

A node does both by itself if its node.toml says so:
  [audit]
  keep = 100000                    so many of the latest records stay in its store, and up to a quarter more
  folder = \"audit\"                 older ones go into files here; cat audit/*.jsonl | theta audit verify -")]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    place: NodePlace,
    /// The checkpoint of an export that is kept elsewhere: it and all before it is removed
    #[arg(long, value_name = "CHECKPOINT")]
    through: Checkpoint,
    #[command(flatten)]
    approvals: ApprovalFiles,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Serialize)]
struct Pruned {
    removed: u64,
    /// The first record that remains.
    first: u64,
    /// The checkpoint for `theta audit verify --after`, to check what remains.
    after: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_after: Option<u64>,
}

/// `theta audit prune`.
pub(super) fn prune(args: &PruneArgs, output: Output) -> Result<(), Failure> {
    let pruned = match &args.place {
        NodePlace { dir: Some(dir), .. } => of_stopped(dir, args.through)?,
        NodePlace { node: Some(node), .. } => of_running(*node, args)?,
        NodePlace { .. } => return Err(Failure::internal("no log was named")),
    };
    output.result(&pruned, |out| {
        let sizes = pruned.bytes_before.zip(pruned.bytes_after);
        let sizes = sizes.map_or_else(String::new, |(before, after)| {
            format!("; the store had {}, now {}", Bytes(before), Bytes(after))
        });
        writeln!(out, "{GOOD}ok{GOOD:#} removed {} records{sizes}", pruned.removed)?;
        writeln!(out, "what is left is verified with --after {}", pruned.after)
    })
}

fn of_running(node: NonZeroU16, args: &PruneArgs) -> Result<Pruned, Failure> {
    let session = args.client.open_with(&args.approvals)?;
    let (removed, after) = session.block_on(session.client().prune_audit(node.into(), args.through))?;
    let (first, after) = (after.count, after.to_string());
    Ok(Pruned { removed, first, after, bytes_before: None, bytes_after: None })
}

fn of_stopped(dir: &std::path::Path, through: Checkpoint) -> Result<Pruned, Failure> {
    let config = vault::config(dir)?;
    let size = || fs::metadata(&config.store.path).map(|file| file.len()).unwrap_or_default();
    let mut store = vault::open_to_make_room(&config)?;
    let bytes_before = size();
    store.check_audit()?.map_err(|broken| Failure::Failed(format!("nothing was removed: {broken}")))?;
    check(&store, through)?;
    let removed = store.prune_audit(through.count)?;
    // The room is used again in any case; moving what is left together takes room itself.
    store.compact().or_else(|error| if error.is_full() { Ok(()) } else { Err(error) })?;
    let start = store.audit_start()?;
    let after = Checkpoint { count: start.len(), head: Digest(*start.head()) }.to_string();
    let (first, bytes_after) = (start.len(), Some(size()));
    Ok(Pruned { removed, first, after, bytes_before: Some(bytes_before), bytes_after })
}

/// Checks that the checkpoint belongs to this log.
fn check(store: &Store, through: Checkpoint) -> Result<(), Failure> {
    let failed = |why: &str| Err(Failure::Failed(format!("nothing was removed: {why}")));
    let Some(last) = through.count.checked_sub(1) else { return failed("the checkpoint is of an empty log") };
    match store.audit(last, 1)?.first().filter(|record| record.index == last) {
        Some(record) if record.hash == through.head.0 => Ok(()),
        Some(_) => failed("the checkpoint is of another log"),
        None => failed("the log does not have the checkpoint's last record: it was pruned before, or is shorter"),
    }
}
