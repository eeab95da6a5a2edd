//! The group, as its file describes it.

use theta_ceremonies::CeremonyMember;
use theta_names::NodeId;

/// All that a custodian knows of its group. It must be the same at all nodes: ceremonies are named by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// The group's name.
    pub name: String,
    /// The numbers of its nodes.
    pub nodes: Vec<NodeId>,
    /// The identities of those that can take part in ceremonies.
    pub members: Vec<CeremonyMember>,
    /// How many nodes agree on what one of them may believe: one more than may do what they like.
    pub k: u16,
}

impl Roster {
    /// The identity of a node.
    #[must_use]
    pub fn member(&self, node: NodeId) -> Option<&CeremonyMember> {
        self.members.iter().find(|member| member.node() == node)
    }
}
