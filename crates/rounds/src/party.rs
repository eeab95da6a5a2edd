//! Who takes part in one run of a protocol.

use core::{fmt, num::NonZeroU16};

use theta_names::{NodeId, ShareIndex};

/// The number of a party in one run of a protocol, 1 to 65,535.
///
/// In the protocols of a key (one-round schemes, FROST) parties are the holders of its shares, by their indices; in ceremonies they
/// are nodes. Whoever runs a protocol knows which, and says so: a party is made [of a share](Self::of_share) or [of a
/// node](Self::of_node), and read back as [the one](Self::share) or [the other](Self::node). There is no other way in or out, so
/// that a node's number never becomes an index without a key's holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartyId(NonZeroU16);

impl PartyId {
    /// The lowest number.
    pub const FIRST: Self = Self(NonZeroU16::MIN);

    /// The party that is this node, in a protocol whose parties are nodes.
    #[must_use]
    pub const fn of_node(node: NodeId) -> Self {
        Self(node.number())
    }

    /// The party that holds the share of this index, in a protocol whose parties are the holders of a key's shares.
    #[must_use]
    pub const fn of_share(index: ShareIndex) -> Self {
        Self(index.number())
    }

    /// The node that this party is, in a protocol whose parties are nodes.
    #[must_use]
    pub fn node(self) -> NodeId {
        self.0.into()
    }

    /// The index of the share that this party holds, in a protocol whose parties are the holders of a key's shares.
    #[must_use]
    pub fn share(self) -> ShareIndex {
        self.0.into()
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Display for PartyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
