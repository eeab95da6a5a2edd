//! What the orchestrator is asked, and what it answers.

use core::fmt;

use bytes::Bytes;
use sha2::{Digest, Sha512};
use theta_groups::{Secret, Transcript};
use theta_rounds::{Abort, PartyId};
use theta_schemes::{StatementBytes, keys::KeyId};

/// A request from an application: the same request at every node meets in the same instance.
#[derive(Clone, Debug)]
pub struct Request {
    /// The key's name.
    pub key: String,
    /// What to do with it.
    pub operation: Operation,
}

/// What a key is asked to do.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Unwrap the payload key of the ciphertext with this header.
    Decapsulate(Bytes),
    /// Sign this message.
    Sign(Bytes),
    /// Draw the coin of this name.
    FlipCoin(Bytes),
}

/// The hash of the canonical request: key id, operation, statement. Equal requests have equal ids, different ones never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub [u8; 32]);

impl InstanceId {
    /// No instance: stands where misbehaviour belongs to none. No request hashes to it, short of breaking SHA-512.
    pub const NONE: Self = Self([0; 32]);

    /// The id of a statement under a key.
    #[must_use]
    pub fn new(key: &KeyId, statement: &StatementBytes) -> Self {
        let transcript = Transcript::new("theta/instance/v1").with("key", key.as_bytes());
        // The digest of a statement rather than the statement: what a node logs or signs about an instance later can
        // then be checked without the statement itself.
        let bytes = Sha512::digest(statement.as_statement().bytes());
        Self(transcript.with("operation", name(statement).as_bytes()).with("statement", &bytes).finish32())
    }
}

/// The name of a statement's operation, in ids, logs and snapshots.
pub(crate) const fn name(statement: &StatementBytes) -> &'static str {
    match statement {
        StatementBytes::Decapsulate(_) => "decapsulate",
        StatementBytes::Sign(_) => "sign",
        StatementBytes::FlipCoin(_) => "flip_coin",
    }
}

impl From<Operation> for StatementBytes {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::Decapsulate(bytes) => Self::Decapsulate(bytes),
            Operation::Sign(bytes) => Self::Sign(bytes),
            Operation::FlipCoin(bytes) => Self::FlipCoin(bytes),
        }
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A finished instance.
#[derive(Debug)]
pub struct Finished {
    /// The payload key, signature or coin value.
    pub result: Secret<Vec<u8>>,
    /// The coin's proof; empty where the result proves itself.
    pub proof: Vec<u8>,
    /// The parties whose shares are in the result.
    pub contributors: Vec<PartyId>,
    /// Who misbehaved in this instance without stopping it.
    pub culprits: Vec<Culprit>,
}

/// A node that was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Who.
    pub party: PartyId,
    /// What exactly, for example `share fails verification`.
    pub misbehaviour: String,
    /// In which instance.
    pub instance: InstanceId,
}

/// Where an instance stands.
#[derive(Clone, Debug)]
pub struct InstanceSnapshot {
    /// The key's name.
    pub key: String,
    /// `decapsulate`, `sign` or `flip_coin`.
    pub operation: &'static str,
    /// Shares it has.
    pub shares: usize,
    /// Shares it takes, k.
    pub needed: usize,
    /// Running, finished or failed.
    pub state: InstanceState,
}

/// The life of an instance.
#[derive(Clone, Debug)]
pub enum InstanceState {
    /// Waiting for shares.
    Running,
    /// There is a result.
    Finished(std::sync::Arc<Finished>),
    /// There will be none; the text says why and what to do.
    Failed(String),
}

/// Why a request was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// No such key here.
    #[error("no key named {name:?} on this node; it has: {known}")]
    UnknownKey {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The statement is not one that the key answers.
    #[error(transparent)]
    Request(#[from] theta_schemes::RequestError),
    /// A bound is reached: instances running, or the CPU pool's queue.
    #[error("this node is at its limit of {0}: try again later or ask another node")]
    Overloaded(&'static str),
    /// The node is stopping.
    #[error("this node is shutting down")]
    ShuttingDown,
    /// Our own mistake.
    #[error(transparent)]
    Bug(#[from] theta_rounds::Bug),
}

/// Why there is no outcome to give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstanceError {
    /// Never started here, or its result has been dropped by age or size.
    #[error(
        "no instance {0} on this node: it was never started here or its result has expired; send the request again"
    )]
    Unknown(InstanceId),
    /// The protocol ended without a result: the input was unusable, too few could contribute, or a bug of ours.
    #[error(transparent)]
    Aborted(#[from] Abort),
    /// Its time ran out; the text says what was missing.
    #[error("{0}")]
    Expired(String),
    /// The node is stopping.
    #[error("this node is shutting down")]
    ShuttingDown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_requests_have_different_ids() {
        let keys = [KeyId::from_bytes([1; 32]), KeyId::from_bytes([2; 32])];
        let mut seen = std::collections::HashSet::new();
        for key in keys {
            for text in ["", "a", "b"] {
                let bytes = Bytes::from_static(text.as_bytes());
                for operation in
                    [Operation::Decapsulate(bytes.clone()), Operation::Sign(bytes.clone()), Operation::FlipCoin(bytes)]
                {
                    let statement = StatementBytes::from(operation);
                    let id = InstanceId::new(&key, &statement);
                    assert_eq!(id, InstanceId::new(&key, &statement.clone()));
                    assert!(seen.insert(id));
                }
            }
        }
        assert_eq!(seen.len(), 18);
        assert!(!seen.contains(&InstanceId::NONE));
    }
}
