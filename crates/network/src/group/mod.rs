//! The group file: who is in the group, where, with which keys, and how many it takes.
//!
//! It is public and the same for all members. All trust between them rests on it: a person who can change a node's copy
//! can choose its peers and clients.
//!
//! ```
//! use theta_network::group::GroupFile;
//!
//! let text = format!(
//!     r#"
//!     name = "demo"
//!     threshold = 1
//!
//!     [[node]]
//!     id = 1
//!     peer_address = "127.0.0.1:7001"
//!     api_address = "127.0.0.1:7101"
//!     certificate = "{:064x}"
//!     "#,
//!     1
//! );
//! let group = GroupFile::parse(&text, "group.toml".as_ref())?;
//! assert_eq!(group.nodes().len(), 1);
//! # Ok::<(), theta_network::group::GroupFileError>(())
//! ```

mod ceremony_key;
mod check;
mod error;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use theta_names::{Address, NodeId, NodeName};

pub use ceremony_key::{CeremonyKey, CeremonyKeyError};
pub use error::{GroupFileError, GroupProblem};

use crate::{Fingerprint, IdentityError, Subject, mesh::MeshPeer};

/// A checked group file: ids are 1 to n, or of a group whose members have changed any, each once; `1 <= k <= n`, and no two members share
/// an address, a certificate or a ceremony key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFile {
    name: String,
    threshold: u16,
    founding: Option<String>,
    members_at: Option<u64>,
    nodes: Vec<GroupNode>,
    clients: Vec<GroupClient>,
}

/// A node in the group file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupNode {
    /// Its id.
    pub id: NodeId,
    /// What people call it.
    pub name: Option<NodeName>,
    /// Where its peers reach it, `host:port`.
    pub peer_address: String,
    /// The address at which clients reach it, `host:port`.
    pub api_address: String,
    /// The key of the certificates that it shows to both.
    pub certificate: Fingerprint,
    /// Its public key in ceremonies. A node without one takes part in none.
    pub ceremony_key: Option<CeremonyKey>,
}

/// A client in the group file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupClient {
    /// Its name, for logs and policies.
    pub name: String,
    /// The key of the certificate that it shows to nodes.
    pub certificate: Fingerprint,
}

impl GroupNode {
    /// Whom the node's certificate is for: its name, its number, and where it is reached.
    ///
    /// # Errors
    /// As [`Subject::new`].
    pub fn subject(&self) -> Result<Subject, IdentityError> {
        let numbered = format!("node {}", self.id);
        let name = self.name.as_ref().map_or(numbered.as_str(), NodeName::as_str);
        let addresses = [&self.api_address, &self.peer_address];
        let hosts = addresses.into_iter().filter_map(|address| address.parse::<Address>().ok());
        let subject = Subject::new(name)?.at(&format!("node-{}", self.id));
        Ok(hosts.fold(subject, |subject, address| subject.at(address.host())))
    }
}

impl GroupFile {
    /// Makes a group of the given members; `threshold` is k, the number of nodes that are needed.
    ///
    /// # Errors
    /// [`GroupFileError::Invalid`], without a line, if the members do not form a group.
    pub fn new(
        name: &str,
        threshold: u16,
        nodes: Vec<GroupNode>,
        clients: Vec<GroupClient>,
    ) -> Result<Self, GroupFileError> {
        Self { name: name.to_owned(), threshold, founding: None, members_at: None, nodes, clients }.checked()
    }

    /// The same group with the members that it has by the entry of its ledger of this height: their numbers may have gaps, since none is
    /// given twice.
    ///
    /// # Errors
    /// As [`GroupFile::new`].
    pub fn with_members(self, nodes: Vec<GroupNode>, height: u64) -> Result<Self, GroupFileError> {
        Self { nodes, members_at: Some(height), ..self }.checked()
    }

    fn checked(self) -> Result<Self, GroupFileError> {
        // The members are checked in their text form, by the same checks as a file.
        check::parse(&self.to_text()).map_err(|(_, problem)| GroupFileError::Invalid {
            path: PathBuf::from("the new group"),
            line: None,
            problem: Box::new(problem),
        })
    }

    /// Reads and checks a group file.
    ///
    /// # Errors
    /// [`GroupFileError`]: one line with what is wrong, where, and what would be right.
    pub fn load(path: &Path) -> Result<Self, GroupFileError> {
        let text =
            fs::read_to_string(path).map_err(|source| GroupFileError::Read { path: path.to_path_buf(), source })?;
        Self::parse(&text, path)
    }

