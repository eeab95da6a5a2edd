//! `theta group renew`, also called `readdress`.

use std::path::PathBuf;

use clap::Args;
use theta_ledger::MemberChange;

use super::{
    AskArgs,
    ask::{look, number_of},
    one_card,
};
use crate::{exit::Failure, output::Output};

/// Options of `theta group renew`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta node card --dir alpha --peer new.example:7210 --clients new.example:7211      at the node, stopped: it writes alpha/node.card
  theta group renew alpha/node.card                                                   from any client
  theta group readdress alpha/node.card                                               the same

A member's new card is signed with the key that it has, so the other members need not agree, and their policies only have to let cards be brought \
(group.renew). Nodes and clients take new addresses and TLS keys from the ledger: no file is edited elsewhere, and no other node starts again. A member \
renews its card 8 times a day at most.")]
pub(crate) struct RenewArgs {
    /// The member's new card
    #[arg(value_name = "CARD")]
    card: PathBuf,
    #[command(flatten)]
    ask: AskArgs,
}

/// Brings a member's new card.
pub(crate) fn renew(args: &RenewArgs, output: Output) -> Result<(), Failure> {
    let card = one_card(&args.card)?;
    let session = args.ask.open()?;
    let number = look(&session, |state| number_of(state, &card.content().ceremony_key))?.ok_or_else(|| {
        Failure::Usage(format!(
            "{} is not the card of a machine that is a member now: theta group add takes a new member in, theta group replace puts another \
             machine in a member's place",
            args.card.display()
        ))
    })?;
    let (peer, api) = (card.content().peer_address.clone(), card.content().api_address.clone());
    let change = MemberChange::Renew { node: number, card };
    let changed = args.ask.change(&session, (&change, Vec::new()), &format!("renewing the card of node {number}"))?;
    changed.report(output, &format!("is reached at {peer}, and by clients at {api}"), &[])
}
