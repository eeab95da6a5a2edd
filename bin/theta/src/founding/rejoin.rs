//! `theta node rejoin`: a member whose machine lost its store, or everything, comes back by one command.

use std::path::Path;

use clap::Args;
use serde::Serialize;
use theta_ledger::LedgerState;
use theta_ledger::founding::{Card, Fingerprint};
use theta_names::{KeyRef, NodeId};

use super::{
    CARD, InitArgs, card, config,
    init::{self, predecessor},
    join::{self, JoinArgs},
};
use crate::{
    exit::Failure,
    keys::held,
    members::{AskArgs, OperatorsWord, ReplaceArgs, look},
    output::Output,
};

/// Options of `theta node rejoin`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta node rejoin --dir gamma2 --replaces gamma/node.card --operator gamma.operator --first-use --client ann.client --fingerprint \"XEVM 0ACS ...\"
  mv gamma gamma.lost && theta node rejoin --dir gamma --replaces gamma.lost --operator gamma.operator --client ann.client --fingerprint \"XEVM 0ACS ...\"
  theta node rejoin --dir gamma2 --name 'Gamma Escrow' --replaces payments.founding --operator gamma.operator --client ann.client --fingerprint \"XEVM 0ACS ...\"

For a machine that lost its store, or everything. It makes a new one with keys of its own (as theta node init --replaces), signs with the \
operator's key that it is in the other's place and has the group decide that (theta group replace), and joins with the ledger, each entry of which \
it checks from the founding on (theta node join). Then: theta node run --dir DIR. Whatever ends it, the same command goes on where it was.

Where the operator's key is to stay away from the machine, take these commands one by one (theta group replace --sign-only). In a group such as 2 of 3, \
where all have to decide, the machine that is gone is missed: see theta group warrant.")]
pub struct RejoinArgs {
    #[command(flatten)]
    init: InitArgs,
    /// The fingerprint that all members have compared
    #[arg(long, value_name = "FINGERPRINT")]
    fingerprint: Fingerprint,
    #[command(flatten)]
    word: OperatorsWord,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Serialize)]
struct Rejoined<'a> {
    directory: &'a Path,
    node: u16,
    group: &'a str,
    /// The keys of which this machine holds a share by the ledger, and has none yet.
    to_recover: Vec<String>,
}

/// Brings a member back, with a new machine in its place.
pub(crate) fn rejoin(args: RejoinArgs, output: Output) -> Result<(), Failure> {
    let RejoinArgs { init, fingerprint, word, ask } = args;
    let Some(replaces) = &init.replaces else {
        return Err(Failure::Usage(
            "say in whose place with --replaces: an old card of it, its directory, the group's founding".to_owned(),
        ));
    };
    let before = predecessor(replaces, init.name.as_ref())?;
    let session = ask.open()?;
    let of_group = look(&session, |state| *state.id().as_bytes() == *fingerprint.as_bytes())?;
    if !of_group {
        return Err(Failure::Failed(
            "the client's group has another fingerprint than the one given; nothing was made".to_owned(),
        ));
    }
    let node = look(&session, |state| place(state, &before))??;
    // A machine that was made, and not taken in yet, is that of this command when it was ended.
    if !config::is_unjoined_at(&config::file(&init.dir)) {
        drop(init::make(&init)?);
    }
    let own = card::own(&init.dir)?;
    let key = own.content().ceremony_key;
    let sits = look(&session, |state| {
        state.seats().get(&node).and_then(|seat| seat.card()).is_some_and(|card| card.content().ceremony_key == key)
    })?;
    let client = ask.client.clone();
    if !sits {
        ReplaceArgs::by_operator(node.get(), init.dir.join(CARD), word, ask).put(&session)?;
    }
    let named = |(key, is_older): (KeyRef, bool)| if is_older { key.to_string() } else { key.name.to_string() };
    let to_recover = look(&session, |state| held(state, node).into_iter().map(named).collect::<Vec<_>>())?;
    let (dir, file, from, warrant) = (init.dir.clone(), None, None, Vec::new());
    let found = join::take_part(&JoinArgs { dir, fingerprint, file, from, warrant, client })?;
    let (directory, group) = (init.dir.as_path(), found.founding.name());
    report(&Rejoined { directory, node: found.node.get(), group, to_recover }, output)
}

/// The member whose machine is gone. Where it alone is missed for a decision, nothing begins.
fn place(state: &LedgerState, before: &Card) -> Result<NodeId, Failure> {
    let called = |card: &Card| card.name().folded() == before.name().folded();
    let mut seats = state.seats().iter();
    let node = seats.find(|(_, seat)| seat.card().is_some_and(called)).map(|(node, _)| *node);
    let node = node.ok_or_else(|| {
        Failure::Failed(format!("{} is no member of the group {} any more", before.name(), state.group()))
    })?;
    if state.quorum() >= state.members().len() {
        return Err(Failure::Failed(format!(
            "in this group all {} members have to decide, and node {node} is gone: its operators sign a warrant (theta node init --replaces, \
             theta group warrant new {node}=CARD)",
            state.members().len()
        )));
    }
    Ok(node)
}

fn report(rejoined: &Rejoined<'_>, output: Output) -> Result<(), Failure> {
    output.result(rejoined, |out| {
        let Rejoined { directory, node, group, to_recover } = rejoined;
        let dir = directory.display();
        writeln!(out, "this is node {node} of the group {group} again, with keys of its own\n\nNext:")?;
        writeln!(out, "  see that {dir}/policy.toml says who may ask this node for what")?;
        writeln!(out, "  theta node run --dir {dir}")?;
        if to_recover.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "  theta keys recover --all --node {node}     brings back its shares of {}: with a client of the group, and an approval \
             (theta approve --operation keys.recover --all --node {node})",
            to_recover.join(", ")
        )
    })
}
