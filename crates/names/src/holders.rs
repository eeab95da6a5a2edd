//! Which node holds which share of a key.

use crate::{NodeId, ShareIndex};

/// The map between node numbers and share indices in one epoch of a key.
///
/// A party has both numbers: the group file numbers the nodes, the sharing numbers the shares. They are equal in a key that was
/// dealt to all nodes, and differ after a reshare to nodes 1, 2, 3 and 5. Only this type converts one to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holders(Vec<NodeId>);

/// Why a list of nodes cannot be the holders of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HoldersError {
    /// More nodes than there are share indices.
    #[error("{0} nodes are too many to hold shares")]
    TooMany(usize),
    /// A node is in the list twice.
    #[error("node {0} is named twice")]
    Twice(NodeId),
}

impl Holders {
    /// The holders of shares 1, 2, 3, ..., in this order.
    ///
    /// # Errors
    /// [`HoldersError`] if a node is there twice, or if there are more than 65,535 nodes.
    pub fn new(nodes: Vec<NodeId>) -> Result<Self, HoldersError> {
        if u16::try_from(nodes.len()).is_err() {
            return Err(HoldersError::TooMany(nodes.len()));
        }
        let mut sorted = nodes.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find_map(|pair| pair.first().filter(|first| pair.last() == Some(*first))) {
            Some(twice) => Err(HoldersError::Twice(*twice)),
            None => Ok(Self(nodes)),
        }
    }

    /// Nodes 1 to n, where node i holds share i.
    #[must_use]
    pub fn first(n: u16) -> Self {
        Self((1..=n).filter_map(|node| NodeId::try_from(node).ok()).collect())
    }

    /// The index of a node's share; `None` if it holds none.
    #[must_use]
    pub fn index_of(&self, node: NodeId) -> Option<ShareIndex> {
        ShareIndex::at(self.0.iter().position(|holder| *holder == node)?)
    }

    /// The node that holds the share of this index; `None` if there is no such share.
    #[must_use]
    pub fn node_of(&self, index: ShareIndex) -> Option<NodeId> {
        self.0.get(index.position()).copied()
    }

    /// Whether the node holds a share.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.0.contains(&node)
    }

    /// The nodes by share index: the holder of index 1 first.
    #[must_use]
    pub fn nodes(&self) -> &[NodeId] {
        &self.0
    }

    /// The nodes by share index.
    pub fn iter(&self) -> core::iter::Copied<core::slice::Iter<'_, NodeId>> {
        self.0.iter().copied()
    }

    /// How many shares there are, n.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no holders.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a Holders {
    type Item = NodeId;
    type IntoIter = core::iter::Copied<core::slice::Iter<'a, NodeId>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u16) -> NodeId {
        NodeId::try_from(number).unwrap()
    }

    fn index(number: u16) -> ShareIndex {
        ShareIndex::try_from(number).unwrap()
    }

    #[test]
    fn nodes_and_indices_are_mapped_onto_each_other() {
        let holders = Holders::new([1, 2, 5, 3].map(node).to_vec()).unwrap();
        assert_eq!((holders.index_of(node(5)), holders.node_of(index(3))), (Some(index(3)), Some(node(5))));
        assert_eq!((holders.index_of(node(3)), holders.node_of(index(4))), (Some(index(4)), Some(node(3))));
        assert_eq!((holders.index_of(node(4)), holders.node_of(index(5))), (None, None));
        for holder in &holders {
            assert_eq!(holders.index_of(holder).and_then(|index| holders.node_of(index)), Some(holder));
        }
        assert!(holders.contains(node(5)) && !holders.contains(node(4)));
        assert_eq!((holders.len(), holders.is_empty()), (4, false));
        assert_eq!(Holders::first(3).nodes(), [1, 2, 3].map(node));
    }

    #[test]
    fn no_node_holds_two_shares() {
        assert_eq!(Holders::new([4, 1, 2, 4].map(node).to_vec()), Err(HoldersError::Twice(node(4))));
        let many = (0..=u32::from(u16::MAX)).map(|number| node((number % 65_535) as u16 + 1)).collect();
        assert_eq!(Holders::new(many), Err(HoldersError::TooMany(65_536)));
    }
}
