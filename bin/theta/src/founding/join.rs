//! `theta node join`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use theta_ledger::founding::{Card, Fingerprint, Founding};
use theta_names::NodeId;
use theta_network::Identity;

use super::{
    FOUNDING, MemberView, card, config::Unjoined, group_node, group_text, keys, member_table, members, read_founding,
};
use crate::{access::now, exit::Failure, files::Target, interrupt::Whole, output::Output, vault};

/// Options of `theta node join`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta node join --dir alpha payments.founding --fingerprint \"XEVM 0ACS QDGE EEGD CH3F 9F3R T6CC BS2T V59N 4RDS VQSE SAM2 TDV0\"

It makes the node one of the group, if the founding has the fingerprint that you give: the one that all members said to each other, \
not one that came with the file. It writes group.toml and group.founding into DIR, and the node's number into node.toml. Then: \
theta node run --dir DIR. Capital or small letters, spaces and hyphens do not matter.")]
pub struct JoinArgs {
    /// The directory that theta node init made
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The fingerprint that all members have compared
    #[arg(long, value_name = "FINGERPRINT")]
    fingerprint: Fingerprint,
    /// The founding, as theta group assemble wrote it
    #[arg(value_name = "FILE")]
    founding: PathBuf,
}

#[derive(Serialize)]
struct Joined<'a> {
    directory: &'a Path,
    node: u16,
    group: &'a str,
    fingerprint: String,
    members: Vec<MemberView>,
}

/// Makes a node one of a group.
pub(crate) fn join(args: &JoinArgs, output: Output) -> Result<(), Failure> {
    let unjoined = Unjoined::read(&args.dir)?;
    let founding = read_founding(&args.founding)?;
    let found = founding.fingerprint();
    if found != args.fingerprint {
        return Err(Failure::Failed(format!(
            "{} is not what the members agreed on: its fingerprint is {found}, and not the one given; nothing was changed. If you \
             did not mistype it, ask the others: somebody exchanged a card, or the whole file",
            args.founding.display()
        )));
    }
    let node = place(args, &unjoined, &founding)?;
    install(&args.dir, &unjoined, &founding, node)?;
    let joined = Joined {
        directory: &args.dir,
        node: node.get(),
        group: founding.name(),
        fingerprint: found.to_string(),
        members: members(&founding),
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

/// The number that the founding gives this node.
fn place(args: &JoinArgs, unjoined: &Unjoined, founding: &Founding) -> Result<NodeId, Failure> {
    let own = card::own(&args.dir)?;
    let config = unjoined.config();
    let same_key = |(_, card): &(NodeId, &Card)| card.content().ceremony_key == own.content().ceremony_key;
    let Some((node, card)) = founding.numbered().find(same_key) else {
        return Err(Failure::Failed(format!(
            "this node's card is not in {}: the group was put together without it, or with another in its place",
            args.founding.display()
        )));
    };
    if *card != own {
        return Err(Failure::Failed(format!(
            "{} has another card of this node than the present one in {}: send that, and have the group put together again",
            args.founding.display(),
            args.dir.display()
        )));
    }
    // The card must be that of the keys that are here, or the node would be a member that cannot say a word.
    let identity =
        Identity::load(&config.certificate, &config.private_key).map_err(|error| Failure::Usage(error.to_string()))?;
    if *identity.fingerprint().as_bytes() != card.content().tls_key {
        let key = config.private_key.display();
        return Err(Failure::Failed(format!(
            "{key} is not the key of this node's card: theta node card writes a new one"
        )));
    }
    if keys::public(&keys::of_store(&vault::open(config)?)?)? != card.content().ceremony_key {
        let store = config.store.path.display();
        return Err(Failure::Failed(format!(
            "{store} has not the key of this node's card: theta node card writes a new one"
        )));
    }
    Ok(node)
}

/// Writes what the node runs with; its number, without which it does not run, comes last.
fn install(dir: &Path, unjoined: &Unjoined, founding: &Founding, node: NodeId) -> Result<(), Failure> {
    // What is half installed would be in nobody's way, and take a second command all the same.
    let _whole = Whole::begin()?;
    let config = unjoined.config();
    let write = |path: &Path, text: &str| Target::choose(Some(path), None)?.write(text.as_bytes(), false);
    write(&dir.join(FOUNDING), &founding.to_text())?;
    write(&config.group, &group_text(founding, Vec::new())?)?;
    // The same key, and a certificate that knows the number: libraries in other languages expect the host node-N.
    let card = founding.numbered().find(|(number, _)| *number == node);
    let (_, card) = card.ok_or_else(|| Failure::internal("a member without a number"))?;
    let subject = group_node(node, card).subject().map_err(Failure::internal)?;
    let failed = |error: theta_network::IdentityError| Failure::Failed(error.to_string());
    let identity = Identity::load(&config.certificate, &config.private_key).map_err(failed)?;
    // One that somebody else issued is theirs to renew.
    if identity.is_own() {
        identity.renew(&config.certificate, &config.private_key, &subject, now().0 / 1_000).map_err(failed)?;
    }
    unjoined.number(node)
}
