//! `theta keys trust-store`: overrules what peers remember of a node's own store.

use clap::Args;
use serde::Serialize;
use theta_store::{Contradiction, Incarnation, Store, StoreError};

use super::StoppedNode;
use crate::{exit::Failure, output::Output};

/// Options of `theta keys trust-store`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  theta keys trust-store --dir theta-group/node-1            which peers remember what; changes nothing
  theta keys trust-store --dir theta-group/node-1 --yes      trust it all the same, from its next start on

A node asks its peers what they remember of its store. If they remember more than the store knows, it is an old copy, and may have \
forgotten what it signed: the node then refuses keys with signing rules, also after restarts, until a person says that the store is \
meant as it is. So does a node that too few peers have confirmed, where not enough of them can be reached.

Before you say so: make sure that no other copy of the store runs, and that nothing was signed that this copy does not know \
(theta keys restore takes floors above it). With --yes the node disregards what its peers have said so far, tells them so, and is \
trusted at its next start before they have confirmed it. What they contradict after that counts again. The decision goes into the \
node's audit log. Stop the node first.")]
pub(crate) struct TrustArgs {
    #[command(flatten)]
    node: StoppedNode,
    /// Do it: without this, it is only shown what would be overruled
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Trusted {
    node: u16,
    trusted: bool,
    overruled: Vec<Claim>,
}

#[derive(Serialize)]
struct Claim {
    peer: u16,
    store: String,
    opening: u64,
    commit: u64,
}

impl From<&Contradiction> for Claim {
    fn from(Contradiction { peer, claim, .. }: &Contradiction) -> Self {
        let Incarnation { store_id, opening, sequence } = claim;
        Self { peer: *peer, store: store_id.to_string(), opening: opening.generation, commit: *sequence }
    }
}

/// `theta keys trust-store`.
pub(crate) fn trust(args: &TrustArgs, output: Output) -> Result<(), Failure> {
    let config = args.node.config()?;
    let node = config.id.get();
    let store = super::open(&config)?;
    let standing: Vec<_> = store.contradictions()?.into_iter().filter(|known| !known.overruled).collect();
    let overruled: Vec<Claim> = standing.iter().map(Claim::from).collect();
    let says = |claim: &Claim| format!("node {} remembers its commit {}", claim.peer, claim.commit);
    let told = match overruled.iter().map(says).collect::<Vec<_>>().join(", ") {
        nobody if nobody.is_empty() => "no peer contradicts it".to_owned(),
        told => told,
    };
    let knows = store.incarnation().sequence;
    let summary = if args.yes {
        confirm(&store, node, &told)?;
        format!("node {node} trusts its store from its next start on; {told}")
    } else {
        format!("the store of node {node} knows commit {knows}; {told}; --yes trusts it all the same")
    };
    output.remark(&Trusted { node, trusted: args.yes, overruled }, &summary)
}

/// Overrules the peers and records it, both or neither.
fn confirm(store: &Store, node: u16, told: &str) -> Result<(), Failure> {
    let record = super::record(node, ("theta keys trust-store", "store.trust"), None, "overruled", told);
    store.write(|transaction| -> Result<(), StoreError> {
        let next = store.incarnation().opening.generation.saturating_add(1);
        transaction.trust_opening(next)?;
        transaction.append_audit(record.encode()).map(|_| ())
    })?;
    Ok(())
}
