//! `theta group show`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::{MemberView, member_table, members, read_founding};
use crate::{exit::Failure, output::Output};

/// Options of `theta group show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta group show payments.founding
  theta group show alpha/group.founding --json")]
pub(crate) struct ShowArgs {
    /// The founding, as theta group assemble writes it, or as it is in a node's directory
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Serialize)]
struct Shown<'a> {
    group: &'a str,
    threshold: u16,
    fingerprint: String,
    members: Vec<MemberView>,
}

/// Shows who founds a group, and the fingerprint.
pub(crate) fn show(args: &ShowArgs, output: Output) -> Result<(), Failure> {
    let founding = read_founding(&args.file)?;
    let shown = Shown {
        group: founding.name(),
        threshold: founding.threshold(),
        fingerprint: founding.fingerprint().to_string(),
        members: members(&founding),
    };
    output.result(&shown, |out| {
        let n = shown.members.len();
        writeln!(out, "the group {}: {n} nodes, any {} of which act together\n", shown.group, shown.threshold)?;
        member_table(&shown.members).write(out)?;
        writeln!(out, "\nIts fingerprint: {}", shown.fingerprint)
    })
}
