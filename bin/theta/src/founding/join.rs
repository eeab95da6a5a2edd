//! `theta node join`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use theta_ledger::founding::{Card, Fingerprint, Founding, NodeSignatures};
use theta_ledger::{CertifiedEntry, Genesis, LedgerId, LedgerState};
use theta_names::{Address, NodeId, WallTime};
use theta_network::{
    Identity,
    archive::{self, ArchiveError},
};

use super::{
    FOUNDING, MemberView, card, config::Unjoined, group_node, group_text, is_export, keys, member_table, member_view,
    parse_address, present_text, read_founding,
};
use crate::{
    connect::{self, ClientArgs},
    exit::Failure,
    files::Target,
    interrupt::Whole,
    ledger,
    members::{read_warrant, why},
    output::Output,
    vault,
};

/// Options of `theta node join`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta node join --dir alpha payments.founding --fingerprint \"XEVM 0ACS QDGE EEGD CH3F 9F3R T6CC BS2T V59N 4RDS VQSE SAM2 TDV0\"
  theta node join --dir echo --from a.example:7100 --fingerprint \"XEVM 0ACS ...\"    into a running group, after theta group add
  theta node join --dir echo payments.ledger --fingerprint \"XEVM 0ACS ...\"       the same, from a file
  theta node join --dir echo --client ann.client --fingerprint \"XEVM 0ACS ...\"    the same, asking the nodes with a client's file
  theta node join --dir gamma2 payments.ledger --warrant payments-node-3.warrant --fingerprint \"XEVM 0ACS ...\"

It makes the node one of the group, if the group has the fingerprint that you give: the one that all members said to each other, \
not one that came with the file. It writes group.toml and group.founding into DIR, and the node's number into node.toml. Then: \
theta node run --dir DIR. Capital or small letters, spaces and hyphens do not matter.

A group that begins is joined with its founding. One that runs has decided things since. With --from, any of its nodes gives the founding and the \
ledger, at its address for nodes; else the file is what theta ledger export wrote. Nobody is believed: the founding has to have the fingerprint, and \
each entry is checked from there on. The node is in it after theta group add, or in a member's place after theta group \
replace; a machine that a warrant lets vote in another's place joins before it is replaced, with --warrant.")]
pub struct JoinArgs {
    /// The directory that theta node init made
    #[arg(long, value_name = "DIR")]
    pub(super) dir: PathBuf,
    /// The fingerprint that all members have compared
    #[arg(long, value_name = "FINGERPRINT")]
    pub(super) fingerprint: Fingerprint,
    /// The founding, as theta group assemble wrote it, or the ledger, as theta ledger export wrote it [default: ask the nodes]
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// The address for nodes of a running member, which gives the founding and the ledger
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address, conflicts_with = "file")]
    pub(super) from: Option<Address>,
    /// The warrant by which the machine votes in the place of another
    #[arg(long, value_name = "FILE")]
    pub(super) warrant: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) client: ClientArgs,
}

#[derive(Serialize)]
struct Joined<'a> {
    directory: &'a Path,
    node: u16,
    group: &'a str,
    fingerprint: String,
    members: Vec<MemberView>,
}

/// The group that a node joins.
pub(super) struct Found {
    pub(super) founding: Founding,
    /// Its members as of now, by rising number; this node is one of them, or votes in the place of one.
    members: Vec<(NodeId, Card)>,
    /// The height of the newest change of them; `None` of a group that begins.
    height: Option<u64>,
    pub(super) node: NodeId,
}

/// Makes a node one of a group.
pub(crate) fn join(args: &JoinArgs, output: Output) -> Result<(), Failure> {
    let found = take_part(args)?;
    let Found { founding, members, node, .. } = &found;
    let joined = Joined {
        directory: &args.dir,
        node: node.get(),
        group: founding.name(),
        fingerprint: founding.fingerprint().to_string(),
        members: members.iter().map(|(node, card)| member_view(*node, card)).collect(),
    };
    output.result(&joined, |out| {
        let (dir, n, k) = (args.dir.display(), joined.members.len(), founding.threshold());
        writeln!(out, "this is node {node} of the group {}: {n} nodes, any {k} of which act together\n", joined.group)?;
        member_table(&joined.members).write(out)?;
        writeln!(out, "\nNext:")?;
        writeln!(out, "  say in {dir}/policy.toml who may ask this node for what (theta client new makes clients)")?;
        writeln!(out, "  theta node run --dir {dir}")
    })
}

