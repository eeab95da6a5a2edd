//! What can go wrong for a client, and what to do about it.

mod status;
pub(crate) mod text;

use std::{fmt, path::PathBuf, time::Duration};

use theta_keyfiles::KeyFileError;
use theta_names::{KeyName, KeyRefError, NodeId, Version};
use theta_network::{Fingerprint, IdentityError, group::GroupFileError};
use theta_schemes::{RequestError, keys::KeyNameError, signatures::frost::SeedError};

pub(crate) use self::status::{Fault, is_for_later};

/// Why a client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The group file is missing or wrong.
    #[error(transparent)]
    Group(#[from] GroupFileError),
    /// The client's certificate or private key is missing or wrong.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A public key file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// A public key file is wrong.
    #[error("{}: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: KeyFileError,
    },
    /// A public key file has the name of another key.
    #[error("{} holds the key {inside}: rename the file to {inside}.pub", path.display())]
    OtherKey {
        /// The file.
        path: PathBuf,
        /// The key in it.
        inside: KeyName,
    },
    /// A client file is wrong.
    #[error("{}: {reason}", path.display())]
    ClientFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The TLS library refused the identity.
    #[error("cannot use the certificate for TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The system gave no thread to a blocking client.
    #[error("cannot start the client's thread: {0}")]
    Runtime(String),
    /// The group file has an invalid address.
    #[error("node {node}: {address:?} is not an address: write host:port in the group file")]
    Address {
        /// The node of this address.
        node: NodeId,
        /// The address.
        address: String,
    },
}

impl From<KeyRefError> for ClientError {
    fn from(error: KeyRefError) -> Self {
        match error {
            KeyRefError::Name(error) => Self::KeyName(error),
            KeyRefError::Version(text) => Self::KeyVersion(text),
        }
    }
}

/// Why an operation has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// The name of the key is invalid.
    #[error(transparent)]
    KeyName(#[from] KeyNameError),
    /// The version of the key is invalid.
    #[error("{0:?} is not a version: write NAME@VERSION with a number from 1")]
    KeyVersion(String),
    /// The request could not be signed.
    #[error("cannot sign the request: {0}")]
    Unsigned(String),
    /// The policies of so many nodes refuse that too few nodes are left.
    #[error("{operation}: {message}")]
    Denied {
        /// What was asked for.
        operation: &'static str,
        /// The rule that refused, if one did.
        rule: Option<String>,
        /// The code of the reason, which is stable, for example `no-rule`.
        reason: String,
        /// The nodes' message; where their agents do not say the same, what each says.
        message: String,
    },
    /// Too many nodes do not accept connections of this client.
    #[error("{operation}: {}", all_turned_away(.nodes, .certificate.as_ref()))]
    TurnedAway {
        /// What was asked for.
        operation: &'static str,
        /// These nodes, in ascending order.
        nodes: Vec<NodeId>,
        /// The certificate that they do not accept; `None` if the client showed none.
        certificate: Option<Fingerprint>,
    },
    /// The group has no such node.
    #[error("there is no node {0} in the group")]
    UnknownNode(NodeId),
    /// The request is wrong; no node was asked.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The key does not sign with such a randomizer; no node was asked.
    #[error(transparent)]
    Randomizer(#[from] SeedError),
    /// So many nodes refused the request that at least one of them is honest.
    #[error("{operation}: {reason}")]
    Refused {
        /// What was asked for.
        operation: &'static str,
        /// The gRPC status code of the first of them.
        code: tonic::Code,
        /// The nodes' message.
        reason: String,
    },
    /// No node gave a good answer.
    #[error("{operation}: no node gave a good answer{}", Lines(.nodes))]
    NoAnswer {
        /// What was asked for.
        operation: &'static str,
        /// What each node did, in ascending order.
        nodes: Vec<NodeProblem>,
    },
    /// The group has not decided it in time. It may later, by itself.
    #[error(
        "{change}: the group has not decided it yet{}{}; nodes that come back within five days go on with it by themselves: look again \
         with --generation {generation}{}",
        stopped(.frozen), awaited(.awaits), Lines(.nodes)
    )]
    Undecided {
        /// What is not so yet, such as `"sign is not disabled yet"`.
        change: String,
        /// The generation that the change makes.
        generation: u64,
        /// The nodes that have stopped using the key already.
        frozen: Vec<NodeId>,
        /// For whom it waits, as far as the nodes know.
        awaits: Vec<NodeId>,
        /// What the nodes did that did not take it.
        nodes: Vec<NodeProblem>,
    },
    /// Too few holders of a key agree on its public key.
    #[error(
        "the nodes do not agree on the public key {name:?}: it takes {needed} holders with the same, and {dispute}; take its .pub file from \
         a source that you trust{}",
        Lines(.nodes)
    )]
    KeyDisagreement {
        /// The key's name.
        name: String,
        /// How many equal answers are needed.
        needed: u16,
        /// What the answers say of who lies.
        dispute: KeyDispute,
        /// What each node said, in ascending order.
        nodes: Vec<NodeProblem>,
    },
    /// A ciphertext is for a key that the group does not have by this name. Nobody was asked for its payload key: without the public key, one node
    /// and whoever made the ciphertext could give this client a key that the group does not.
    #[error(
        "the ciphertext is for a key with the id {id}, and no version of {name} that enough holders tell has that id"
    )]
    NoSuchKey {
        /// The key's name, as it was asked for.
        name: String,
        /// The first digits of the id.
        id: String,
    },
    /// The payload of a ciphertext does not open.
    #[error("the ciphertext does not open: {0}")]
    Payload(String),
}

