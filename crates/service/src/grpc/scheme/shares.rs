//! Translates between nodes, which callers use, and share indices, which the schemes use.

use theta_names::NodeId;
use theta_orchestration::KeyEntry;
use theta_schemes::{CombineError, keys::SchemeError};
use theta_sharing::ShareIndex;
use tonic::Status;

use super::super::refusal;

/// The index of the share of the key that a node holds; the node's number comes from the caller.
pub(super) fn index(entry: &KeyEntry, node: u32) -> Result<ShareIndex, Status> {
    let number = u16::try_from(node).ok().and_then(|node| NodeId::try_from(node).ok());
    let number =
        number.ok_or_else(|| refusal::invalid(format!("there is no node {node}: nodes are numbered from 1")))?;
    entry.holders.index_of(number).ok_or_else(|| {
        let holders: Vec<String> = entry.holders.iter().map(|holder| holder.to_string()).collect();
        let (key, holders) = (entry.qualified_name(), holders.join(", "));
        refusal::invalid(format!("node {node} holds no share of key {key}, which the nodes {holders} hold"))
    })
}

/// The node that holds the share of this index.
pub(super) fn node(entry: &KeyEntry, index: ShareIndex) -> Result<u32, Status> {
    let node = entry.holders.node_of(index).map(|node| u32::from(node.get()));
    node.ok_or_else(|| Status::internal("bug: a share index that the key does not have; please report it"))
}

/// A scheme's error, with nodes in place of share indices.
pub(super) fn words(error: &SchemeError, entry: &KeyEntry) -> Result<String, Status> {
    Ok(match error {
        SchemeError::FalseShares(indices) => {
            let nodes = indices.iter().map(|index| node(entry, *index)).collect::<Result<Vec<_>, _>>()?;
            let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            format!("false shares, of node {}", nodes.join(", "))
        }
        SchemeError::MalformedShare { index, error } => {
            format!("the share of node {} is malformed: {error}", node(entry, *index)?)
        }
        SchemeError::Combine(CombineError::Duplicate(index)) => format!("two shares of node {}", node(entry, *index)?),
        SchemeError::Combine(
            CombineError::UnknownParty(_) | CombineError::TooFew { .. } | CombineError::ResultInvalid,
        )
        | SchemeError::Request(_)
        | SchemeError::TwoRounds(_)
        | SchemeError::Preprocessed(_)
        | SchemeError::FalseProof
        | SchemeError::OtherKey
        | SchemeError::Verify(_) => error.to_string(),
    })
}

/// The status of a scheme's error: the caller's mistake, except for errors that cannot happen.
pub(super) fn refusal(error: &SchemeError, entry: &KeyEntry) -> Status {
    let words = match words(error, entry) {
        Ok(words) => words,
        Err(bug) => return bug,
    };
    match error {
        SchemeError::Combine(CombineError::ResultInvalid)
        | SchemeError::TwoRounds(_)
        | SchemeError::Preprocessed(_) => Status::failed_precondition(refusal::short(words)),
        // This machine computed wrongly.
        SchemeError::FalseProof => Status::internal(refusal::short(words)),
        _ => refusal::invalid(words),
    }
}
