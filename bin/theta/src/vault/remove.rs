//! `theta keys remove`: removes a key from the stores of nodes that do not run.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use theta_names::KeyName;
use theta_store::{KeyError, KeyRecord, Store};

use crate::{
    connect,
    exit::Failure,
    keys::state::confirm_by_name,
    output::{self, Output},
};

/// Options of `theta keys remove`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys remove copy --dir theta-group/node-*
  theta keys remove copy --dir /var/lib/theta --yes

For keys that keep nodes from starting, such as one key under two names, and for those that came in by mistake. The nodes must \
not run. It removes this node's shares of all versions for ever, and leaves no tombstone: the name is free again. What must not \
happen twice stays remembered: slots that were signed under the name, and the generation of the key's state. Each removal is in \
the node's audit log.

A node that lacks a key which the others have hears of it again when it runs, and gets a new share by theta keys recover: to be \
rid of a key, remove it at all nodes, or destroy it while they run (theta keys destroy). The public key files of clients \
(keys/NAME.pub) are theirs to delete.")]
pub(crate) struct RemoveArgs {
    /// The key: all versions of it
    name: KeyName,
    /// Directories of nodes that do not run
    #[arg(long = "dir", value_name = "DIR", required = true, num_args = 1..)]
    dirs: Vec<PathBuf>,
    /// Remove without being asked
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Removed {
    key: String,
    nodes: Vec<u16>,
    without: Vec<u16>,
}

/// An open store of a node.
struct Opened {
    node: u16,
    store: Store,
    key: Option<KeyRecord>,
}

impl Opened {
    fn new(dir: &Path, name: &KeyName) -> Result<Self, Failure> {
        let config = super::config(dir)?;
        let store = super::open(&config)?;
        let key = store.key(name)?;
        Ok(Self { node: config.id.get(), store, key })
    }

    /// Removes the key and records it, both or neither.
    fn remove(&self, name: &KeyName) -> Result<(), Failure> {
        let Some(key) = &self.key else { return Ok(()) };
        let versions: Vec<String> = key.versions().iter().map(|version| version.version.to_string()).collect();
        let detail = format!("{}, for {}, versions: {}", key.state, key.purpose, versions.join(", "));
        let by = ("theta keys remove", "keys.remove");
        let record = super::record(self.node, by, Some(name.to_string()), "removed", &detail);
        let removed = self.store.write(|transaction| -> Result<(), KeyError> {
            transaction.remove_key(name)?;
            transaction.append_audit(record.encode())?;
            Ok(())
        });
        removed.map_err(|error| match error {
            KeyError::Store(error) => error.into(),
            error => Failure::Failed(format!("{}: {error}", self.store.place())),
        })
    }
}

/// `theta keys remove`.
pub(crate) fn remove(args: &RemoveArgs, output: Output) -> Result<(), Failure> {
    let name = &args.name;
    let opened = args.dirs.iter().map(|dir| Opened::new(dir, name)).collect::<Result<Vec<_>, _>>()?;
    let (having, lacking): (Vec<_>, Vec<_>) = opened.into_iter().partition(|opened| opened.key.is_some());
    if having.is_empty() {
        return Err(unknown(name, &lacking)?);
    }
    let numbers = |opened: &[Opened]| opened.iter().map(|opened| opened.node).collect::<Vec<_>>();
    let (nodes, without) = (numbers(&having), numbers(&lacking));
    if !args.yes {
        confirm_by_name(name.as_str(), &format!("removed from {} with its shares for ever", connect::nodes(&nodes)))?;
    }
    let _whole = crate::interrupt::Whole::begin()?;
    having.iter().try_for_each(|opened| opened.remove(name))?;
    let removed = Removed { key: name.to_string(), nodes, without };
    let summary = format!("removed {name} from {}", connect::nodes(&removed.nodes));
    output.remark(&removed, &summary)?;
    if !output.json() && !removed.without.is_empty() {
        output::note(format_args!("{} did not have it", connect::nodes(&removed.without)));
    }
    Ok(())
}

fn unknown(name: &KeyName, lacking: &[Opened]) -> Result<Failure, Failure> {
    let mut known = Vec::new();
    for opened in lacking {
        known.extend(opened.store.keys()?.into_iter().map(|key| key.name.to_string()));
    }
    known.sort();
    known.dedup();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Ok(Failure::Usage(format!("there is no key {name} in these stores; they have: {known}")))
}