/// What answers about a public key that do not confirm it say of who lies. At most k - 1 nodes do, with the group's k. In a group of fewer
/// than 2k - 1 nodes so many are enough to leave a key unconfirmed, and may leave open who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyDispute {
    /// All answers are the same; they are too few.
    Unopposed,
    /// All answers are the same, and the key has this many holders, fewer than the group's k: no answers of theirs are enough.
    FewHolders(usize),
    /// So many nodes give one key that one of them is honest; these, in ascending order, give another.
    Contradicted(Vec<NodeId>),
    /// All give one key in different sharings, or so many give each of several keys that honest ones do not agree: so it is while the key changes.
    Changing,
    /// No key is given by so many.
    Open,
}

impl fmt::Display for KeyDispute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unopposed => f.write_str("fewer give it, though none another"),
            Self::FewHolders(holders) => write!(
                f,
                "only {holders} hold it, who may all lie, so that clients need its file (theta keys show NAME --file prints it where it is known)"
            ),
            Self::Contradicted(nodes) => {
                let (contradict, are) = if nodes.len() == 1 { ("contradicts", "is") } else { ("contradict", "are") };
                let who = listed(nodes);
                write!(f, "{who} {contradict} so many that one of those is honest: {who} {are} lying, broken, behind or ahead")
            }
            Self::Changing => f.write_str("their answers differ as they do while the key changes: ask again in a moment"),
            Self::Open => f.write_str(
                "no answer is given by so many that one of them must be honest: which nodes lie cannot be told from their answers",
            ),
        }
    }
}

/// What one node did instead of giving a good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeProblem {
    /// The node.
    pub node: NodeId,
    /// The address at which it was asked.
    pub address: String,
    /// What it did.
    pub problem: Problem,
}

/// What a node can do wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no connection.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// It did not answer in time.
    #[error("no answer within {0:.1?}")]
    Silent(Duration),
    /// It refused, or could not do what was asked.
    #[error("{}", refused(*.code, .message))]
    Refused {
        /// The gRPC status code.
        code: tonic::Code,
        /// The node's message.
        message: String,
    },
    /// No node can answer the request, whoever asks, because of what is in it: a ciphertext whose encryptor lied.
    #[error("{0}")]
    Unanswerable(String),
    /// It does not accept connections of this client, so it was not asked.
    #[error("{}", turned_away(.certificate.as_ref()))]
    TurnedAway {
        /// The certificate that it does not accept; `None` if the client showed none.
        certificate: Option<Fingerprint>,
    },
    /// It has not caught up with its group yet, as a new member has not, and will answer later. What is asked is asked again while there is time.
    #[error("is not ready yet: {0}")]
    NotReady(String),
    /// Its policy refuses.
    #[error("{message}")]
    Denied {
        /// The rule that refused, if one did.
        rule: Option<String>,
        /// The code of the reason, which is stable, for example `no-rule`.
        reason: String,
        /// The node's message.
        message: String,
    },
    /// Its answer is good, and under another version of the key than the one that is meant: it is behind the others, or ahead of them.
    #[error(
        "answered with version {0} of the key, which is not the one that is meant: it is behind the others, or ahead of them"
    )]
    OtherVersion(Version),
    /// Its answer does not fit the key that this client knows, and the nodes refuse to say whether the group has another one by now.
    #[error(
        "answered what does not fit the key that this client knows, and the client may not learn whether it changed: a rule denies it \
         keys.list ({0})"
    )]
    KeyWithheld(String),
    /// What it says of a public key that is not confirmed, nor refuted ([`ClientError::KeyDisagreement`]).
    #[error("{0}")]
    Unconfirmed(String),
    /// It gave a false answer: the node lies or is broken.
    #[error("gave a false answer: {0}")]
    FalseAnswer(String),
}

