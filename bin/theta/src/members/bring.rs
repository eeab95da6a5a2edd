//! `theta group bring`.

use std::path::PathBuf;

use clap::Args;
use theta_ledger::{LedgerState, WarrantRefusal};

use super::{
    AskArgs, ask,
    replace::how_to_recover,
    warrant::{read_warrant, why},
};
use crate::{
    exit::Failure,
    output::{self, Output},
    progress::WaitBar,
};

/// Options of `theta group bring`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta group bring payments-node-3.warrant
  theta group bring from-alpha.warrant from-beta.warrant from-gamma.warrant      copies with the signature of one operator each

The nodes take the warrant if enough operators have signed it, and the new machines vote in the places of those that are gone. So they have to run, \
from when this says that it waits for them: theta node join makes them ready, with the ledger as it is before and the warrant. Then the group replaces the machines, and the warrant ends by that. \
It stands in the ledger for ever (theta ledger show --entries).")]
pub(crate) struct BringArgs {
    /// The warrant, or copies of it
    #[arg(required = true, value_name = "FILE")]
    warrants: Vec<PathBuf>,
    #[command(flatten)]
    ask: AskArgs,
}

/// Brings a warrant, and waits until all its machines are in their places.
pub(crate) fn bring(args: &BringArgs, output: Output) -> Result<(), Failure> {
    let session = args.ask.open()?;
    let warrant = read_warrant(&args.warrants, &ask::look(&session, LedgerState::clone)?)?;
    match ask::look(&session, |state| state.check_warrant(&warrant))? {
        // Whether it has served, the ledger says.
        Ok(()) | Err(WarrantRefusal::Done) => {}
        Err(refusal) => return Err(Failure::Failed(format!("the warrant does not serve: {}", why(&refusal)))),
    }
    let numbers: Vec<u16> = warrant.stand_ins().iter().map(|stand_in| stand_in.node.get()).collect();
    let mut bar = WaitBar::new(&format!("replacing {}", crate::connect::nodes(&numbers)));
    let brought = session.client().bring_warrant(&warrant, |progress| bar.stands(ask::in_words(progress)));
    let changed = session.block_on(brought);
    drop(bar);
    let changed = changed?;
    ask::report_problems(&changed);
    let Some(first) = numbers.first() else { return Err(Failure::internal("a warrant for nobody")) };
    if numbers.len() > 1 {
        output::note(format_args!("{} are other machines now", crate::connect::nodes(&numbers)));
    }
    let report = ask::Changed::new(&session, "replace", (*first, ask::named(&session, *first)), &changed)?;
    let recover = numbers.iter().map(|node| how_to_recover(*node));
    report.report(output, "is another machine", &recover.collect::<Vec<_>>())
}
