//! Histories that grow by certified entries.

use std::collections::BTreeMap;

use theta_ledger::{CertifiedEntry, Digest, LedgerError};

/// The digests of entries by their height.
pub(super) type Heads = BTreeMap<u64, Digest>;

/// A history that grows by certified entries.
pub(super) trait History: Send {
    /// The number of the last entry.
    fn height(&self) -> u64;
    /// The digest of the last entry.
    fn head(&self) -> Option<Digest>;
    /// The digest that an entry has in this ledger.
    fn digest(&self, certified: &CertifiedEntry) -> Option<Digest>;
    /// Takes the next entry, if it is certified.
    fn take(&mut self, certified: CertifiedEntry) -> Result<(), LedgerError>;
}
