//! The group, as the group file describes it.

use theta_ceremonies::CeremonyMember;
use theta_ledger::founding::{Founding, FoundingError, NodeSignatures};
use theta_ledger::{Genesis, GenesisError};
use theta_names::NodeId;

/// All that a custodian knows of its group. It must be the same at all nodes, since ids of ceremonies are derived from
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// The group's name.
    pub name: String,
    /// The numbers of its nodes.
    pub nodes: Vec<NodeId>,
    /// The identities of the nodes that can take part in ceremonies.
    pub members: Vec<CeremonyMember>,
    /// How many nodes must agree before a node believes them: one more than may be malicious.
    pub k: u16,
    /// With which cards it was founded, if it was.
    pub founding: Option<Founding>,
}

impl Roster {
    /// The same group with its founding, as text.
    ///
    /// # Errors
    /// [`FoundingError`].
    pub fn with_founding(self, text: &str) -> Result<Self, FoundingError> {
        Ok(Self { founding: Some(Founding::from_text(text, &NodeSignatures)?), ..self })
    }

    /// With what the group's ledger begins; `None` if a node of the group has no identity to vote with.
    ///
    /// # Errors
    /// [`GenesisError`]: the group was founded with another name or k than it has here, or its members do not go together.
    pub fn genesis(&self) -> Result<Option<Genesis>, GenesisError> {
        let known: Option<Vec<_>> = self.nodes.iter().map(|node| self.member(*node).cloned()).collect();
        match (known, &self.founding) {
            (None, None) => Ok(None),
            (members, founding) => {
                let members = members.unwrap_or_default();
                Genesis::of_file(&self.name, self.k, members, founding.as_ref()).map(Some)
            }
        }
    }

    /// The identity of a node.
    #[must_use]
    pub fn member(&self, node: NodeId) -> Option<&CeremonyMember> {
        self.members.iter().find(|member| member.node() == node)
    }
}
