//! The id of a request, which is the same at every node.

use core::fmt;

use sha2::{Digest, Sha512};
use theta_custody::KeyEntry;
use theta_groups::{Secret, Transcript};
use theta_names::{Epoch, NodeId};
use theta_schemes::{Statement, keys::KeyId};

use crate::{ParsedStatement, Seed};

/// A hash of the canonical request: key id, epoch, operation, statement, and the seed if there is one. Equal requests
/// have equal ids; different requests have different ones.
///
/// The first two bytes are those of the statement's SHA-512 digest, whatever the key and its epoch. They select the CPU
/// thread, so an instance that goes on under another epoch of its key stays on its thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub [u8; 32]);

impl InstanceId {
    /// Stands for no instance, where misbehaviour belongs to none. No request hashes to it unless SHA-512 is broken.
    pub const NONE: Self = Self([0; 32]);

    /// The id of a statement under a key at one of its epochs.
    #[must_use]
    pub fn new<'a>(key: &KeyId, epoch: Epoch, statement: impl Into<Statement<'a>>) -> Self {
        Self::with_seed(key, epoch, &statement.into(), None)
    }

    /// The id of a statement under a key at its present epoch, re-randomised with the seed if there is one.
    #[must_use]
    pub fn under(key: &KeyEntry, statement: &ParsedStatement, seed: Option<&Seed>) -> Self {
        Self::of(&key.key_id, key.epoch, statement, seed)
    }

    /// The same for a key of which only id and epoch are known.
    #[must_use]
    pub fn of(key: &KeyId, epoch: Epoch, statement: &ParsedStatement, seed: Option<&Seed>) -> Self {
        Self::with_seed(key, epoch, &statement.as_statement(), seed.map(|seed| &**seed))
    }

    fn with_seed(key: &KeyId, epoch: Epoch, statement: &Statement<'_>, seed: Option<&Secret<Vec<u8>>>) -> Self {
        let transcript = Transcript::new("theta/instance/v2").with("key", key.as_bytes());
        let transcript = transcript.with("epoch", &epoch.to_be_bytes());
        // The id covers the digest of a statement rather than the statement, so that what a node logs or signs about an
        // instance can be checked without the statement itself.
        let digest: [u8; 64] = Sha512::digest(statement.bytes()).into();
        let transcript = transcript.with("operation", statement.operation().as_bytes()).with("statement", &digest);
        let mut id = match seed {
            None => transcript.finish32(),
            Some(seed) => transcript.with("seed", seed.expose()).finish32(),
        };
        if let (Some(place), Some(prefix)) = (id.first_chunk_mut::<2>(), digest.first_chunk()) {
            *place = *prefix;
        }
        Self(id)
    }

    /// The id of an instance in which holders of a key make presignatures and `initiator` is the one that has begun it; its first two bytes are those of
    /// the session.
    #[must_use]
    pub fn filling(key: &KeyId, epoch: Epoch, initiator: NodeId, session: &[u8; 32]) -> Self {
        let transcript = Transcript::new("theta/instance/filling/v1").with("key", key.as_bytes());
        let transcript = transcript.with("epoch", &epoch.to_be_bytes());
        let transcript = transcript.with("initiator", &initiator.get().to_be_bytes()).with("session", session);
        let mut id = transcript.finish32();
        if let (Some(place), Some(prefix)) = (id.first_chunk_mut::<2>(), session.first_chunk()) {
            *place = *prefix;
        }
        Self(id)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use theta_schemes::StatementBytes;

    use super::*;

    #[test]
    fn different_requests_have_different_ids() {
        let keys = [KeyId::from_bytes([1; 32]), KeyId::from_bytes([2; 32])];
        let seeds = [[1; 32], [2; 32]].map(|bytes: [u8; 32]| Arc::new(Secret::new(bytes.to_vec())));
        let mut seen = std::collections::HashSet::new();
        for (key, epoch) in keys.into_iter().flat_map(|key| [(key, Epoch::FIRST), (key, Epoch::new(1))]) {
            for text in ["", "a", "b"] {
                let bytes = Bytes::from_static(text.as_bytes());
                let (message, coin) =
                    (ParsedStatement::Message(bytes.clone()), ParsedStatement::CoinName(bytes.clone()));
                let plain = InstanceId::new(&key, epoch, &StatementBytes::Sign(bytes.clone()));
                assert_eq!(InstanceId::of(&key, epoch, &message, None), plain);
                // Bytes that are no header have an id, too, but no request gets it.
                let header = InstanceId::new(&key, epoch, Statement::Decapsulate(&bytes));
                let [one, other] = seeds.each_ref().map(|seed| InstanceId::of(&key, epoch, &message, Some(seed)));
                for id in [plain, one, other, header, InstanceId::of(&key, epoch, &coin, None)] {
                    assert_eq!(id.0[..2], Sha512::digest(&bytes)[..2], "the same thread for all epochs and keys");
                    assert!(seen.insert(id));
                }
            }
        }
        assert_eq!(seen.len(), 60);
        assert!(!seen.contains(&InstanceId::NONE));
        let [seed, _] = seeds;
        assert!(!format!("{:?}", crate::KeyRequest::SignRandomized { message: Bytes::new(), seed }).contains("[1, 1"));
    }
}
