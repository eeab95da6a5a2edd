//! `theta group warrant new`.

use std::{path::PathBuf, str::FromStr};

use clap::Args;
use serde::Serialize;
use theta_ledger::{LONGEST_WARRANT, LedgerState, StandIn, Warrant};
use theta_names::{NodeId, WallTime};

use super::{
    super::{LedgerArgs, in_words, one_card},
    view::{WarrantView, why},
};
use crate::{exit::Failure, files::Target, output::Output};

/// Options of `theta group warrant new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta group warrant new 3=gamma2/node.card
  theta group warrant new 3=gamma2/node.card --ledger payments.ledger --fingerprint 'XEVM 0ACS ...'

In a group with fewer than 3K - 2 nodes for any K that act together, such as 2 of 3, all must decide a change: one machine that is gone \
for ever would end all change, its own replacement included. So the operators of enough members sign a warrant: until the machine is \
replaced, another votes in its place. The new machine is made with theta node init --replaces, which gives its card.

Then:
  theta group warrant sign FILE --as alpha.operator      each operator, one after the other or each a copy
  theta group bring FILE                                 anybody who is a client; the machine is replaced, which the ledger tells for ever")]
pub(crate) struct NewArgs {
    /// The member's number, and the card of the machine in its place
    #[arg(required = true, value_name = "N=CARD")]
    machines: Vec<Machine>,
    /// The warrant to write [default: GROUP-node-N.warrant]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    ledger: LedgerArgs,
}

#[derive(Clone, Debug)]
struct Machine {
    node: NodeId,
    card: PathBuf,
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?}: write the member's number and the new machine's card, such as 3=gamma2/node.card");
        let (node, card) = text.split_once('=').filter(|(_, card)| !card.is_empty()).ok_or_else(wrong)?;
        let node = node.parse::<u16>().ok().and_then(|node| NodeId::try_from(node).ok()).ok_or_else(wrong)?;
        Ok(Self { node, card: PathBuf::from(card) })
    }
}

#[derive(Serialize)]
struct Made {
    file: PathBuf,
    #[serde(flatten)]
    warrant: WarrantView,
}

/// Writes a warrant that nobody has signed.
pub(super) fn new(args: &NewArgs, output: Output) -> Result<(), Failure> {
    let checked = args.ledger.read()?;
    let state = &checked.state;
    let stand_ins = args.machines.iter().map(|machine| stand_in(state, machine)).collect::<Result<Vec<_>, _>>()?;
    // Clocks differ.
    let longest = WallTime::now().seconds().saturating_add(LONGEST_WARRANT - 3 * 86_400);
    let until = stand_ins.iter().map(|stand_in| stand_in.card.content().until).fold(longest, u64::min);
    let warrant = Warrant::new(*state.id(), state.height().saturating_add(1), until, stand_ins);
    let warrant = warrant.map_err(|error| Failure::Usage(error.to_string()))?;
    state.check_unsigned_warrant(&warrant).map_err(|refusal| Failure::Failed(why(&refusal)))?;
    let numbers: Vec<String> = warrant.stand_ins().iter().map(|stand_in| stand_in.node.to_string()).collect();
    let derived = PathBuf::from(format!("{}-node-{}.warrant", state.group(), numbers.join("-")));
    let target = Target::choose(args.output.as_deref(), Some(derived))?;
    target.check_json(output.json())?;
    target.write(warrant.to_text().as_bytes(), false)?;
    if target == Target::Stdout {
        return Ok(());
    }
    let made = Made { file: target.name(), warrant: WarrantView::new(state, &warrant) };
    output.result(&made, |out| {
        made.warrant.write_terms(out)?;
        let (file, needed) = (made.file.display(), state.quorum());
        writeln!(out, "\nNext:")?;
        writeln!(out, "  theta group warrant sign {file} --as KEY.operator     the operators of {needed} members")?;
        writeln!(out, "  theta group bring {file}")
    })
}

fn stand_in(state: &LedgerState, machine: &Machine) -> Result<StandIn, Failure> {
    let card = one_card(&machine.card)?;
    let node = machine.node;
    let present = state.seats().get(&node).and_then(|seat| seat.card());
    let present = present.ok_or_else(|| Failure::Usage(format!("there is no node {node} with a card in the group")))?;
    if present.content().operator_key != card.content().operator_key {
        return Err(Failure::Usage(format!(
            "{} names another operator's key than {} has: make the new machine with theta node init --replaces",
            machine.card.display(),
            in_words(state, node)
        )));
    }
    Ok(StandIn { node, gone: present.content().ceremony_key, card })
}
