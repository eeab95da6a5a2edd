//! A key taken out of a store, by whoever keeps the store: the way back from keys that cannot be together.

use theta_names::KeyName;

use super::{KeyError, KeyRecord};
use crate::Transaction;
use crate::database::Table;
use crate::name::terminated;

impl Transaction<'_> {
    /// Removes a key with all its versions and shares, and gives what is known of it. Unlike a destroyed key it leaves no
    /// tombstone. What must not happen twice stays as it is: the slots that were signed under the name, and the generation of
    /// the last change of its state, so that no old consent is of use against another key of that name.
    ///
    /// # Errors
    /// [`KeyError::Unknown`], [`KeyError::Store`].
    pub fn remove_key(&mut self, name: &KeyName) -> Result<KeyRecord, KeyError> {
        let key = self.key(name)?;
        self.rows.remove(Table::Keys, name.as_str().as_bytes())?;
        self.rows.remove_all(Table::Shares, &terminated(name.as_str()))?;
        Ok(key)
    }
}
