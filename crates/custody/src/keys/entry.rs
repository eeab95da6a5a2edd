//! One version of a key at one epoch.

use std::sync::Arc;

use theta_names::{Delivery, Epoch, Holders, KeyState, Version};
use theta_protocols::Stock;
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyId, KeyName};

/// One version of a key at one epoch, as it is used. It is replaced as a whole when the epoch or the state changes;
/// code that holds the old entry goes on with the old state.
#[derive(Clone, Debug)]
pub struct KeyEntry {
    /// The name of the key, without the version.
    pub name: KeyName,
    /// Which version.
    pub version: Version,
    /// The epoch of the sharing; the first for a key that was dealt or just made.
    pub epoch: Epoch,
    /// The state that key and version have together.
    pub state: KeyState,
    /// Whether it is disabled at this node, and the group has not decided so yet.
    pub frozen: bool,
    /// The generation of the last change of the key's state, whatever version it was of.
    pub generation: u64,
    /// Whether the bare name of the key means this version.
    pub primary: bool,
    /// The public part.
    pub public: AnyPublicKey,
    /// This node's share; `None` if it holds none, or lost it.
    pub(crate) share: Option<Arc<AnyKeyShare>>,
    /// The digest of suite and public key: the same in all epochs.
    pub key_id: KeyId,
    /// The suite.
    pub suite: Suite,
    /// Who makes shares for a request.
    pub delivery: Delivery,
    /// Which node holds which share.
    pub holders: Holders,
    /// Material that this node and its peers have made in advance for this epoch. A new epoch gets a new stock, and
    /// this one is wiped.
    pub stock: Arc<Stock>,
}

impl KeyEntry {
    /// `files` for the primary version, `files@2` for another.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        if self.primary { self.name.to_string() } else { format!("{}@{}", self.name, self.version) }
    }

    /// Whether this node has a share.
    #[must_use]
    pub const fn has_share(&self) -> bool {
        self.share.is_some()
    }

    /// This node's share, for a request that was granted; `None` if it holds none, or lost it. The table of keys is in many hands, so the places
    /// that may call this are listed: `cargo xtask tidy` knows them.
    #[must_use]
    pub const fn expose_share(&self) -> Option<&Arc<AnyKeyShare>> {
        self.share.as_ref()
    }

    /// Whether its state lets it serve what it is made for; the share is another matter.
    #[must_use]
    pub const fn serves(&self) -> bool {
        self.state.serves(self.suite.purpose())
    }
}
