//! `theta keys check-evidence`: checks an accusation.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use theta_custody::{EvidenceError, ProvenLie, check_evidence};
use theta_network::group::GroupFile;

use crate::{
    exit::Failure,
    files::Source,
    output::{GOOD, Output},
};

/// The most bytes of evidence, which is a few statements of a ceremony.
const MOST_BYTES: usize = 16 << 20;

/// Options of `theta keys check-evidence`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys check-evidence 5e1a77c0-node-2-0.evidence
  theta keys check-evidence 5e1a77c0-node-2-0.evidence --group group.toml     by somebody who has nothing but the group file

Ceremonies name nodes that lied, and theta keys create, refresh, reshare and recover write the evidence into files. It takes no \
trust in whoever shows it, and no node: statements that only the culprit can have signed are checked against the group file. No \
evidence convicts an honest node. Exit code 0 if it proves a lie, 1 if it proves nothing, 2 if it is no evidence.")]
pub(crate) struct EvidenceArgs {
    /// The evidence; - for standard input
    file: PathBuf,
    /// The group file, as it was at the time of the ceremony
    #[arg(long, value_name = "FILE", default_value = "theta-group/client/group.toml")]
    group: PathBuf,
}

#[derive(Serialize)]
struct Proven {
    node: u16,
    misbehaviour: String,
    ceremony: String,
    aim: &'static str,
    key: String,
}

/// `theta keys check-evidence`.
pub(super) fn check(args: &EvidenceArgs, output: Output) -> Result<(), Failure> {
    let usage = |error: &dyn core::fmt::Display| Failure::Usage(error.to_string());
    let group = GroupFile::load(&args.group).map_err(|error| usage(&error))?;
    let roster = theta_service::roster(&group).map_err(|error| usage(&error))?;
    let source = Source::open(&args.file)?;
    let name = source.name.display().to_string();
    let bytes = source.read_all(MOST_BYTES, "this is no evidence")?;
    let ProvenLie { evidence, ceremony, aim, key } = check_evidence(&bytes, &roster).map_err(|error| {
        let text = format!("{name}: {error}");
        if matches!(error, EvidenceError::Malformed(_)) { Failure::Usage(text) } else { Failure::Failed(text) }
    })?;
    let (node, misbehaviour) = (evidence.culprit().get(), evidence.to_string());
    let proven = Proven { node, misbehaviour, ceremony: hex::encode(ceremony), aim, key: key.to_string() };
    output.result(&proven, |out| {
        let Proven { node, misbehaviour, ceremony, aim, key } = &proven;
        writeln!(out, "{GOOD}proven{GOOD:#}: node {node} lied: {misbehaviour}")?;
        writeln!(out, "to {aim} {key}, in the ceremony {ceremony}")
    })
}
