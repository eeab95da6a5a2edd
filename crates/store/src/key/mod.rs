//! The keys of a node, in the terms of a key management service.
//!
//! A **key** is a name with one purpose. It has **versions**: rotation makes a new one, and the older ones still verify
//! and decrypt. A version has one public key for ever and **epochs**, the sharings of its secret: refreshing or
//! resharing makes a new one, which waits as *pending* beside the one in use until its holders have certified it.
//! Shares are stored apart from the rest, each sealed on its own: listing the keys opens none.

mod error;
mod frozen;
mod generation;
mod quarantined;
mod record;
mod removal;
mod used;

use theta_groups::Secret;
use theta_names::codec::{Reader, Writer};
use theta_names::{Delivery, Epoch, KeyName, KeyState, Purpose, Version};

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Table};
use crate::name::terminated;
use crate::{Store, StoreError, Transaction};

pub use error::KeyError;
pub use frozen::Frozen;
pub use generation::KeyStates;
pub(crate) use generation::decode_generation;
pub use quarantined::{MOST_QUARANTINED, Quarantined};
pub use record::{EpochRecord, KeyRecord, VersionRecord};
pub use used::USED_REMEMBERED;
pub(crate) use used::decode_until;

/// Limit of one share, in bytes: shares of RSA keys of 16,384 bits fit.
const MOST_SHARE: usize = 1 << 16;

impl Store {
    /// All keys by name.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        let rows = self.snapshot()?.all(Table::Keys, b"")?;
        rows.iter().map(|(_, record)| KeyRecord::decode(record.expose())).collect()
    }

    /// The key of this name.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn key(&self, name: &KeyName) -> Result<Option<KeyRecord>, StoreError> {
        read(&self.snapshot()?, name)
    }

    /// This node's share of one epoch of a version; `None` if it has none, or none any more.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn share(&self, name: &KeyName, version: Version, epoch: Epoch) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
        let record = self.snapshot()?.row(Table::Shares, &share_key(name, version, epoch))?;
        record.map(|record| decode_share(record.expose())).transpose()
    }
}

fn read(rows: &impl Rows, name: &KeyName) -> Result<Option<KeyRecord>, StoreError> {
    let record = rows.row(Table::Keys, name.as_str().as_bytes())?;
    record.map(|record| KeyRecord::decode(record.expose())).transpose()
}

/// name || 0 || version || epoch.
fn share_key(name: &KeyName, version: Version, epoch: Epoch) -> Vec<u8> {
    Writer::default().raw(&version_prefix(name, version)).epoch(epoch).finish()
}

fn version_prefix(name: &KeyName, version: Version) -> Vec<u8> {
    Writer::default().raw(&terminated(name.as_str())).version(version).finish()
}