/// Makes a node one of a group, without a word.
pub(super) fn take_part(args: &JoinArgs) -> Result<Found, Failure> {
    let unjoined = Unjoined::read(&args.dir)?;
    let own = card::own(&args.dir)?;
    check_keys(&own, &unjoined)?;
    let found = match args.file.as_deref() {
        Some(file) if !is_export(file)? => in_founding(args, file, &own)?,
        file => in_ledger(args, (file, &unjoined), &own)?,
    };
    install(&args.dir, (&unjoined, &own), &found)?;
    Ok(found)
}

/// A group that begins.
fn in_founding(args: &JoinArgs, file: &Path, own: &Card) -> Result<Found, Failure> {
    let founding = read_founding(file)?;
    let found = founding.fingerprint();
    if found != args.fingerprint {
        return Err(Failure::Failed(format!(
            "{} is not what the members agreed on: its fingerprint is {found}, and not the one given; nothing was changed. If you \
             did not mistype it, ask the others: somebody exchanged a card, or the whole file",
            file.display()
        )));
    }
    let same_key = |(_, card): &(NodeId, &Card)| card.content().ceremony_key == own.content().ceremony_key;
    let Some((node, card)) = founding.numbered().find(same_key) else {
        return Err(Failure::Failed(format!(
            "this node's card is not in {}: the group was put together without it, or with another in its place. If the group runs and has \
             taken it in since, join with its ledger (theta ledger export)",
            file.display()
        )));
    };
    if card != own {
        return Err(Failure::Failed(format!(
            "{} has another card of this node than the present one in {}: send that, and have the group put together again",
            file.display(),
            args.dir.display()
        )));
    }
    let members = founding.numbered().map(|(node, card)| (node, card.clone())).collect();
    Ok(Found { members, height: None, node, founding })
}

/// A group that runs, and has this node as a member by now, or under a warrant.
fn in_ledger(args: &JoinArgs, (file, unjoined): (Option<&Path>, &Unjoined), own: &Card) -> Result<Found, Failure> {
    let id = LedgerId::from_bytes(*args.fingerprint.as_bytes());
    let (genesis, state) = match (&args.from, file) {
        (Some(address), _) => read_at(address, args.fingerprint, unjoined)?,
        (None, file) => {
            let checked = match file {
                Some(file) => ledger::read_file(file, id)?,
                None => ledger::read(None, None, &args.client)?,
            };
            (checked.genesis, checked.state)
        }
    };
    let founding = genesis.founding().cloned();
    let founding = founding.filter(|founding| founding.fingerprint() == args.fingerprint).ok_or_else(|| {
        Failure::Failed("the group has another fingerprint than the one given, or none; nothing was changed".to_owned())
    })?;
    let state = &state;
    let seats = state.seats().iter().filter_map(|(node, seat)| Some((*node, seat.card()?.clone())));
    let mut members: Vec<(NodeId, Card)> = seats.collect();
    let key = own.content().ceremony_key;
    let sits = members.iter().find(|(_, card)| card.content().ceremony_key == key).map(|(node, _)| *node);
    let node = match sits {
        Some(node) => node,
        None => stands_in(args, state, &key)?,
    };
    // Its own present card: under a warrant it is no member's yet, and the node has to find itself in its group file.
    for (_, card) in members.iter_mut().filter(|(number, _)| *number == node) {
        *card = own.clone();
    }
    let height = Some(state.members_since());
    Ok(Found { founding, members, height, node })
}

/// The founding and the ledger as the node at this address has them, checked from the fingerprint on. The node shows a certificate that nobody knows
/// here yet; it need not be believed either.
fn read_at(
    address: &Address,
    fingerprint: Fingerprint,
    unjoined: &Unjoined,
) -> Result<(Genesis, LedgerState), Failure> {
    let config = unjoined.config();
    let identity =
        Identity::load(&config.certificate, &config.private_key).map_err(|error| Failure::Usage(error.to_string()))?;
    let runtime = connect::runtime()?;
    let mut known: Option<(Genesis, LedgerState)> = None;
    loop {
        let after = known.as_ref().map_or(0, |(_, state)| state.height());
        let read = runtime.block_on(archive::read(&identity, address.as_str(), None, after));
        let mut records = read.map_err(|error| not_read(address, &error))?.into_iter();
        let founding = records.next().unwrap_or_default();
        let (_, state) = match &mut known {
            Some(known) => known,
            none => none.insert(begin(address, fingerprint, &founding)?),
        };
        for record in records {
            let wrong = |what: String| {
                Failure::Failed(format!("the node at {address} shows a false ledger: {what}; nothing was changed"))
            };
            let entry = CertifiedEntry::decode(&record).map_err(|error| wrong(error.to_string()))?;
            state.advance(&entry).map_err(|error| wrong(error.to_string()))?;
        }
        if state.height() == after {
            return known.ok_or_else(|| Failure::internal("a ledger without a beginning"));
        }
    }
}

