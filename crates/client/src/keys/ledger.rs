//! Following the group's ledger.

use theta_agreement::Member;
use theta_ledger::founding::{Founding, FoundingError, NodeSignatures};
use theta_ledger::{CertifiedEntry, Genesis, LedgerState};
use theta_names::NodeId;
use theta_network::group::GroupFile;
use theta_wire::v1;

use crate::{Client, ClientError, NodeProblem, Problem};

/// What came of following the ledger.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The entries that were new, each checked.
    pub entries: Vec<CertifiedEntry>,
    /// The nodes that gave nothing, or something false, and what.
    pub problems: Vec<NodeProblem>,
}

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
    Founding(FoundingError),
    /// The members make no group.
    #[error(transparent)]
    Genesis(#[from] theta_ledger::GenesisError),
}

/// The members with which the ledger of a group begins, as its file has them. Who trusts the file trusts its nodes' identities, and needs
/// nothing else to check every entry.
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
    Ok(Genesis::of_file(group.name(), group.threshold(), members, founding.as_ref())?)
}

impl Client {
    /// Takes into `state` all that the nodes have decided since, from whichever of them has it. All nodes are asked, since one alone may
    /// be behind or hold back what is new; what they give is checked entry by entry.
    ///
    /// # Errors
    /// [`ClientError::NoAnswer`] if no node gave anything that is true.
    pub async fn follow_ledger(&self, state: &mut LedgerState) -> Result<Followed, ClientError> {
        let mut followed = Followed { entries: Vec::new(), problems: Vec::new() };
        let nodes: Vec<NodeId> = self.shared.connections.iter().map(|connection| connection.node).collect();
        let asked = nodes.len();
        for node in nodes {
            if let Err(problem) = self.follow_at(node, state, &mut followed.entries).await {
                followed.problems.push(problem);
            }
        }
        if followed.problems.len() == asked {
            return Err(ClientError::NoAnswer { operation: "read the ledger", nodes: followed.problems });
        }
        Ok(followed)
    }

    async fn follow_at(
        &self,
        node: NodeId,
        state: &mut LedgerState,
        entries: &mut Vec<CertifiedEntry>,
    ) -> Result<(), NodeProblem> {
        let Ok(connection) = self.connection(node) else { return Ok(()) };
        let named = |problem| NodeProblem { node, address: connection.address.to_string(), problem };
        let patience = self.shared.options.timeout;
        let request = self.enclose_token().request(v1::ReadLedgerRequest { after: state.height() }, patience);
        let failed = async |status: tonic::Status| named(connection.problem(&status, patience).await);
        let mut stream = match connection.governance().read_ledger(request).await {
            Ok(stream) => stream.into_inner(),
            Err(status) => return Err(failed(status).await),
        };
        loop {
            let read = match stream.message().await {
                Ok(None) => return Ok(()),
                Ok(Some(read)) => read,
                Err(status) => return Err(failed(status).await),
            };
            let certified = CertifiedEntry::decode(&read.entry)
                .map_err(|error| named(Problem::FalseAnswer(format!("not an entry of the ledger: {error}"))))?;
            state.advance(&certified).map_err(|error| named(Problem::FalseAnswer(error.to_string())))?;
            entries.push(certified);
        }
    }
}
