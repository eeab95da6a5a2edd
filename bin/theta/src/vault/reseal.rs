//! `theta keys reseal`: another key or passphrase opens a stopped node's store.

use clap::Args;
use serde::Serialize;
use theta_service::config::Sealing;

use super::{SEALING_HELP, SealWord, StoppedNode};
use crate::{
    exit::Failure,
    files::toml_text,
    output::{self, Output},
};

/// Options of `theta keys reseal`.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  theta keys reseal --dir theta-group/node-1 --to passphrase-file:/etc/theta/passphrase
  theta keys reseal --dir theta-group/node-1 --to file:store.key.2         makes the key file if there is none

{SEALING_HELP}

Stop the node first. The store opens with the new key alone, at once; then write what the command prints into the node's node.toml, \
and start it. The path of a key file is relative to the node's directory. Backups keep what they were sealed with.

Records are not sealed again: whoever has the old key and an old copy of the store still opens that copy. If others know the old \
key, restore a backup into a new file instead (theta keys restore), and destroy the old one."))]
pub(crate) struct ResealArgs {
    #[command(flatten)]
    node: StoppedNode,
    /// What is to open the store from now on
    #[arg(long, value_name = "SEALING")]
    to: SealWord,
}

#[derive(Serialize)]
struct Resealed {
    node: u16,
    store: String,
    sealing: Sealing,
}

/// `theta keys reseal`.
pub(crate) fn reseal(args: &ResealArgs, output: Output) -> Result<(), Failure> {
    let config = args.node.config()?;
    let (node, named) = (config.id.get(), args.to.clone().made_absolute()?);
    let found = match &named.0 {
        Sealing::File(path) => SealWord(Sealing::File(args.node.dir.join(path))),
        _ => named.clone(),
    };
    let store = super::open(&config)?;
    super::make_key_file(&found.0)?;
    let (old, new) = (config.store.sealing.key()?, found.new_key()?);
    let record = super::record(node, ("theta keys reseal", "store.reseal"), None, "resealed", &named.to_string());
    // On record first: whoever reads the log may find a change that did not come about, but never misses one that did.
    store.write(|transaction| transaction.append_audit(record.encode()).map(|_| ()))?;
    store.rewrap(&old, &new)?;
    let resealed = Resealed { node, store: config.store.path.display().to_string(), sealing: named.0 };
    let summary =
        format!("the store of node {node} opens with {} alone from now on", SealWord(resealed.sealing.clone()));
    output.remark(&resealed, &summary)?;
    output::note(format!(
        "write this into {} before you start it:\n\n[store.sealing]\n{}",
        args.node.dir.join("node.toml").display(),
        in_configuration(&resealed.sealing)
    ));
    Ok(())
}

/// The line of node.toml that names a sealing.
fn in_configuration(sealing: &Sealing) -> String {
    let (name, value) = match sealing {
        Sealing::File(path) => ("file", path.display().to_string()),
        Sealing::PassphraseFile(path) => ("passphrase_file", path.display().to_string()),
        Sealing::Env(variable) => ("env", variable.clone()),
        Sealing::Credential(credential) => ("credential", credential.clone()),
    };
    format!("{name} = {}", toml_text(&value))
}
