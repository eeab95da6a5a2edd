//! Removing a key from a store, as its operator may: this resolves keys that cannot be together.

use theta_names::KeyName;

use super::{KeyError, KeyRecord};
use crate::Transaction;
use crate::database::Table;
use crate::name::terminated;

impl Transaction<'_> {
    /// Removes a key with all its versions and shares; returns its record. Unlike a destroyed key it leaves no
    /// tombstone. Records of what must not happen twice stay: the slots that were signed under the name, and the
    /// generation of the last change of its state, so that no old consent is valid for another key of that name.
    ///
    /// # Errors
    /// [`KeyError::Unknown`], [`KeyError::Store`].
    pub fn remove_key(&mut self, name: &KeyName) -> Result<KeyRecord, KeyError> {
        let key = self.key(name)?;
        self.rows.remove(Table::Keys, name.as_str().as_bytes())?;
        self.rows.remove_all(Table::Shares, &terminated(name.as_str()))?;
        self.rows.remove_all(Table::Frozen, &terminated(name.as_str()))?;
        self.lift(&terminated(name.as_str()))?;
        Ok(key)
    }
}
