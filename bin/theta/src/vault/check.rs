//! `theta keys check-backup`.

use std::{io::BufReader, path::PathBuf};

use clap::Args;
use serde::Serialize;
use theta_groups::Secret;
use theta_names::{Epoch, Version};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};
use theta_store::{BackupReport, EpochRecord, check_backup};

use super::{SEALING_HELP, SealWord};
use crate::{
    exit::Failure,
    files::Source,
    output::{GOOD, Output, Table},
};

/// Options of `theta keys check-backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys check-backup node-1.backup --seal file:backup.key

Opens and reads all of it: every record is authentic, the audit log is whole, each share fits the public key that it is of. A \
backup that was never checked is a hope. Nothing is written. Exit code 1 if anything is wrong with it.")]
pub(crate) struct CheckArgs {
    /// The backup; - for standard input
    file: PathBuf,
    #[arg(long, value_name = "SEALING", help = SEALING_HELP)]
    seal: SealWord,
}

#[derive(Serialize)]
struct Checked {
    good: bool,
    store: String,
    keys: Vec<KeyView>,
    shares: usize,
    unfit: Vec<String>,
    audit_records: u64,
}

#[derive(Serialize)]
struct KeyView {
    name: String,
    state: &'static str,
    versions: Vec<VersionView>,
}

#[derive(Serialize)]
struct VersionView {
    version: Version,
    suite: String,
    state: &'static str,
    epoch: Option<Epoch>,
}

impl From<BackupReport> for Checked {
    fn from(report: BackupReport) -> Self {
        let versions = |key: &theta_store::KeyRecord| {
            let view = |version: &theta_store::VersionRecord| VersionView {
                version: version.version,
                suite: version.suite.clone(),
                state: key.effective_state(version).name(),
                epoch: version.serving.as_ref().map(|epoch| epoch.number),
            };
            key.versions().iter().map(view).collect()
        };
        let keys = report.keys.iter().map(|key| KeyView {
            name: key.name.to_string(),
            state: key.state.name(),
            versions: versions(key),
        });
        Self {
            good: report.unfit.is_empty(),
            store: report.origin.store_id.to_string(),
            keys: keys.collect(),
            shares: report.shares,
            unfit: report
                .unfit
                .iter()
                .map(|(name, version, epoch)| format!("{name}@{version}, epoch {epoch}"))
                .collect(),
            audit_records: report.audit_records,
        }
    }
}

/// `theta keys check-backup`.
pub(crate) fn check(args: &CheckArgs, output: Output) -> Result<(), Failure> {
    let key = args.seal.key()?;
    let source = Source::open(&args.file)?;
    let name = source.name.display().to_string();
    let report = check_backup(BufReader::new(source.reader), &key, &mut |_, _, epoch, share| fits(epoch, share))?;
    let checked = Checked::from(report);
    output.result(&checked, |out| {
        let mut table = Table::new(&["key", "version", "suite", "state", "epoch"], &[1, 4]);
        for key in &checked.keys {
            for version in &key.versions {
                let epoch = version.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
                let cells = [key.name.clone(), version.version.to_string(), version.suite.clone()];
                table.row(cells.into_iter().chain([version.state.to_owned(), epoch]));
            }
        }
        table.write(out)?;
        let (shares, records) = (checked.shares, checked.audit_records);
        if checked.good {
            writeln!(out, "{GOOD}ok{GOOD:#} {shares} shares fit their keys, {records} audit records are whole")?;
        }
        Ok(())
    })?;
    if checked.good {
        return Ok(());
    }
    Err(Failure::Failed(format!("{name}: shares that do not fit their keys: {}", checked.unfit.join("; "))))
}

/// Whether a share belongs to the key that the epoch describes.
fn fits(epoch: &EpochRecord, share: &Secret<Vec<u8>>) -> bool {
    let read = || {
        let public = AnyPublicKey::from_bytes(&epoch.public).ok()?;
        AnyKeyShare::from_bytes(share.expose(), &public).ok()
    };
    read().is_some()
}
