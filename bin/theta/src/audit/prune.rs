//! `theta audit prune`.

use std::{fs, path::PathBuf};

use clap::Args;
use serde::Serialize;
use theta_statements::Digest;
use theta_statements::audit::Checkpoint;
use theta_store::Store;

use crate::{
    exit::Failure,
    output::{GOOD, Output},
    units::Bytes,
    vault,
};

/// Options of `theta audit prune`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example, with node 1 stopped:
  theta audit export --dir theta-group/node-1 -o node-1.jsonl
  theta audit verify node-1.jsonl                             prints the checkpoint
  theta audit prune --dir theta-group/node-1 --through theta-audit:1042:6f1c...

Removes the records that the checkpoint covers, and gives their room back. The checkpoint must be of this very log, so \
nothing is removed that was not exported. Keep the export: together with the log that goes on here it can be verified as \
before. The last record of all stays, since the next one follows it.")]
pub(crate) struct PruneArgs {
    /// The directory of a node that does not run
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The checkpoint of an export that is kept elsewhere: it and all before it is removed
    #[arg(long, value_name = "CHECKPOINT")]
    through: Checkpoint,
}

#[derive(Serialize)]
struct Pruned {
    removed: u64,
    /// The first record that remains.
    first: u64,
    /// The checkpoint for `theta audit verify --after`, to check what remains.
    after: String,
    bytes_before: u64,
    bytes_after: u64,
}

/// `theta audit prune`.
pub(super) fn prune(args: &PruneArgs, output: Output) -> Result<(), Failure> {
    let config = vault::config(&args.dir)?;
    let size = || fs::metadata(&config.store.path).map(|file| file.len()).unwrap_or_default();
    let mut store = vault::open(&config)?;
    let bytes_before = size();
    store.check_audit()?.map_err(|broken| Failure::Failed(format!("nothing was removed: {broken}")))?;
    check(&store, args.through)?;
    let removed = store.write(|transaction| transaction.prune_audit(args.through.count))?;
    store.compact()?;
    let start = store.audit_start()?;
    let after = Checkpoint { count: start.len(), head: Digest(*start.head()) }.to_string();
    let pruned = Pruned { removed, first: start.len(), after, bytes_before, bytes_after: size() };
    output.result(&pruned, |out| {
        let (from, to) = (Bytes(pruned.bytes_before), Bytes(pruned.bytes_after));
        writeln!(out, "{GOOD}ok{GOOD:#} removed {} records; the store had {from}, now {to}", pruned.removed)?;
        writeln!(out, "what is left is verified with --after {}", pruned.after)
    })
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
