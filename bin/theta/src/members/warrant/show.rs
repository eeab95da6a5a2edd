//! `theta group warrant show`.

use std::path::PathBuf;

use clap::Args;

use super::{super::LedgerArgs, read_warrant, view::WarrantView};
use crate::{exit::Failure, output::Output};

/// Options of `theta group warrant show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta group warrant show payments-node-3.warrant
  theta group warrant show from-alpha.warrant from-beta.warrant         copies with the signature of one operator each
  theta group warrant show payments-node-3.warrant --ledger payments.ledger --fingerprint 'XEVM 0ACS ...'")]
pub(crate) struct ShowArgs {
    /// The warrant, or copies of it
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    ledger: LedgerArgs,
}

/// Says what a warrant allows.
pub(super) fn show(args: &ShowArgs, output: Output) -> Result<(), Failure> {
    let checked = args.ledger.read()?;
    let view = WarrantView::new(&checked.state, &read_warrant(&args.files, &checked.state)?);
    output.result(&view, |out| {
        view.write_terms(out)?;
        view.write_signatures(out)
    })
}
