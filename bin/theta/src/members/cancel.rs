//! `theta group cancel`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use theta_client::{Client, ClientError, TakenBack};
use theta_ledger::MemberChange;

use super::{ask::named, one_card};
use crate::{
    access::{ApprovalFiles, Nonce},
    connect::{self, ClientArgs},
    exit::Failure,
    output::{self, GOOD, Output},
};

/// Options of `theta group cancel`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta group cancel echo/node.card                     that a new member joins
  theta group cancel --node 3 gamma2/node.card          that another machine comes into the place of node 3
  theta group cancel --node 4                           that node 4 leaves
  theta approve --as ann.key --operation group.change --take-back --card echo/node.card -o ann.approval
  theta group cancel echo/node.card --approval ann.approval

A change of the members to which too few have agreed is given up after a minute, but what some have agreed to counts for five days, and \
others may join them. This takes it back: each node that is reached votes against it, whoever asks for it with what was signed before. It is done \
when these are so many that the others cannot decide. It takes the permission that the change takes, group.change, and approvals that are about this. The same \
change can be asked for again after 70 minutes; one with a new card (theta node card) at once.

What an operator has signed (theta group replace with the operator's key, a warrant) takes nobody's consent, and is not taken back by others.")]
pub(crate) struct CancelArgs {
    /// The card of the machine that was to come
    #[arg(value_name = "CARD", required_unless_present = "node")]
    card: Option<PathBuf>,
    /// The member that was to leave or, with a card, to get another machine
    #[arg(long, value_name = "NODE", value_parser = clap::value_parser!(u16).range(1..))]
    node: Option<u16>,
    #[command(flatten)]
    approvals: ApprovalFiles,
    /// The request's nonce, as theta approve shows it [default: the one in the approvals' files, else a new one]
    #[arg(long, value_name = "HEX")]
    nonce: Option<Nonce>,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Serialize)]
struct Cancelled {
    cancelled: bool,
    /// The nodes that vote against the change.
    nodes: Vec<u16>,
}

/// Takes a change of the members back.
pub(crate) fn cancel(args: &CancelArgs, output: Output) -> Result<(), Failure> {
    let card = args.card.as_deref().map(one_card).transpose()?;
    let session = args.client.open_signed(&args.approvals, args.client.timeout())?;
    session.renew();
    let (change, what) = match (card, args.node) {
        (Some(card), None) => {
            let what = format!("{} joins", card.name());
            (MemberChange::Add(card), what)
        }
        (Some(card), Some(node)) => {
            (MemberChange::Replace { node, card }, format!("another machine comes into the place of node {node}"))
        }
        (None, Some(node)) => {
            let name = named(&session, node).map(|name| format!(" ({name})")).unwrap_or_default();
            (MemberChange::Remove { node }, format!("node {node}{name} leaves"))
        }
        (None, None) => return Err(Failure::Usage("name a card, or a member with --node".to_owned())),
    };
    let nonce = args.nonce.or_else(|| session.approved()).map(|nonce| nonce.0);
    let taken = session.block_on(session.client().take_back(&Client::take_back_request(&change, nonce)?));
    if let Err(ClientError::Denied { reason, .. }) = &taken
        && matches!(reason.as_str(), "no-rule" | "too-few-approvals")
    {
        output::note(how_to_approve(args));
    }
    match taken? {
        TakenBack::TooLate { height } => {
            Err(Failure::Failed(format!("too late: that {what} was decided, by entry {height} of the ledger")))
        }
        TakenBack::Done { nodes } => {
            let nodes: Vec<u16> = nodes.iter().map(|node| node.get()).collect();
            let by = connect::nodes(&nodes);
            output.result(&Cancelled { cancelled: true, nodes }, |out| {
                writeln!(
                    out,
                    "{GOOD}ok{GOOD:#} taken back, that {what}: {by} vote against it, and the others cannot decide"
                )
            })
        }
    }
}

/// The commands that lead to the approvals, for policies that ask for them.
fn how_to_approve(args: &CancelArgs) -> String {
    let card = args.card.as_ref().map(|card| card.display().to_string());
    let node = args.node.map(|node| format!(" --node {node}")).unwrap_or_default();
    let client = connect::client_option();
    let asked = card.as_ref().map(|card| format!(" --card {card}")).unwrap_or_default();
    let named = card.map(|card| format!(" {card}")).unwrap_or_default();
    format!(
        "taking a change back takes the approvals that the change takes, and these are about this:
  theta approve --as ann.key --operation group.change --take-back{asked}{node}{client} -o ann.approval
  theta group cancel{named}{node}{client} --approval ann.approval"
    )
}
