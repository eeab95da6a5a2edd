//! One version of a key at one epoch.

use std::sync::Arc;

use theta_names::{Epoch, Holders, KeyState, Version};
use theta_protocols::frost::Stock;
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyId, KeyName};

/// One version of a key at one epoch, as it serves. Replaced as a whole when the epoch or the state changes: whoever holds
/// one goes on with what it was.
#[derive(Clone, Debug)]
pub struct KeyEntry {
    /// What people call the key, without the version.
    pub name: KeyName,
    /// Which version.
    pub version: Version,
    /// The sharing: the first for a key that was dealt or just made.
    pub epoch: Epoch,
    /// What key and version together may do.
    pub state: KeyState,
    /// The generation of the last change of the key's state, of whatever version.
    pub generation: u64,
    /// Whether this is the version that the bare name stands for.
    pub primary: bool,
    /// What everybody may know of it.
    pub public: AnyPublicKey,
    /// This node's part of the secret; `None` if it holds none, or lost it.
    pub share: Option<Arc<AnyKeyShare>>,
    /// The digest of suite and public key: the same in all epochs.
    pub key_id: KeyId,
    /// What it is made for.
    pub suite: Suite,
    /// Which node holds which share.
    pub holders: Holders,
    /// What this node and its peers have made in advance for it. Of this epoch: with new shares comes a new stock, and this one is wiped.
    pub stock: Arc<Stock>,
}

impl KeyEntry {
    /// `files` for the primary version, `files@2` for another.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        if self.primary { self.name.to_string() } else { format!("{}@{}", self.name, self.version) }
    }

    /// Whether its state lets it serve what it is made for; the share is another matter.
    #[must_use]
    pub const fn serves(&self) -> bool {
        self.state.serves(self.suite.purpose())
    }
}
