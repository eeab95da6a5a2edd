//! `theta keys confirm-restore`: confirms that a peer's store was replaced on purpose.

use std::num::NonZeroU16;

use clap::Args;
use serde::Serialize;

use super::StoppedNode;
use crate::{exit::Failure, output::Output};

/// Options of `theta keys confirm-restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys confirm-restore --dir theta-group/node-2 --node 1      node 1 was restored: let node 2 know
  for i in 2 3 4; do theta keys confirm-restore --dir theta-group/node-$i --node 1; done

Every node remembers which store each other node has, and how far it was. One that comes back with another store, or an older \
copy of its own, is told so, and does not serve keys with signing rules: it may have forgotten what it signed. Only a person can \
know that the store was replaced on purpose, with floors above all that it may have signed. Stop a node, confirm, start it again.")]
pub(crate) struct ConfirmArgs {
    #[command(flatten)]
    peer_of: StoppedNode,
    /// The node that was restored
    #[arg(long, value_name = "NODE")]
    node: NonZeroU16,
}

#[derive(Serialize)]
struct Confirmed {
    node: u16,
    remembered: Option<String>,
}

/// `theta keys confirm-restore`.
pub(crate) fn confirm(args: &ConfirmArgs, output: Output) -> Result<(), Failure> {
    let config = args.peer_of.config()?;
    let node = args.node;
    if config.id == node {
        return Err(Failure::Usage(format!(
            "--dir is the directory of node {node} itself: name those of its peers, or use theta keys trust-store"
        )));
    }
    let store = super::open(&config)?;
    let seen = store.seen_of_peers()?.into_iter().find(|(peer, _)| *peer == node.get());
    let remembered = seen.and_then(|(_, witness)| witness.remembered().map(|seen| seen.store_id.to_string()));
    store.write(|transaction| transaction.forget_peer(node.get()))?;
    let summary = match &remembered {
        Some(store) => {
            format!("node {} forgot the store {store} of node {node}, and takes the next that it sees", config.id)
        }
        None => format!("node {} remembered no store of node {node}", config.id),
    };
    output.remark(&Confirmed { node: node.get(), remembered }, &summary)
}