impl fmt::Display for NodeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} ({}): {}", self.node, self.address, self.problem)
    }
}

/// Says that a node does not accept this client.
fn turned_away(certificate: Option<&Fingerprint>) -> String {
    format!("turns this client away: {}", way_in(certificate))
}

/// Says that several nodes do not accept this client.
fn all_turned_away(nodes: &[NodeId], certificate: Option<&Fingerprint>) -> String {
    let numbers: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    let who = match numbers.split_last() {
        Some((last, others)) if !others.is_empty() => format!("nodes {} and {last} turn", others.join(", ")),
        _ => format!("node {} turns", numbers.concat()),
    };
    format!("{who} this client away: {}", way_in(certificate))
}

/// Says how a client would be accepted.
fn way_in(certificate: Option<&Fingerprint>) -> String {
    match certificate {
        Some(certificate) => format!(
            "neither policy.toml nor group.toml knows its certificate there; a [[client]] with certificates = \
             [\"{certificate}\"] in policy.toml lets it in"
        ),
        None => "it shows no certificate, and policy.toml names no client with a token there".to_owned(),
    }
}

/// Puts the status of a refusal into words: the names of codes are for programs.
fn refused(code: tonic::Code, message: &str) -> String {
    use tonic::Code;
    match (code, message) {
        (Code::Cancelled, _) => "the connection was closed before the answer".to_owned(),
        (Code::Unimplemented, _) => "it does not know this request: it runs another release".to_owned(),
        (Code::Internal | Code::Unknown | Code::DataLoss, message) => format!("it failed: {message}"),
        (_, "") => "it refuses, without a reason".to_owned(),
        (_, message) => message.to_owned(),
    }
}

fn stopped(frozen: &[NodeId]) -> String {
    if frozen.is_empty() { String::new() } else { format!(", {} stopped using it", listed(frozen)) }
}

fn awaited(awaits: &[NodeId]) -> String {
    if awaits.is_empty() { String::new() } else { format!(", it waits for {}", listed(awaits)) }
}

/// `node 1`, or `nodes 1, 2 and 3`.
pub(crate) fn listed(nodes: &[NodeId]) -> String {
    match nodes {
        [] => "nobody".to_owned(),
        [one] => format!("node {one}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(ToString::to_string).collect();
            format!("nodes {} and {last}", first.join(", "))
        }
    }
}

/// Lists one node a line, below the error's own line.
struct Lines<'a>(&'a [NodeProblem]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_node() {
        let problem = |node: u16, problem| NodeProblem {
            node: NodeId::try_from(node).unwrap(),
            address: format!("127.0.0.1:{node}"),
            problem,
        };
        let error = ClientError::NoAnswer {
            operation: "sign",
            nodes: vec![
                problem(1, Problem::Unreachable("connection refused".to_owned())),
                problem(2, Problem::Silent(Duration::from_millis(1500))),
            ],
        };
        assert_eq!(
            error.to_string(),
            "sign: no node gave a good answer\n  node 1 (127.0.0.1:1): cannot be reached: connection refused\n  \
             node 2 (127.0.0.1:2): no answer within 1.5s"
        );
    }

    #[test]
    fn no_codes_are_read_by_people() {
        for code in 0..=16 {
            let code = tonic::Code::from_i32(code);
            for message in ["", "the words"] {
                let said = Problem::Refused { code, message: message.to_owned() }.to_string();
                assert!(!said.is_empty() && !said.contains(&format!("{code:?}")), "{said}");
            }
        }
        let turned_away = Problem::TurnedAway { certificate: Some(Fingerprint::from([7; 32])) }.to_string();
        assert!(turned_away.contains(&format!("certificates = [\"{}\"]", "07".repeat(32))), "{turned_away}");
    }
}
