//! The encoding of what custodians keep and send, and lists of nodes.

use theta_names::NodeId;
pub(crate) use theta_names::codec::{Reader, Writer};

/// Nodes by number; none of the numbers is 0.
pub(crate) fn parties(nodes: &[u16]) -> Vec<NodeId> {
    nodes.iter().filter_map(|node| NodeId::try_from(*node).ok()).collect()
}

/// The numbers of nodes.
pub(crate) fn numbers(parties: &[NodeId]) -> Vec<u16> {
    parties.iter().map(|party| party.get()).collect()
}
