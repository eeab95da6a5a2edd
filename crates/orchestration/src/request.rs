//! What the orchestrator is asked, and what it answers.

use core::{any::Any, fmt};
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha512};
use theta_custody::{ResolveError, SlotRefusal};
use theta_groups::{Secret, Transcript};
use theta_names::NodeId;
use theta_rounds::Abort;
use theta_schemes::{StatementBytes, keys::KeyId, signatures::frost::SeedError};

/// A request from an application: the same request at every node meets in the same instance.
#[derive(Clone, Debug)]
pub struct Request {
    /// The key's name.
    pub key: String,
    /// What to do with it.
    pub operation: KeyRequest,
}

/// Who asked, as far as this node's room goes: an instance is held to the account of whoever started it.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Whose results are counted together.
    pub name: Arc<str>,
    /// Bytes of results that are its: when there is no room for all results, whoever has more than that makes room first.
    pub result_bytes: usize,
    /// Its place among the running, given back (dropped) when the instance ends, or at once if none is started.
    pub place: Arc<dyn Any + Send + Sync>,
}

/// What a key is asked to do.
#[derive(Clone, Debug)]
pub enum KeyRequest {
    /// Unwrap the payload key of the ciphertext with this header.
    Decapsulate(Bytes),
    /// Sign this message.
    Sign(Bytes),
    /// Sign this message under a re-randomised key, which is made of the seed and of the commitments that the outcome's
    /// proof holds. For FROST keys.
    SignRandomized {
        /// The message.
        message: Bytes,
        /// 32 to 64 random bytes, known to the nodes and to the client alone.
        seed: Seed,
    },
    /// Draw the coin of this name.
    FlipCoin(Bytes),
}

/// The seed of a re-randomised key; clones share it.
pub type Seed = Arc<Secret<Vec<u8>>>;

/// The hash of the canonical request: key id, epoch, operation, statement, and the seed if there is one. Equal requests have
/// equal ids, different ones never.
///
/// The first two bytes are those of the statement's SHA-512 digest, whatever the key and its epoch: they choose the CPU
/// thread, so that an instance that goes on under another epoch of its key stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub [u8; 32]);

impl InstanceId {
    /// No instance: stands where misbehaviour belongs to none. No request hashes to it, short of breaking SHA-512.
    pub const NONE: Self = Self([0; 32]);

    /// The id of a statement under a key at one of its epochs.
    #[must_use]
    pub fn new(key: &KeyId, epoch: u64, statement: &StatementBytes) -> Self {
        Self::with_seed(key, epoch, statement, None)
    }

    /// The id of an operation under a key at one of its epochs.
    #[must_use]
    pub fn of(key: &KeyId, epoch: u64, operation: KeyRequest) -> Self {
        let (statement, seed) = operation.into_parts();
        Self::with_seed(key, epoch, &statement, seed.as_deref())
    }

    /// The id of a statement that is answered under a re-randomised key.
    pub(crate) fn with_seed(
        key: &KeyId,
        epoch: u64,
        statement: &StatementBytes,
        seed: Option<&Secret<Vec<u8>>>,
    ) -> Self {
        let transcript = Transcript::new("theta/instance/v2").with("key", key.as_bytes());
        let transcript = transcript.with("epoch", &epoch.to_be_bytes());
        // The digest of a statement rather than the statement: what a node logs or signs about an instance later can
        // then be checked without the statement itself.
        let digest: [u8; 64] = Sha512::digest(statement.as_statement().bytes()).into();
        let transcript =
            transcript.with("operation", statement.as_statement().operation().as_bytes()).with("statement", &digest);
        let mut id = match seed {
            None => transcript.finish32(),
            Some(seed) => transcript.with("seed", seed.expose()).finish32(),
        };
        if let (Some(place), Some(prefix)) = (id.first_chunk_mut::<2>(), digest.first_chunk()) {
            *place = *prefix;
        }
        Self(id)
    }
}

