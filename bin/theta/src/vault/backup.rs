//! `theta keys backup`.

use std::{
    io::{BufWriter, Write},
    path::PathBuf,
};

use clap::Args;
use serde::Serialize;

use super::{SEALING_HELP, SealWord, StoppedNode};
use crate::{exit::Failure, files::Target, output::Output};

/// Options of `theta keys backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  (umask 77; openssl rand -hex 32 > backup.key)
  theta keys backup --dir theta-group/node-1 --seal file:backup.key -o node-1.backup
  theta keys check-backup node-1.backup --seal file:backup.key
  THETA_BACKUP='correct horse ...' theta keys backup --dir theta-group/node-1 --seal env:THETA_BACKUP -o node-1.backup

A backup has one node's shares, states, signing rules' memory and audit log, of one moment, sealed. It is worth as much as \
that node: k of a group's are worth every key. Keep it and what seals it apart, and make a new one after each refresh: a \
refresh makes older shares worthless, in backups too. The node must be stopped.")]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    node: StoppedNode,
    #[arg(long, value_name = "SEALING", help = SEALING_HELP)]
    seal: SealWord,
    /// Where to write the backup; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Serialize)]
struct BackedUp {
    keys: usize,
    bytes: u64,
    output: PathBuf,
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
    let key = args.seal.new_key()?;
    let store = args.node.open()?;
    let mut draft = target.draft(true)?;
    let mut writer = Counted { inner: BufWriter::new(draft.file()), bytes: 0 };
    store.backup(&mut writer, &key)?;
    writer.flush().map_err(|error| Failure::writing(&target.name(), &error))?;
    let bytes = writer.bytes;
    drop(writer);
    draft.commit()?;
    let done = BackedUp { keys: store.keys()?.len(), bytes, output: target.name() };
    let summary = format!("backed up {} keys to {}, sealed by {}", done.keys, done.output.display(), args.seal);
    output.remark(&done, &summary)
}