    /// Checks the text of a group file. `path` is only for errors.
    ///
    /// # Errors
    /// [`GroupFileError::Invalid`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, GroupFileError> {
        check::parse(text).map_err(|(span, problem)| GroupFileError::Invalid {
            path: path.to_path_buf(),
            line: span.map(|span| error::line_of(text, span.start)),
            problem: Box::new(problem),
        })
    }

    /// The file's text. [`GroupFile::parse`] reads it back to an equal value.
    #[must_use]
    pub fn to_text(&self) -> String {
        // Every value is a string or an integer, which cannot fail to serialise.
        toml::to_string(&GroupText {
            name: &self.name,
            threshold: self.threshold,
            founding: self.founding.as_deref(),
            members_at: self.members_at,
            node: self.nodes.iter().map(NodeText::from).collect(),
            client: self.clients.iter().map(ClientText::from).collect(),
        })
        .unwrap_or_default()
    }

    /// The same group, with the text of its founding, with which its ledger begins.
    #[must_use]
    pub fn with_founding(self, text: String) -> Self {
        Self { founding: Some(text), ..self }
    }

    /// The same group without that text.
    #[must_use]
    pub fn without_founding(self) -> Self {
        Self { founding: None, ..self }
    }

    /// The text of the group's founding, if it has one. What is in it is for whoever reads foundings to check.
    #[must_use]
    pub fn founding(&self) -> Option<&str> {
        self.founding.as_deref()
    }

    /// The height of the ledger's entry that the nodes are from: node programs write it. `None` if they are those that founded the group,
    /// or were written by hand.
    #[must_use]
    pub const fn members_at(&self) -> Option<u64> {
        self.members_at
    }

    /// The same group with these clients.
    ///
    /// # Errors
    /// As [`GroupFile::new`].
    pub fn with_clients(self, clients: Vec<GroupClient>) -> Result<Self, GroupFileError> {
        Self { clients, ..self }.checked()
    }

    /// The group's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// k, the number of nodes that are needed.
    #[must_use]
    pub const fn threshold(&self) -> u16 {
        self.threshold
    }

    /// All nodes, by ascending id.
    #[must_use]
    pub fn nodes(&self) -> &[GroupNode] {
        &self.nodes
    }

    /// All clients, in the file's order.
    #[must_use]
    pub fn clients(&self) -> &[GroupClient] {
        &self.clients
    }

    /// The node with this id.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&GroupNode> {
        let place = self.nodes.binary_search_by_key(&id, |node| node.id).ok()?;
        self.nodes.get(place)
    }

    /// The node that owns this certificate.
    #[must_use]
    pub fn node_by_certificate(&self, certificate: &Fingerprint) -> Option<&GroupNode> {
        self.nodes.iter().find(|node| node.certificate == *certificate)
    }

    /// The other nodes, as the mesh of node `local` takes them.
    #[must_use]
    pub fn mesh_peers(&self, local: NodeId) -> Vec<MeshPeer> {
        self.nodes
            .iter()
            .filter(|node| node.id != local)
            .map(|node| MeshPeer { id: node.id, address: node.peer_address.clone(), certificate: node.certificate })
            .collect()
    }
}

#[derive(Serialize)]
struct GroupText<'a> {
    name: &'a str,
    threshold: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    founding: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    members_at: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    node: Vec<NodeText<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    client: Vec<ClientText<'a>>,
}

#[derive(Serialize)]
struct NodeText<'a> {
    id: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    peer_address: &'a str,
    api_address: &'a str,
    certificate: Fingerprint,
    #[serde(skip_serializing_if = "Option::is_none")]
    ceremony_key: Option<CeremonyKey>,
}

#[derive(Serialize)]
struct ClientText<'a> {
    name: &'a str,
    certificate: Fingerprint,
}

impl<'a> From<&'a GroupNode> for NodeText<'a> {
    fn from(node: &'a GroupNode) -> Self {
        let GroupNode { id, name, peer_address, api_address, certificate, ceremony_key } = node;
        let (certificate, ceremony_key) = (*certificate, *ceremony_key);
        let name = name.as_ref().map(NodeName::as_str);
        Self { id: id.get(), name, peer_address, api_address, certificate, ceremony_key }
    }
}

impl<'a> From<&'a GroupClient> for ClientText<'a> {
    fn from(client: &'a GroupClient) -> Self {
        Self { name: &client.name, certificate: client.certificate }
    }
}
