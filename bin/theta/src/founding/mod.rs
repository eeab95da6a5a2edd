//! How groups begin: a node's keys and card at each organisation, one founding of all cards, and every node that joins it. What
//! `theta group init` does on one machine is the same.

mod assemble;
mod card;
mod config;
mod init;
mod join;
mod keys;
mod rejoin;
mod show;

use std::{collections::BTreeMap, io::Read as _, path::Path};

use serde::Serialize;
use theta_client::{Checkpoint, group_node};
use theta_ledger::LedgerId;
use theta_ledger::founding::{Card, Fingerprint, Founding, NodeSignatures};
use theta_names::{Address, NodeId, NodeName};
use theta_network::group::{GroupClient, GroupFile};

pub(crate) use self::{
    assemble::{AssembleArgs, assemble},
    card::{CardArgs, card},
    config::refuse_unjoined,
    init::{InitArgs, init},
    join::{JoinArgs, join},
    keys::{About, NodeKeys},
    rejoin::{RejoinArgs, rejoin},
    show::{ShowArgs, show},
};
use crate::{
    exit::Failure,
    files::Source,
    ledger,
    output::{self, Table},
};

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
    founding.numbered().map(|(node, card)| member_view(node, card)).collect()
}

pub(crate) fn member_view(node: NodeId, card: &Card) -> MemberView {
    MemberView {
        node: node.get(),
        name: card.name().to_string(),
        peer_address: card.content().peer_address.to_string(),
        api_address: card.content().api_address.to_string(),
    }
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

/// Reads a text that may be as long as a founding of the most members.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
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
pub(crate) fn read_cards(path: &Path) -> Result<Vec<Card>, Failure> {
    let text = read(path)?;
    Card::all_from_text(&text, &NodeSignatures).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Warns of names that look alike to whoever reads them in a hurry: somebody may want to be taken for another.
pub(crate) fn warn_of_lookalikes<'a>(names: impl Iterator<Item = &'a NodeName>) {
    let mut seen: BTreeMap<String, &NodeName> = BTreeMap::new();
    for name in names {
        let looks = name.folded().replace(['l', 'i', '|'], "1").replace('o', "0").replace("rn", "m").replace("vv", "w");
        if let Some(first) = seen.insert(looks, name).filter(|first| first.folded() != name.folded()) {
            output::diagnostic(
                "warning",
                &format!("{:?} and {:?} look alike: see that both are who you think", first.as_str(), name.as_str()),
            );
        }
    }
}

/// What can go wrong in a group of this size that would not in another: see the table of `spec/ledger.md`, Small groups.
pub(crate) fn note_of_size(k: u16, n: u16) -> Option<String> {
    let enough = k.saturating_mul(3).saturating_sub(2);
    if k == 1 {
        Some(format!(
            "note: with any 1 of {n}, each node has the keys whole: whoever gets into one of them has them all"
        ))
    } else if n >= enough {
        None
    } else if n == k {
        Some(format!(
            "note: with any {k} of {n}, one machine that is lost is the end of the keys; {enough} nodes are enough for {k}"
        ))
    } else {
        Some(format!(
            "note: with any {k} of {n}, one machine that is away stops all change until it is back (requests go on); \
             {enough} nodes are enough for {k}"
        ))
    }
}

/// The cards of a group's members, from cards, a founding, or an exported ledger, which is taken for what it says it is.
fn cards_of_members(path: &Path) -> Result<Vec<Card>, Failure> {
    if is_export(path)? {
        let checked = ledger::read_any(path)?;
        return Ok(checked.state.seats().values().filter_map(|seat| seat.card().cloned()).collect());
    }
    if read(path)?.contains("-----BEGIN THETA FOUNDING-----") {
        return Ok(read_founding(path)?.members().to_vec());
    }
    read_cards(path)
}

/// Whether a file is what theta ledger export writes.
pub(crate) fn is_export(path: &Path) -> Result<bool, Failure> {
    let mut first = [0; 1];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut first));
    Ok(read.map_err(|error| Failure::reading(path, &error))? == 1 && first == *b"{")
}

/// The text of the group file of a group whose ledger has come to a height: its founding, and its members as of then.
fn present_text(founding: &Founding, members: &[(NodeId, Card)], height: u64) -> Result<String, Failure> {
    let text = group_text(founding, Vec::new())?;
    let nodes = members.iter().map(|(id, card)| group_node(*id, card)).collect();
    let group = GroupFile::parse(&text, Path::new("the founding")).and_then(|group| group.with_members(nodes, height));
    Ok(format!("{GROUP_HEAD}{}", group.map_err(Failure::internal)?.to_text()))
}

/// The text of the group file, the founding, and the last entry of the group whose exported ledger this is, with the members of that entry;
/// `expected`: of the one with this fingerprint.
pub(crate) fn from_ledger(
    path: &Path,
    expected: Option<&Fingerprint>,
) -> Result<(String, Founding, Option<Checkpoint>), Failure> {
    let checked = match expected {
        Some(expected) => ledger::read_file(path, LedgerId::from_bytes(*expected.as_bytes()))?,
        None => ledger::read_any(path)?,
    };
    let founding = checked.genesis.founding().cloned().ok_or_else(|| {
        let path = path.display();
        Failure::Usage(format!(
            "{path} has no addresses, since its group was not founded with cards: ask for group.toml"
        ))
    })?;
    let seats = checked.state.seats().iter().filter_map(|(node, seat)| Some((*node, seat.card()?.clone())));
    let text = present_text(&founding, &seats.collect::<Vec<_>>(), checked.state.members_since())?;
    let (height, entry) = (checked.state.height(), *checked.state.head());
    Ok((text, founding, (height > 0).then_some(Checkpoint { height, entry })))
}

/// An address on the command line.
fn parse_address(text: &str) -> Result<Address, String> {
    text.parse().map_err(|error| format!("{error}"))
}
