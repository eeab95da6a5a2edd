//! With what the ledger of a group begins, as its group file says.

use theta_agreement::Member;
use theta_ledger::Genesis;
use theta_ledger::founding::{Founding, NodeSignatures};
use theta_names::NodeId;
use theta_network::group::GroupFile;

/// Why a group file does not say with which members the ledger begins.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenesisFileError {
    /// A node without an identity.
    #[error("node {0} has no ceremony_key in the group file: a group keeps a ledger when all its nodes have one")]
    NoIdentity(NodeId),
    /// An identity that is no key.
    #[error("the ceremony_key of node {0} in the group file is no key")]
    Identity(NodeId),
    /// A founding that cannot be read.
    #[error("the founding in the group file cannot be read: {0}")]
    Founding(theta_ledger::founding::FoundingError),
    /// The members make no group.
    #[error(transparent)]
    Genesis(#[from] theta_ledger::GenesisError),
}

/// The members with which the ledger of a group begins: those of its founding if its file has one of that name and threshold, and
/// otherwise those of the file. Whoever trusts the file needs nothing else to check every entry.
///
/// # Errors
/// [`GenesisFileError`].
pub fn genesis_of(group: &GroupFile) -> Result<Genesis, GenesisFileError> {
    let member = |node: &theta_network::group::GroupNode| {
        let key = node.ceremony_key.ok_or(GenesisFileError::NoIdentity(node.id))?;
        Member::of(node.id, key.as_bytes()).map_err(|_| GenesisFileError::Identity(node.id))
    };
    let members = group.nodes().iter().map(member).collect::<Result<_, _>>()?;
    let founding = group.founding().map(|text| Founding::from_text(text, &NodeSignatures));
    let founding = founding.transpose().map_err(GenesisFileError::Founding)?;
    match &founding {
        // Members that came later, or whose machines are others now, are in the file and not in the founding.
        Some(founding) if (founding.name(), founding.threshold()) == (group.name(), group.threshold()) => {
            Ok(Genesis::of(founding)?)
        }
        _ => Ok(Genesis::new(group.name(), group.threshold(), members)?),
    }
}
