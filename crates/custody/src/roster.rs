//! The group, as the group file describes it.

use theta_ceremonies::CeremonyMember;
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
}

impl Roster {
    /// The identity of a node.
    #[must_use]
    pub fn member(&self, node: NodeId) -> Option<&CeremonyMember> {
        self.members.iter().find(|member| member.node() == node)
    }
}