impl KeyRequest {
    /// How long the statement is, in bytes.
    #[must_use]
    pub const fn statement_len(&self) -> usize {
        match self {
            Self::Decapsulate(bytes) | Self::Sign(bytes) | Self::FlipCoin(bytes) => bytes.len(),
            Self::SignRandomized { message, .. } => message.len(),
        }
    }

    /// What the key answers, and the seed of the re-randomised key that it answers under, if any.
    pub(crate) fn into_parts(self) -> (StatementBytes, Option<Seed>) {
        match self {
            Self::Decapsulate(bytes) => (StatementBytes::Decapsulate(bytes), None),
            Self::Sign(bytes) => (StatementBytes::Sign(bytes), None),
            Self::SignRandomized { message, seed } => (StatementBytes::Sign(message), Some(seed)),
            Self::FlipCoin(bytes) => (StatementBytes::FlipCoin(bytes), None),
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
    /// The coin's proof; for a signature under a re-randomised key the commitments that it is made of; else empty, for the
    /// result proves itself.
    pub proof: Vec<u8>,
    /// The nodes whose shares are in the result.
    pub contributors: Vec<NodeId>,
    /// Who misbehaved in this instance without stopping it.
    pub culprits: Vec<Culprit>,
}

/// A node that misbehaved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Who.
    pub party: NodeId,
    /// What exactly, for example `share fails verification`.
    pub misbehaviour: String,
    /// In which instance, or ceremony.
    pub instance: InstanceId,
}

/// Where an instance stands.
#[derive(Clone, Debug)]
pub struct InstanceSnapshot {
    /// The key, as it was asked for.
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
    /// No such key here, or none that serves.
    #[error(transparent)]
    Key(#[from] ResolveError),
    /// The statement is not one that the key answers.
    #[error(transparent)]
    Request(#[from] theta_schemes::RequestError),
    /// The key does not sign with such a seed.
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// A bound is reached: instances running, or the CPU pool's queue.
    #[error("this node is at its limit of {0}: try again later or ask another node")]
    Overloaded(&'static str),
    /// The node's store failed: it cannot keep what it must not forget.
    #[error("this node's store failed, ask another node: {0}")]
    Store(String),
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
    /// Its slot is not certified for it.
    #[error(transparent)]
    Slot(#[from] SlotRefusal),
    /// Its key went away while it ran.
    #[error("the key went away meanwhile: {0}")]
    Key(#[from] ResolveError),
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
        let seeds = [[1; 32], [2; 32]].map(|bytes: [u8; 32]| Seed::new(Secret::new(bytes.to_vec())));
        let mut seen = std::collections::HashSet::new();
        for (key, epoch) in keys.into_iter().flat_map(|key| [(key, 0), (key, 1)]) {
            for text in ["", "a", "b"] {
                let bytes = Bytes::from_static(text.as_bytes());
                let plain = KeyRequest::Sign(bytes.clone());
                let (statement, _) = plain.clone().into_parts();
                assert_eq!(InstanceId::of(&key, epoch, plain.clone()), InstanceId::new(&key, epoch, &statement));
                let [one, other] =
                    seeds.clone().map(|seed| KeyRequest::SignRandomized { message: bytes.clone(), seed });
                for operation in
                    [plain, one, other, KeyRequest::Decapsulate(bytes.clone()), KeyRequest::FlipCoin(bytes.clone())]
                {
                    let id = InstanceId::of(&key, epoch, operation.clone());
                    assert_eq!(InstanceId::of(&key, epoch, operation.clone()), id);
                    assert!(!format!("{operation:?}").contains("[1, 1"));
                    assert_eq!(id.0[..2], Sha512::digest(&bytes)[..2], "the same thread for all epochs and keys");
                    assert!(seen.insert(id));
                }
            }
        }
        assert_eq!(seen.len(), 60);
        assert!(!seen.contains(&InstanceId::NONE));
    }
}
