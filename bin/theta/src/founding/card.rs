//! `theta node card`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use theta_network::Identity;

use super::{About, CARD, config::Unjoined, keys, read_cards};
use crate::{
    access::now,
    exit::Failure,
    files::{self, Target},
    output::Output,
    vault,
};

/// Options of `theta node card`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta node card --dir alpha

Groups are put together with a card within 90 days. This writes DIR/node.card anew, with the same keys, name and addresses. \
Whoever has the old card needs the new one: the node joins a group with its present card alone.")]
pub struct CardArgs {
    /// The directory that theta node init made, of a node that is in no group yet
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Serialize)]
struct Written<'a> {
    card: PathBuf,
    name: &'a str,
}

/// Writes a node's card anew.
pub(crate) fn card(args: &CardArgs, output: Output) -> Result<(), Failure> {
    let unjoined = Unjoined::read(&args.dir)?;
    let config = unjoined.config();
    let file = args.dir.join(CARD);
    let old = own(&args.dir)?;
    let identity =
        Identity::load(&config.certificate, &config.private_key).map_err(|error| Failure::Usage(error.to_string()))?;
    let ceremonies = keys::of_store(&vault::open(config)?)?;
    let content = old.content().clone();
    let about = About { name: content.name, peer: content.peer_address, api: content.api_address, number: None };
    let new = keys::card(&ceremonies, about, (identity.fingerprint(), content.operator_key), now().0 / 1_000)?;
    Target::choose(Some(&file), None)?.write(new.to_text().as_bytes(), false)?;
    let written = Written { card: file, name: new.name().as_str() };
    output.result(&written, |out| writeln!(out, "wrote {}: send it instead of the old one", written.card.display()))
}

/// The card in a node's directory.
pub(super) fn own(dir: &std::path::Path) -> Result<theta_ledger::founding::Card, Failure> {
    let file = dir.join(CARD);
    let cards = read_cards(&file)?;
    match <[_; 1]>::try_from(cards) {
        Ok([card]) => Ok(card),
        Err(_) => {
            Err(Failure::Usage(format!("{} has more than this node's card in it", files::parent(&file).display())))
        }
    }
}
