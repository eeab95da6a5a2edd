//! The long-term secret of this node's identity in ceremonies.

use theta_groups::Secret;

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Table};
use crate::{Store, StoreError, Transaction};

const CEREMONIES: &[u8] = b"ceremonies";

impl Store {
    /// Draws 32 secret bytes from the operating system, which are independent of everything that is stored.
    ///
    /// # Errors
    /// [`StoreError::Randomness`].
    pub fn draw_secret(&self) -> Result<Secret<[u8; 32]>, StoreError> {
        self.chance().secret()
    }

    /// The 32 secret bytes from which the node's signing key for ceremonies is derived; `None` if none was ever stored.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn identity(&self) -> Result<Option<Secret<[u8; 32]>>, StoreError> {
        let record = self.snapshot()?.row(Table::Identity, CEREMONIES)?;
        record.map(|record| decode_identity(CEREMONIES, record.expose())).transpose()
    }

    /// Stores the secret from which the node's signing key for ceremonies is derived, in place of the present one.
    /// Backups contain it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn set_identity(&self, secret: &Secret<[u8; 32]>) -> Result<(), StoreError> {
        self.write(|transaction| transaction.set_identity(secret))
    }
}

impl Transaction<'_> {
    /// As [`Store::set_identity`].
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn set_identity(&mut self, secret: &Secret<[u8; 32]>) -> Result<(), StoreError> {
        self.rows.put(Table::Identity, CEREMONIES, encoder(32).raw(secret.expose()).finish())
    }
}

pub(crate) fn decode_identity(key: &[u8], record: &[u8]) -> Result<Secret<[u8; 32]>, StoreError> {
    let mut decoder = Decoder::new(Table::Identity.name(), record)?;
    if key != CEREMONIES {
        return Err(decoder.error("an identity for nothing that is known"));
    }
    let mut secret = Secret::new([0; 32]);
    secret.expose_mut().copy_from_slice(decoder.take(32)?);
    decoder.finish(secret)
}
