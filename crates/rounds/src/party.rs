//! Who takes part in one run of a protocol.

use core::{fmt, num::NonZeroU16};

use theta_names::{NodeId, ShareIndex};

/// The number of a party in one run of a protocol, 1 to 65,535.
///
/// In the protocols of a key (one-round schemes, FROST) a party is the holder of a share, numbered by the share's
/// index; in ceremonies a party is a node. The caller that runs a protocol knows which of the two applies, and states
/// it: a party is made [of a share](Self::of_share) or [of a node](Self::of_node), and read back as [a
/// share](Self::share) or [a node](Self::node). There is no other conversion, so a node's number never becomes a share
/// index except through a key's `Holders`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartyId(NonZeroU16);

impl PartyId {
    /// The lowest number.
    pub const FIRST: Self = Self(NonZeroU16::MIN);

    /// The party that stands for this node, in a protocol whose parties are nodes.
    #[must_use]
    pub const fn of_node(node: NodeId) -> Self {
        Self(node.number())
    }

    /// The party that holds the share of this index, in a protocol whose parties are the holders of a key's shares.
    #[must_use]
    pub const fn of_share(index: ShareIndex) -> Self {
        Self(index.number())
    }

    /// The node that this party stands for, in a protocol whose parties are nodes.
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