/// With what the ledger begins, if the founding is the one that was compared.
fn begin(address: &Address, expected: Fingerprint, founding: &[u8]) -> Result<(Genesis, LedgerState), Failure> {
    let other = |why: String| {
        Failure::Failed(format!(
            "the group of the node at {address} is not the one with the fingerprint given: {why}; nothing was changed"
        ))
    };
    if founding.is_empty() {
        return Err(other("it was not founded with cards".to_owned()));
    }
    let text = std::str::from_utf8(founding).map_err(|error| other(error.to_string()))?;
    let founding = Founding::from_text(text, &NodeSignatures).map_err(|error| other(error.to_string()))?;
    let found = founding.fingerprint();
    if found != expected {
        return Err(other(format!("its fingerprint is {found}")));
    }
    let genesis = Genesis::of(&founding).map_err(Failure::internal)?;
    let state = LedgerState::new(&genesis);
    Ok((genesis, state))
}

fn not_read(address: &Address, error: &ArchiveError) -> Failure {
    let hint = match error {
        ArchiveError::Refused => {
            "it lets a machine read when the group has taken it in: theta group add or theta group replace with its node.card, from any client"
        }
        _ => {
            "give the address for nodes of a member that runs, as theta group show lists it, and not the one for clients"
        }
    };
    Failure::NoAnswer(format!("the node at {address} was not read: {error}; {hint}"))
}

/// The member in whose place the machine with this key votes by a warrant.
fn stands_in(args: &JoinArgs, state: &LedgerState, key: &[u8; 32]) -> Result<NodeId, Failure> {
    if state.was_member(key) {
        return Err(Failure::Failed(
            "another machine is in the place of this one by now, or it was removed: theta node init --replaces makes one with keys of its own".to_owned(),
        ));
    }
    if args.warrant.is_empty() {
        return Err(Failure::Failed(format!(
            "the group has not taken this node in, as far as this ledger goes (entry {}): theta group add or theta group replace with {}, from any \
             client; then export the ledger again",
            state.height(),
            args.dir.join(super::CARD).display()
        )));
    }
    let warrant = read_warrant(&args.warrant, state)?;
    if let Err(refusal) = state.check_warrant(&warrant) {
        return Err(Failure::Failed(format!("the warrant does not serve: {}", why(&refusal))));
    }
    let mut stand_ins = warrant.stand_ins().iter();
    let own = stand_ins.find(|stand_in| stand_in.card.content().ceremony_key == *key).map(|stand_in| stand_in.node);
    own.ok_or_else(|| Failure::Failed("the warrant is for other machines than this one".to_owned()))
}

/// The card must be that of the keys that are here, or the node would be a member that cannot say a word.
fn check_keys(own: &Card, unjoined: &Unjoined) -> Result<(), Failure> {
    let config = unjoined.config();
    let identity =
        Identity::load(&config.certificate, &config.private_key).map_err(|error| Failure::Usage(error.to_string()))?;
    if *identity.fingerprint().as_bytes() != own.content().tls_key {
        let key = config.private_key.display();
        return Err(Failure::Failed(format!(
            "{key} is not the key of this node's card: theta node card writes a new one"
        )));
    }
    if keys::public(&keys::of_store(&vault::open(config)?)?)? != own.content().ceremony_key {
        let store = config.store.path.display();
        return Err(Failure::Failed(format!(
            "{store} has not the key of this node's card: theta node card writes a new one"
        )));
    }
    Ok(())
}

/// Writes what the node runs with; its number, without which it does not run, comes last.
fn install(
    dir: &Path,
    (unjoined, own): (&Unjoined, &Card),
    Found { founding, members, height, node }: &Found,
) -> Result<(), Failure> {
    // What is half installed would be in nobody's way, and take a second command all the same.
    let _whole = Whole::begin()?;
    let config = unjoined.config();
    let write = |path: &Path, text: &str| Target::choose(Some(path), None)?.write(text.as_bytes(), false);
    write(&dir.join(FOUNDING), &founding.to_text())?;
    let text = match height {
        None => group_text(founding, Vec::new())?,
        Some(height) => present_text(founding, members, *height)?,
    };
    write(&config.group, &text)?;
    // The same key, and a certificate that knows the number: libraries in other languages expect the host node-N.
    let subject = group_node(*node, own).subject().map_err(Failure::internal)?;
    let failed = |error: theta_network::IdentityError| Failure::Failed(error.to_string());
    let identity = Identity::load(&config.certificate, &config.private_key).map_err(failed)?;
    // One that somebody else issued is theirs to renew.
    if identity.is_own() {
        identity
            .renew(&config.certificate, &config.private_key, &subject, WallTime::now().seconds())
            .map_err(failed)?;
    }
    unjoined.number(*node)
}
