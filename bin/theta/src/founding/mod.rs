//! How groups begin: a node's keys and card at each organisation, one founding of all cards, and every node that joins it. What
//! `theta group init` does on one machine is the same.

mod assemble;
mod card;
mod config;
mod init;
mod join;
mod keys;
mod show;

use std::path::Path;

use serde::Serialize;
use theta_ledger::founding::{Card, Founding, NodeSignatures};
use theta_names::{Address, NodeId};
use theta_network::{
    Fingerprint,
    group::{CeremonyKey, GroupClient, GroupFile, GroupNode},
};

pub(crate) use self::{
    assemble::{AssembleArgs, assemble},
    card::{CardArgs, card},
    config::refuse_unjoined,
    init::{InitArgs, init},
    join::{JoinArgs, join},
    keys::{About, NodeKeys},
    show::{ShowArgs, show},
};
use crate::{exit::Failure, files::Source, output::Table};

/// A node's card, in its directory.
pub(crate) const CARD: &str = "node.card";
/// What the file of an operator's key ends with.
pub(crate) const OPERATOR: &str = "operator";
/// The founding of its group, in its directory.
pub(crate) const FOUNDING: &str = "group.founding";

/// What every group file begins with.
const GROUP_HEAD: &str =
    "# The group: who belongs to it, where, and with which keys. Public, and the same at all members.\n\n";

/// A member as people see it.
#[derive(Serialize)]
pub(crate) struct MemberView {
    node: u16,
    name: String,
    peer_address: String,
    api_address: String,
}

pub(crate) fn members(founding: &Founding) -> Vec<MemberView> {
    let view = |(node, card): (NodeId, &Card)| MemberView {
        node: node.get(),
        name: card.name().to_string(),
        peer_address: card.content().peer_address.to_string(),
        api_address: card.content().api_address.to_string(),
    };
    founding.numbered().map(view).collect()
}

pub(crate) fn member_table(members: &[MemberView]) -> Table {
    let mut table = Table::new(&["node", "name", "for nodes", "for clients"], &[]);
    for MemberView { node, name, peer_address, api_address } in members {
        table.row([node.to_string(), name.clone(), peer_address.clone(), api_address.clone()]);
    }
    table
}

/// The text of the group file that follows from a founding. These clients come besides, where one machine makes all.
pub(crate) fn group_text(founding: &Founding, clients: Vec<GroupClient>) -> Result<String, Failure> {
    let nodes = founding.numbered().map(|(id, card)| group_node(id, card)).collect();
    let group = GroupFile::new(founding.name(), founding.threshold(), nodes, clients).map_err(Failure::internal)?;
    Ok(format!("{GROUP_HEAD}{}", group.with_founding(founding.to_text()).to_text()))
}

/// A member as the group file has it.
fn group_node(id: NodeId, card: &Card) -> GroupNode {
    let content = card.content();
    GroupNode {
        id,
        name: Some(content.name.clone()),
        peer_address: content.peer_address.to_string(),
        api_address: content.api_address.to_string(),
        certificate: Fingerprint::from(content.tls_key),
        ceremony_key: Some(CeremonyKey::from(content.ceremony_key)),
    }
}

/// Reads a text that may be as long as a founding of the most members.
fn read(path: &Path) -> Result<String, Failure> {
    let bytes = Source::open(path)?.read_all(4 << 20, "this is not the file that was meant")?;
    String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{} is not a text file", path.display())))
}

/// Whether a file is a founding, and no group file.
pub(crate) fn is_founding(path: &Path) -> Result<bool, Failure> {
    let text = read(path)?;
    // A group file has one in it.
    Ok(text.contains("-----BEGIN THETA FOUNDING-----") && !text.lines().any(|line| line.trim() == "[[node]]"))
}

/// Reads a founding.
pub(crate) fn read_founding(path: &Path) -> Result<Founding, Failure> {
    let text = read(path)?;
    Founding::from_text(&text, &NodeSignatures).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Reads the cards of a file.
fn read_cards(path: &Path) -> Result<Vec<Card>, Failure> {
    let text = read(path)?;
    Card::all_from_text(&text, &NodeSignatures).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// An address on the command line.
fn parse_address(text: &str) -> Result<Address, String> {
    text.parse().map_err(|error| format!("{error}"))
}
