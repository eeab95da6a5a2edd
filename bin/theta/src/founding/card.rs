//! `theta node card`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use theta_names::{Address, WallTime};
use theta_network::Identity;

use super::{
    About, CARD,
    config::{self, Unjoined},
    keys, parse_address, read_cards,
};
use crate::{
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
  theta node card --dir alpha --peer new.example:7210 --clients new.example:7211

Groups are put together with a card within 90 days, and a running group takes it within that time. This writes DIR/node.card anew, with the same keys and name. \
Whoever has the old card needs the new one: the node joins a group with its present card alone.

A member that moves stops, says here where it is reached from now on, and brings the card to the group from any client: theta group renew DIR/node.card. In \
node.toml it listens there, if it has listened where it was reached before.")]
pub struct CardArgs {
    /// The node's directory; it does not run
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Where the other nodes reach it from now on [default: as before]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address)]
    peer: Option<Address>,
    /// Where clients reach it from now on [default: as before]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address)]
    clients: Option<Address>,
}

#[derive(Serialize)]
struct Written<'a> {
    card: PathBuf,
    name: &'a str,
    peer_address: &'a str,
    api_address: &'a str,
    /// Whether it is a member's, for whose group it is.
    member: bool,
    listens: String,
}

/// Writes a node's card anew.
pub(crate) fn card(args: &CardArgs, output: Output) -> Result<(), Failure> {
    let toml = config::file(&args.dir);
    let unjoined = if config::is_unjoined_at(&toml) { Some(Unjoined::read(&args.dir)?) } else { None };
    let joined = if unjoined.is_none() { Some(vault::config(&args.dir)?) } else { None };
    let config = unjoined.as_ref().map(Unjoined::config).or(joined.as_ref());
    let config = config.ok_or_else(|| Failure::internal("a node without a configuration"))?;
    let file = args.dir.join(CARD);
    let old = own(&args.dir)?;
    let identity =
        Identity::load(&config.certificate, &config.private_key).map_err(|error| Failure::Usage(error.to_string()))?;
    // A store that is in use says that the node runs.
    let ceremonies = keys::of_store(&vault::open(config)?)?;
    let before = old.content().clone();
    let peer = args.peer.clone().unwrap_or_else(|| before.peer_address.clone());
    let api = args.clients.clone().unwrap_or_else(|| before.api_address.clone());
    let moved = (&peer, &api) != (&before.peer_address, &before.api_address);
    let about = About { name: before.name.clone(), peer, api, number: None };
    // Later than the one before, whatever the clock says: an old card does not undo a newer one.
    let made = WallTime::now().seconds().max(before.made.saturating_add(1));
    let new = keys::card(&ceremonies, about, (identity.fingerprint(), before.operator_key), made)?;
    let content = new.content();
    let listens = if moved { config::move_listeners(&toml, &before, content)? } else { String::new() };
    Target::choose(Some(&file), None)?.write(new.to_text().as_bytes(), false)?;
    let written = Written {
        card: file,
        name: new.name().as_str(),
        peer_address: content.peer_address.as_str(),
        api_address: content.api_address.as_str(),
        member: joined.is_some(),
        listens,
    };
    output.result(&written, |out| {
        let card = written.card.display();
        if !written.listens.is_empty() {
            writeln!(out, "{}", written.listens)?;
        }
        if written.member {
            writeln!(
                out,
                "wrote {card}\n\nNext:\n  theta group renew {card}      from any client; the node may run meanwhile"
            )
        } else {
            writeln!(out, "wrote {card}: send it instead of the old one")
        }
    })
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
