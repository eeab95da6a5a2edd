//! `theta keys backup`: of a stopped node's store, or of a running node by its own leave.

use std::{
    io::{BufWriter, Write},
    num::NonZeroU16,
    path::PathBuf,
};

use clap::Args;
use serde::Serialize;
use theta_store::BackedUp;

use super::{NodePlace, SEALING_HELP, SealWord, config, open};
use crate::{
    access::ApprovalFiles, connect::ClientArgs, exit::Failure, files::Target, output::Output, progress::Progress,
};

/// Options of `theta keys backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
A running node:
  theta keys backup --node 1 -o node-1.backup
  theta keys check-backup node-1.backup --seal file:backup.key

The node seals it by what its own node.toml names, and makes none without it. Whoever asks names no key, and can open nothing:
  [backup.sealing]
  file = \"backup.key\"        made with: (umask 77; openssl rand -hex 32 > backup.key)
The client that asks needs a rule of that node's policy.toml with operations = [\"keys.backup\"]. Keep what seals backups \
elsewhere, too: what is on the node alone is lost with the node.

A stopped one:
  (umask 77; openssl rand -hex 32 > backup.key)
  theta keys backup --dir theta-group/node-1 --seal file:backup.key -o node-1.backup
  THETA_BACKUP='correct horse ...' theta keys backup --dir theta-group/node-1 --seal env:THETA_BACKUP -o node-1.backup

A backup has one node's shares, states, signing rules' memory and audit log, of one moment, sealed. It is worth as much as \
that node: k of a group's are worth every key. Keep it and what seals it apart, and make a new one after each refresh: a \
refresh makes older shares worthless, in backups too. Ceremonies under way and nonces made in advance are never in it.")]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    place: NodePlace,
    /// How to seal what is read from --dir. file:PATH, passphrase-file:PATH, env:NAME or credential:NAME; a running node \
    /// seals by its own node.toml
    #[arg(long, value_name = "SEALING", required_unless_present = "node", conflicts_with = "node", long_help = SEALING_HELP)]
    seal: Option<SealWord>,
    /// Where to write the backup; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    approvals: ApprovalFiles,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Serialize)]
struct Report {
    keys: u64,
    audit_records: u64,
    bytes: u64,
    output: PathBuf,
    /// The node that made and sealed it, if it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<NonZeroU16>,
}

/// Counts the bytes that it passes on.
struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.bytes = self.bytes.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// `theta keys backup`.
pub(crate) fn backup(args: &BackupArgs, output: Output) -> Result<(), Failure> {
    let target = Target::choose(Some(&args.output), None)?;
    target.check_json(output.json())?;
    target.check_terminal("a backup")?;
    let (done, bytes, sealed_by) = match (&args.place, &args.seal) {
        (NodePlace { dir: Some(dir), .. }, Some(seal)) => {
            let (done, bytes) = of_stopped(dir, seal, &target)?;
            (done, bytes, seal.to_string())
        }
        (NodePlace { node: Some(node), .. }, _) => {
            let (done, bytes) = of_running(*node, args, &target)?;
            (done, bytes, format!("what backup.sealing in node {node}'s node.toml names"))
        }
        _ => return Err(Failure::internal("no node was named")),
    };
    let BackedUp { keys, audit_records } = done;
    let report = Report { keys, audit_records, bytes, output: target.name(), node: args.place.node };
    let summary = format!("backed up {keys} keys to {}, sealed by {sealed_by}", report.output.display());
    output.remark(&report, &summary)
}

fn of_stopped(dir: &std::path::Path, seal: &SealWord, target: &Target) -> Result<(BackedUp, u64), Failure> {
    let key = seal.new_key()?;
    let store = open(&config(dir)?)?;
    let mut draft = target.draft(true)?;
    let mut writer = Counted { inner: BufWriter::new(draft.file()), bytes: 0 };
    let done = store.backup(&mut writer, &key)?;
    writer.flush().map_err(|error| Failure::writing(&target.name(), &error))?;
    let bytes = writer.bytes;
    drop(writer);
    draft.commit()?;
    Ok((done, bytes))
}

fn of_running(node: NonZeroU16, args: &BackupArgs, target: &Target) -> Result<(BackedUp, u64), Failure> {
    let session = args.client.open_with(&args.approvals)?;
    let mut draft = target.draft(true)?;
    let mut writer = Counted { inner: BufWriter::new(draft.file()), bytes: 0 };
    let failed = |error: &std::io::Error| Failure::writing(&target.name(), error);
    let taken = session.block_on(async {
        let mut backup = session.client().back_up(node.into()).await?;
        let mut progress = None;
        while let Some(part) = backup.next().await? {
            writer.write_all(&part).map_err(|error| failed(&error))?;
            let progress =
                progress.get_or_insert_with(|| Progress::new("backing up", backup.about().filter(|about| *about > 0)));
            progress.reached(writer.bytes);
        }
        let (keys, audit_records) = backup.contents();
        Ok::<_, Failure>(BackedUp { keys: keys.into(), audit_records })
    });
    // What came of it until then is no backup: the draft goes with it.
    let done = taken?;
    writer.flush().map_err(|error| failed(&error))?;
    let bytes = writer.bytes;
    drop(writer);
    draft.commit()?;
    Ok((done, bytes))
}
