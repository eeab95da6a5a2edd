//! What an application asked for, whatever the epoch of the key that answers.

use std::sync::Arc;

use bytes::Bytes;
use theta_custody::{KeyEntry, KeyTable, ResolveError};
use theta_names::KeyRef;
use theta_schemes::{
    StatementBytes,
    ciphers::Header,
    keys::{KeyId, KeyName},
};

use crate::{InstanceId, Request, Seed};

/// What an application asked for.
#[derive(Clone)]
pub(crate) struct Asked {
    /// The key, as the application names it.
    pub(crate) key: String,
    pub(crate) statement: StatementBytes,
    pub(crate) seed: Option<Seed>,
    /// The version that answered when the request was let in. No other version answers it later: that would be another
    /// public key, and nobody's policy was asked about that.
    pub(crate) version: Option<u32>,
}

impl From<Request> for Asked {
    fn from(request: Request) -> Self {
        let (statement, seed) = request.operation.into_parts();
        Self { key: request.key, statement, seed, version: None }
    }
}

impl Asked {
    /// Finds the version that answers, and stays with it.
    pub(crate) fn pin(&mut self, keys: &KeyTable) -> Result<Arc<KeyEntry>, ResolveError> {
        let key = self.resolve(keys)?;
        self.version = Some(key.version);
        Ok(key)
    }

    /// The key as it answers now: the version that answered when the request was let in; at first, for a ciphertext the
    /// version that it is encrypted to, else the one that is named.
    pub(crate) fn resolve(&self, keys: &KeyTable) -> Result<Arc<KeyEntry>, ResolveError> {
        if let (Some(version), Ok(KeyRef { name, .. })) = (self.version, self.key.parse::<KeyRef>()) {
            return keys.resolve(&format!("{name}@{version}"), None);
        }
        let id = match &self.statement {
            // Bytes that are no header are refused later, with the reason.
            StatementBytes::Decapsulate(bytes) => Header::parse(bytes).ok().map(|header| *header.key_id()),
            StatementBytes::Sign(_) | StatementBytes::FlipCoin(_) => None::<KeyId>,
        };
        keys.resolve(&self.key, id.as_ref())
    }

    /// The instance that answers it under a key as it is now.
    pub(crate) fn id_under(&self, key: &KeyEntry) -> InstanceId {
        InstanceId::with_seed(&key.key_id, key.epoch, &self.statement, self.seed.as_deref())
    }

    /// The same with a copy of the statement: what comes from the network is a view that keeps a whole buffer alive.
    pub(crate) fn to_owned_bytes(&self) -> Self {
        let statement = match &self.statement {
            StatementBytes::Decapsulate(bytes) => StatementBytes::Decapsulate(Bytes::copy_from_slice(bytes)),
            StatementBytes::Sign(bytes) => StatementBytes::Sign(Bytes::copy_from_slice(bytes)),
            StatementBytes::FlipCoin(bytes) => StatementBytes::FlipCoin(Bytes::copy_from_slice(bytes)),
        };
        Self { key: self.key.clone(), statement, seed: self.seed.clone(), version: self.version }
    }

    /// Whether it is for this key, of whatever version.
    pub(crate) fn is_for(&self, name: &KeyName) -> bool {
        KeyRef::is_for(&self.key, name)
    }

    /// How long its statement is.
    pub(crate) fn len(&self) -> usize {
        self.statement.as_statement().bytes().len()
    }
}
