//! What can be wrong with a group file, in words for the person who edits it.

use core::fmt;
use std::{io, path::PathBuf};

use theta_names::NodeNameError;

use super::CeremonyKey;

/// Why a group file was refused. One line: where, what is wrong, and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum GroupFileError {
    /// The file could not be read.
    #[error("cannot read the group file {}: {source}", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file was read, and its content is wrong.
    #[error("{}{}: {problem}", path.display(), Line(*line))]
    Invalid {
        /// Its path.
        path: PathBuf,
        /// The line, from 1, if one line is wrong.
        line: Option<usize>,
        /// What is wrong.
        problem: Box<GroupProblem>,
    },
}

/// What is wrong with a group file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupProblem {
    /// Not TOML, or a key is missing, unknown or of another type.
    #[error("{0}")]
    Syntax(String),
    /// The name of the group or of a client is not valid.
    #[error(
        "the name {0:?} is not allowed; use 1 to 64 characters of a-z A-Z 0-9 . _ - and begin with a letter or digit"
    )]
    Name(String),
    /// The group has no nodes.
    #[error("the group has no nodes; add a [[node]] table for each")]
    NoNodes,
    /// More nodes than there are ids.
    #[error("the group has {0} nodes; at most 65535 are possible")]
    TooManyNodes(usize),
    /// k is not between 1 and n.
    #[error("threshold = {k} is not possible with {n} nodes; it is between 1 and {n}")]
    Threshold {
        /// As given.
        k: i64,
        /// Number of nodes.
        n: u16,
    },
    /// An id is above n.
    #[error("id = {id} is not between 1 and {n}; number the {n} nodes 1 to {n}, each once")]
    NodeId {
        /// As given.
        id: i64,
        /// Number of nodes.
        n: u16,
    },
    /// Two nodes have the same id.
    #[error("two nodes have id = {0}; number the nodes 1 to n, each once")]
    DuplicateId(u16),
    /// Not what a node is called.
    #[error(transparent)]
    NodeName(NodeNameError),
    /// One name for two nodes.
    #[error("two nodes are named {0:?}; give each a name of its own")]
    DuplicateName(String),
    /// Not an address.
    #[error("{address:?} is not an address: {reason}; write it as host:port, 192.0.2.1:7001 or [2001:db8::1]:7001")]
    Address {
        /// As given.
        address: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two listeners have the same address.
    #[error("the address {0} appears twice; every peer_address and api_address must be its own")]
    DuplicateAddress(String),
    /// The text is not a fingerprint.
    #[error(
        "certificate = {0:?} is not a fingerprint; it is the SHA-256 of the certificate's public key, written as 64 hexadecimal digits"
    )]
    Certificate(String),
    /// Two members have the same certificate.
    #[error("the certificate {0} appears twice; every node and client must have its own")]
    DuplicateCertificate(String),
    /// The text is not a ceremony key.
    #[error("ceremony_key = {0:?} is not a ceremony key; it is written as 64 hexadecimal digits")]
    CeremonyKey(String),
    /// Two nodes have the same ceremony key.
    #[error("the ceremony key {0} appears twice; every node must have its own")]
    DuplicateCeremonyKey(CeremonyKey),
    /// Two clients have the same name.
    #[error("two clients are named {0:?}; give each a name of its own")]
    DuplicateClient(String),
}

struct Line(Option<usize>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// The line, from 1, of a byte offset.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count().saturating_add(1)
}
