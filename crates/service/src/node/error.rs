//! Why a node does not start: one line for each reason, with place and remedy.

use std::{io, net::SocketAddr, num::NonZeroU16, path::PathBuf};

use theta_authority::{AuthorityError, PolicyLoadError};
use theta_custody::CustodyError;
use theta_names::NodeId;
use theta_network::{Fingerprint, IdentityError, carrier::RelayedError, group::GroupFileError, mesh::MeshError};

use crate::{config::StoreOpenError, grpc::ApiError};

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The group file is missing or wrong.
    #[error(transparent)]
    Group(#[from] GroupFileError),
    /// The certificate or private key is missing, wrong, or readable by others.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The group has no such node.
    #[error("the group file {} has nodes 1 to {nodes}, not {id}: set `id` in node.toml to this node's number", group.display())]
    NotInGroup {
        /// The configured number.
        id: NonZeroU16,
        /// How many nodes there are.
        nodes: usize,
        /// The group file.
        group: PathBuf,
    },
    /// The group file has another certificate for this node.
    #[error(
        "the certificate {} ({shown}) is {}, {} has {pinned} for node {id}: {}",
        certificate.display(),
        Owner(*owner),
        group.display(),
        Remedy(*owner)
    )]
    Certificate {
        /// The configured number.
        id: NonZeroU16,
        /// The certificate's file.
        certificate: PathBuf,
        /// Its fingerprint.
        shown: Fingerprint,
        /// The group file.
        group: PathBuf,
        /// The fingerprint there.
        pinned: Fingerprint,
        /// The node that the certificate belongs to, if any.
        owner: Option<NodeId>,
    },
    /// The store does not open.
    #[error(transparent)]
    Store(#[from] StoreOpenError),
    /// The policy file is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyLoadError),
    /// The contents of the store cannot be used.
    #[error(transparent)]
    Custody(#[from] CustodyError),
    /// The group file has an invalid ceremony key.
    #[error("the ceremony_key of node {0} in the group file is no key: take the one that its store was made with")]
    CeremonyKey(NodeId),
    /// The group file has a founding that cannot be read.
    #[error("the founding in the group file cannot be read: {0}; take the group file of another member")]
    Founding(String),
    /// Another process listens at this address.
    #[error(
        "the {setting} address {address} is in use: stop the process that listens there or change `listen.{setting}` in node.toml"
    )]
    AddressInUse {
        /// `api` or `metrics`.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
    },
    /// The system does not let the node listen there.
    #[error("cannot listen on {address}: {reason}; change `listen.{setting}` in node.toml")]
    Listen {
        /// `api` or `metrics`.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// The system's message.
        reason: io::Error,
    },
    /// The operating system failed, for example to start a thread.
    #[error("the system does not do its part: {0}")]
    System(io::Error),
    /// The mesh did not start.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The transport through a host did not start.
    #[error(transparent)]
    Relayed(#[from] RelayedError),
    /// The configuration names a transport and not what it takes.
    #[error("transport = \"p2p-proxy\" in node.toml takes a section [host] with address and fingerprint")]
    NoHost,
    /// Gossip did not start.
    #[cfg(feature = "gossip")]
    #[error(transparent)]
    Gossip(#[from] theta_gossip::GossipError),
    /// This build has no gossip.
    #[cfg(not(feature = "gossip"))]
    #[error("transport = \"gossip\" in node.toml takes a build that has it: cargo build --release --features gossip")]
    NoGossip,
    /// The orchestrator did not start.
    #[error(transparent)]
    Orchestrator(#[from] theta_orchestration::StartError),
    /// The API did not start.
    #[error("the API cannot be served: {0}")]
    Api(String),
}

impl StartError {
    pub(super) fn listen(setting: &'static str, address: SocketAddr, reason: io::Error) -> Self {
        match reason.kind() {
            io::ErrorKind::AddrInUse => Self::AddressInUse { setting, address },
            _ => Self::Listen { setting, address, reason },
        }
    }
}

impl From<AuthorityError> for StartError {
    fn from(error: AuthorityError) -> Self {
        match error {
            AuthorityError::Policy(error) => Self::Policy(error),
            AuthorityError::Thread(error) => Self::System(error),
        }
    }
}

impl From<ApiError> for StartError {
    fn from(error: ApiError) -> Self {
        Self::Api(error.to_string())
    }
}

/// The node to which a certificate belongs.
struct Owner(Option<NodeId>);

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(owner) => write!(f, "that of node {owner}"),
            None => f.write_str("not in the group"),
        }
    }
}

/// The remedy.
struct Remedy(Option<NodeId>);

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(owner) => write!(f, "set `id = {owner}` in node.toml or give the other node's certificate"),
            None => f.write_str("use the certificate and the group file that were made together"),
        }
    }
}
