//! Why keys do not go together, and why one cannot be used, each in one line with what would help.

use theta_names::{HoldersError, NodeId, Version};
use theta_schemes::keys::KeyName;
use theta_schemes::{UnfitThreshold, UnsupportedDelivery};
use theta_sharing::ShareIndex;

/// Why keys cannot be in one table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyTableError {
    /// Shares of different nodes in one table.
    #[error(
        "key {second} has the share of node {second_index}, key {first} that of node {first_index}: a node holds its own shares only"
    )]
    MixedNodes {
        /// One key.
        first: KeyName,
        /// Whose share of it.
        first_index: ShareIndex,
        /// The other key.
        second: KeyName,
        /// Whose share of it.
        second_index: ShareIndex,
    },
    /// One key twice.
    #[error("keys {first} and {second} are the same key: remove one of them (theta keys remove)")]
    SameKey {
        /// One name.
        first: KeyName,
        /// The other.
        second: KeyName,
    },
    /// One secret for two purposes: an answer for one could be of use against the other.
    #[error(
        "keys {first} and {second} are one secret for two purposes: remove one of them (theta keys remove), and make a new \
         key for its purpose"
    )]
    SameSecret {
        /// One name.
        first: KeyName,
        /// The other.
        second: KeyName,
    },
    /// One secret for a key with active security and for one with passive: whoever learns it by the one has the other.
    #[error(
        "keys {first} and {second} are one secret, the one with passive security, the other without: a holder that may learn the one has \
         the other; remove one of them (theta keys remove), and make a new key"
    )]
    OneIsPassive {
        /// One name.
        first: KeyName,
        /// The other.
        second: KeyName,
    },
    /// Two keys of one name.
    #[error("two keys are named {0}: rename one of them")]
    SameName(KeyName),
    /// A share and a public key that are not of one key.
    #[error("key {0}: the share does not belong to the public key: pair the files of one key")]
    OtherKey(KeyName),
    /// A delivery that the scheme does not have.
    #[error("key {name}: {reason}")]
    UnsupportedDelivery {
        /// Which key.
        name: KeyName,
        /// Why not.
        reason: UnsupportedDelivery,
    },
    /// A threshold that keys of the suite cannot have.
    #[error("key {name}: {reason}")]
    UnfitThreshold {
        /// Which key.
        name: KeyName,
        /// Why not.
        reason: UnfitThreshold,
    },
    /// Not one holder for each share.
    #[error("key {name}: {holders} nodes are named as holders of {n} shares")]
    Holders {
        /// Which key.
        name: KeyName,
        /// How many nodes are named.
        holders: usize,
        /// How many shares there are.
        n: u16,
    },
    /// Nodes that are not the holders of a key.
    #[error("key {name}: {error}")]
    HolderList {
        /// Which key.
        name: KeyName,
        /// Why not.
        error: HoldersError,
    },
}

/// Why a key cannot be used for a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No key of this name.
    #[error("there is no key {name:?} here; the known ones are: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The key has no such version.
    #[error("key {name} has no version {version}; it has: {known}")]
    NoVersion {
        /// Which key.
        name: KeyName,
        /// Which version.
        version: Version,
        /// Those that there are.
        known: String,
    },
    /// A person disabled it.
    #[error("key {0} is disabled: enable it to use it again")]
    Disabled(String),
    /// Its shares are gone.
    #[error("key {0} is destroyed: its shares are gone for ever; make a new key")]
    Destroyed(String),
    /// Its holders have not certified it.
    #[error("key {0} is not certified by its holders yet: wait for the end of its ceremony")]
    Pending(String),
    /// It was rotated out, and this is not decryption.
    #[error("key {name} was rotated out and makes nothing new: use {primary}")]
    Retired {
        /// Which version.
        name: String,
        /// What took its place.
        primary: String,
    },
    /// The node is none of its holders.
    #[error("node {node} holds no share of key {name}: ask one of the nodes {holders}")]
    NotHolder {
        /// Which version.
        name: String,
        /// This node.
        node: NodeId,
        /// Those that hold shares.
        holders: String,
    },
    /// The node is a holder, and has lost its share.
    #[error(
        "this node's share of key {name} is lost, or it was away when shares were dealt: the others compute it with theta keys \
         recover {key}{}, which takes an approval", at(*node)
    )]
    ShareLost {
        /// Which version.
        name: String,
        /// The key, as a recovery names it.
        key: KeyName,
        /// This node, if the table knows it.
        node: Option<NodeId>,
    },
}

fn at(node: Option<NodeId>) -> String {
    node.map(|node| format!(" --node {node}")).unwrap_or_default()
}
