//! What a node has stopped using because it was asked to, while the group has not decided it yet.
//!
//! Safety does not wait for a decision: who is asked to disable a key, and may be, stops using it at once, and a restart does not change
//! that. The key's own state stays what the group has decided; a frozen key is disabled whatever that says.

use theta_names::{KeyName, Version};

use super::KeyError;
use crate::codec::{Decoder, encoder};
use crate::database::{Rows as _, Table};
use crate::name::terminated;
use crate::{Store, StoreError, Transaction};

/// Limit of the reason, in bytes: an entry of the ledger has no more.
const MOST_REASON: usize = 1 << 18;

/// A key, or a version of it, that this node does not use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// The key.
    pub key: KeyName,
    /// The version; `None` for the whole key.
    pub version: Option<Version>,
    /// The generation of the change that the group is to decide.
    pub generation: u64,
    /// Who asked for it, and who approved: as the group's record will have it.
    pub reason: Vec<u8>,
}

/// The name, its end, and the version; 0 for the whole key.
fn row_of(name: &KeyName, version: Option<Version>) -> Vec<u8> {
    let mut row = terminated(name.as_str());
    row.extend_from_slice(&version.map_or(0, Version::get).to_be_bytes());
    row
}

impl Frozen {
    pub(crate) fn decode(row: &[u8], record: &[u8]) -> Result<Self, StoreError> {
        let mut decoder = Decoder::new(Table::Frozen.name(), record)?;
        let (generation, reason) = (decoder.u64()?, decoder.bytes(MOST_REASON)?.to_vec());
        let named = row.split_last_chunk::<4>().and_then(|(name, version)| {
            let name = core::str::from_utf8(name.split_last()?.1).ok()?.parse().ok()?;
            Some((name, Version::new(u32::from_be_bytes(*version))))
        });
        let (key, version) = named.ok_or_else(|| decoder.error("it is of no key"))?;
        decoder.finish(Self { key, version, generation, reason })
    }

    /// Whether it is about this version.
    #[must_use]
    pub fn covers(&self, version: Version) -> bool {
        self.version.is_none_or(|frozen| frozen == version)
    }
}

impl Store {
    /// Everything that is frozen.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn frozen(&self) -> Result<Vec<Frozen>, StoreError> {
        let rows = self.snapshot()?.all(Table::Frozen, b"")?;
        rows.iter().map(|(row, record)| Frozen::decode(row, record.expose())).collect()
    }

    /// What is frozen of one key.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn frozen_of(&self, name: &KeyName) -> Result<Vec<Frozen>, StoreError> {
        let rows = self.snapshot()?.all(Table::Frozen, &terminated(name.as_str()))?;
        rows.iter().map(|(row, record)| Frozen::decode(row, record.expose())).collect()
    }
}

impl Transaction<'_> {
    /// Freezes a key or a version of it, which this store has.
    ///
    /// # Errors
    /// [`KeyError::Unknown`], [`KeyError::NoVersion`], [`KeyError::Store`].
    pub fn freeze(&mut self, frozen: &Frozen) -> Result<(), KeyError> {
        let Frozen { key: name, version, generation, reason } = frozen;
        let key = self.key(name)?;
        if let Some(version) = *version
            && key.version(version).is_none()
        {
            return Err(KeyError::NoVersion { name: name.clone(), version });
        }
        let record = encoder(reason.len().saturating_add(16)).u64(*generation).bytes(reason).finish();
        Ok(self.rows.put(Table::Frozen, &row_of(name, *version), record)?)
    }

    /// Ends that.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn thaw(&mut self, name: &KeyName, version: Option<Version>) -> Result<(), StoreError> {
        self.rows.remove(Table::Frozen, &row_of(name, version))
    }
}
