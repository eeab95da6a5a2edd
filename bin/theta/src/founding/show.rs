//! `theta group show`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use theta_ledger::founding::Card;
use theta_statements::UnixTime;

use super::{MemberView, member_table, members, read, read_cards, read_founding, warn_of_lookalikes};
use crate::{exit::Failure, members::aloud, output::Output};

/// Options of `theta group show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta group show payments.founding
  theta group show alpha/group.founding --json
  theta group show alpha/node.card              a machine's keys, for those who compare them")]
pub(crate) struct ShowArgs {
    /// The founding, as theta group assemble writes it, or as it is in a node's directory; or cards
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

#[derive(Serialize)]
struct ShownCard {
    name: String,
    peer_address: String,
    api_address: String,
    key: String,
    operator_key: String,
    until: u64,
}

fn show_cards(cards: &[Card], output: Output) -> Result<(), Failure> {
    let shown: Vec<ShownCard> = cards
        .iter()
        .map(|card| ShownCard {
            name: card.name().to_string(),
            peer_address: card.content().peer_address.to_string(),
            api_address: card.content().api_address.to_string(),
            key: aloud(&card.content().ceremony_key),
            operator_key: aloud(card.content().operator_key.as_bytes()),
            until: card.content().until,
        })
        .collect();
    output.result(&shown, |out| {
        for card in &shown {
            writeln!(out, "the card of {}", card.name)?;
            writeln!(out, "  for nodes     {}", card.peer_address)?;
            writeln!(out, "  for clients   {}", card.api_address)?;
            writeln!(out, "  its key       {}", card.key)?;
            writeln!(out, "  its operator  {}", card.operator_key)?;
            writeln!(out, "  until         {}", UnixTime(card.until.saturating_mul(1000).min(UnixTime::LAST.0)))?;
        }
        writeln!(out, "\nCompare the keys aloud with the operator, who sees them in the same way.")
    })
}

/// Shows who founds a group, and the fingerprint; or what cards say.
pub(crate) fn show(args: &ShowArgs, output: Output) -> Result<(), Failure> {
    if !read(&args.file)?.contains("-----BEGIN THETA FOUNDING-----") {
        return show_cards(&read_cards(&args.file)?, output);
    }
    let founding = read_founding(&args.file)?;
    warn_of_lookalikes(founding.members().iter().map(Card::name));
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
