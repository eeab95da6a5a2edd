//! What an application asked for, independent of the key's epoch.

use std::sync::Arc;

use bytes::Bytes;
use theta_authority::{InstanceId, ParsedStatement, Request, Seed};
use theta_custody::{KeyEntry, KeyTable, ResolveError};
use theta_names::{KeyRef, Version};
use theta_schemes::keys::KeyName;

/// What an application asked for.
#[derive(Clone)]
pub(crate) struct Asked {
    /// The key, as the application names it.
    pub(crate) key: KeyRef,
    pub(crate) statement: ParsedStatement,
    pub(crate) seed: Option<Seed>,
    /// The version that answered when the request was admitted. No other version may answer it later: that would be
    /// another public key, about which no policy was asked.
    version: Version,
}

impl Asked {
    /// A request that this version of its key answers from now on.
    pub(crate) fn of(request: Request, version: Version) -> Self {
        let (key, statement, seed) = request.into_parts();
        Self { key, statement, seed, version }
    }

    /// For an instance of a key that nobody asked for, and that answers nobody: of the statement nothing is used.
    pub(crate) fn nothing(key: &KeyEntry) -> Self {
        let (name, version) = (key.name.clone(), key.version);
        let statement = ParsedStatement::Message(Bytes::new());
        Self { key: KeyRef { name, version: Some(version) }, statement, seed: None, version }
    }

    /// The version that answers, as it is now.
    pub(crate) fn resolve(&self, keys: &KeyTable) -> Result<Arc<KeyEntry>, ResolveError> {
        keys.resolve(&KeyRef { name: self.key.name.clone(), version: Some(self.version) }, None)
    }

    /// The id of the instance that answers it under the present epoch of the key.
    pub(crate) fn id_under(&self, key: &KeyEntry) -> InstanceId {
        InstanceId::under(key, &self.statement, self.seed.as_ref())
    }

    /// A copy with its own statement: bytes from the network are a view that keeps a whole buffer alive.
    pub(crate) fn to_owned_bytes(&self) -> Self {
        Self { statement: self.statement.with_own_buffer(), ..self.clone() }
    }

    /// Whether it is for this key, in any version.
    pub(crate) fn is_for(&self, name: &KeyName) -> bool {
        self.key.name == *name
    }

    /// The length of its statement, in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.statement.len()
    }
}