impl Transaction<'_> {
    /// The key of this name, with the changes of this transaction.
    ///
    /// # Errors
    /// [`KeyError::Unknown`], [`KeyError::Store`].
    pub fn key(&self, name: &KeyName) -> Result<KeyRecord, KeyError> {
        read(&self.rows, name)?.ok_or_else(|| KeyError::Unknown(name.clone()))
    }

    fn put_key(&mut self, key: &KeyRecord) -> Result<(), KeyError> {
        Ok(self.rows.put(Table::Keys, key.name.as_str().as_bytes(), key.encode())?)
    }

    fn change_key<T>(
        &mut self,
        name: &KeyName,
        change: impl FnOnce(&mut KeyRecord) -> Result<T, KeyError>,
    ) -> Result<T, KeyError> {
        let mut key = self.key(name)?;
        let answer = change(&mut key)?;
        self.put_key(&key)?;
        Ok(answer)
    }

    /// Creates a key without versions. A name is never given twice, even after its key was destroyed.
    ///
    /// # Errors
    /// [`KeyError::Exists`], [`KeyError::Store`].
    pub fn create_key(&mut self, name: &KeyName, purpose: Purpose) -> Result<(), KeyError> {
        if read(&self.rows, name)?.is_some() {
            return Err(KeyError::Exists(name.clone()));
        }
        self.put_key(&KeyRecord::new(name.clone(), purpose))
    }

    /// Adds a version of this suite and delivery that waits for the certificate of its first epoch ([`Transaction::certify`]);
    /// returns its number.
    ///
    /// # Errors
    /// [`KeyError`]: the key is not known or destroyed, or a part is out of its range.
    pub fn begin_version(
        &mut self,
        name: &KeyName,
        kind: (&str, Delivery),
        epoch: EpochRecord,
        share: Option<Secret<Vec<u8>>>,
    ) -> Result<Version, KeyError> {
        let version = self.key(name)?.next_version;
        self.begin_numbered_version(name, version, kind, epoch, share)?;
        Ok(version)
    }

    /// As [`Transaction::begin_version`], with a number that the other holders have given: a node that was absent when
    /// older versions were made gets those later, or never.
    ///
    /// # Errors
    /// [`KeyError::KnownVersion`] for a number that is here; otherwise as [`Transaction::begin_version`].
    pub fn begin_numbered_version(
        &mut self,
        name: &KeyName,
        version: Version,
        kind: (&str, Delivery),
        epoch: EpochRecord,
        share: Option<Secret<Vec<u8>>>,
    ) -> Result<(), KeyError> {
        check_share(share.as_ref())?;
        let number = epoch.number;
        self.change_key(name, |key| {
            key.add_version(version, kind, epoch.created)?;
            key.stage(version, epoch)
        })?;
        self.put_share(name, version, number, share)
    }

    /// Adds a version that is in use at once, such as one that a dealer made; the certificate is the epoch's. Older
    /// versions no longer sign.
    ///
    /// # Errors
    /// As [`Transaction::begin_version`].
    pub fn import_version(
        &mut self,
        name: &KeyName,
        kind: (&str, Delivery),
        epoch: EpochRecord,
        share: Option<Secret<Vec<u8>>>,
    ) -> Result<Version, KeyError> {
        let (number, certificate) = (epoch.number, epoch.certificate.clone());
        let version = self.begin_version(name, kind, epoch, share)?;
        self.certify(name, version, number, &certificate)?;
        Ok(version)
    }

    /// Adds a refreshed or reshared epoch beside the one in use. It replaces an older pending one.
    ///
    /// # Errors
    /// [`KeyError::OldEpoch`] unless its number is higher than all before; otherwise as for a new version.
    pub fn stage_epoch(
        &mut self,
        name: &KeyName,
        version: Version,
        epoch: EpochRecord,
        share: Option<Secret<Vec<u8>>>,
    ) -> Result<(), KeyError> {
        check_share(share.as_ref())?;
        let number = epoch.number;
        let overtaken = self.change_key(name, |key| {
            let overtaken = key.version_mut(version)?.pending.as_ref().map(|pending| pending.number);
            key.stage(version, epoch)?;
            Ok(overtaken)
        })?;
        if let Some(overtaken) = overtaken {
            self.rows.remove(Table::Shares, &share_key(name, version, overtaken))?;
        }
        self.put_share(name, version, number, share)
    }

    /// Puts the pending epoch into use, removes the share of the epoch before with what is in quarantine of it, and makes older versions stop signing, or this one if a newer one is in use.
    /// The caller has checked the certificate.
    ///
    /// # Errors
    /// [`KeyError::NotPending`] if this epoch is not pending.
    pub fn certify(
        &mut self,
        name: &KeyName,
        version: Version,
        epoch: Epoch,
        certificate: &[u8],
    ) -> Result<(), KeyError> {
        let replaced = self.change_key(name, |key| key.certify(version, epoch, certificate))?;
        if let Some(replaced) = replaced {
            self.rows.remove(Table::Shares, &share_key(name, version, replaced.number))?;
            self.lift_epoch(name, version, replaced.number)?;
        }
        Ok(())
    }

    /// Restores a share that was lost. An existing share is not overwritten.
    ///
    /// # Errors
    /// [`KeyError::HasShare`], and [`KeyError::NoEpoch`] if the version has no such epoch or is destroyed.
    pub fn recover_share(
        &mut self,
        name: &KeyName,
        version: Version,
        epoch: Epoch,
        share: Secret<Vec<u8>>,
    ) -> Result<(), KeyError> {
        check_share(Some(&share))?;
        let mut key = self.key(name)?;
        let record = key.version_mut(version)?;
        if record.state == KeyState::Destroyed || record.epoch(epoch).is_none() {
            return Err(KeyError::NoEpoch { name: name.clone(), version, epoch });
        }
        if self.rows.row(Table::Shares, &share_key(name, version, epoch))?.is_some() {
            return Err(KeyError::HasShare { name: name.clone(), version, epoch });
        }
        self.put_share(name, version, epoch, Some(share))
    }

    /// Changes the state of a version. [`KeyState::Destroyed`] removes its shares.
    ///
    /// # Errors
    /// [`KeyError::Transition`] if that state may not follow, or a newer version prevents it.
    pub fn set_version_state(&mut self, name: &KeyName, version: Version, next: KeyState) -> Result<(), KeyError> {
        self.change_key(name, |key| key.set_version_state(version, next))?;
        if next == KeyState::Destroyed {
            self.rows.remove_all(Table::Shares, &version_prefix(name, version))?;
            self.lift_version(name, version)?;
        }
        Ok(())
    }

    /// Changes the state of a key as a whole. [`KeyState::Destroyed`] removes all its shares and leaves a tombstone.
    ///
    /// # Errors
    /// [`KeyError::Transition`] if that state may not follow.
    pub fn set_key_state(&mut self, name: &KeyName, next: KeyState) -> Result<(), KeyError> {
        self.change_key(name, |key| key.set_state(next))?;
        if next == KeyState::Destroyed {
            self.rows.remove_all(Table::Shares, &terminated(name.as_str()))?;
            self.lift(&terminated(name.as_str()))?;
        }
        Ok(())
    }

    fn put_share(
        &mut self,
        name: &KeyName,
        version: Version,
        epoch: Epoch,
        share: Option<Secret<Vec<u8>>>,
    ) -> Result<(), KeyError> {
        let Some(share) = share else { return Ok(()) };
        let record = encoder(share.expose().len()).raw(share.expose()).finish();
        Ok(self.rows.put(Table::Shares, &share_key(name, version, epoch), record)?)
    }
}

/// Refuses shares of impossible length before anything is written.
fn check_share(share: Option<&Secret<Vec<u8>>>) -> Result<(), KeyError> {
    let fits = |share: &Secret<Vec<u8>>| (1..=MOST_SHARE).contains(&share.expose().len());
    if share.is_none_or(fits) { Ok(()) } else { Err(KeyError::TooLong { what: "the share", most: MOST_SHARE }) }
}

/// Which share a row of the table is: the inverse of `share_key`.
pub(crate) fn parse_share_key(key: &[u8]) -> Option<(KeyName, Version, Epoch)> {
    let (name, sharing) = key.split_last_chunk::<12>()?;
    let name = core::str::from_utf8(name.strip_suffix(&[0])?).ok()?.parse().ok()?;
    let mut sharing = Reader::new(sharing);
    Some((name, sharing.version().ok()?, sharing.epoch().ok()?))
}

/// The share in a row of the table.
pub(crate) fn decode_share(record: &[u8]) -> Result<Secret<Vec<u8>>, StoreError> {
    Ok(Secret::new(Decoder::new(Table::Shares.name(), record)?.rest().to_vec()))
}
