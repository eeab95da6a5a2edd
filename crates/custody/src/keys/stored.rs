//! Reads keys from the store into the live table, and writes them back.

use std::sync::Arc;

use theta_names::{Delivery, Epoch, Holders, KeyName, KeyRef, KeyState, NodeId, Version};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, PublicBytesError, ShareBytesError};
use theta_store::{EpochRecord, KeyRecord, Store, VersionRecord};

use super::quarantines::new_stock;
use super::{KeyEntry, KeyTable, KeyTableError, check_new_key};
use crate::CustodyError;
use crate::codec::{numbers, parties};

/// A key as a dealer made it, for one node.
#[derive(Clone, Copy, Debug)]
pub struct DealtKey<'a> {
    /// Its name.
    pub name: &'a KeyName,
    /// Its public part.
    pub public: &'a AnyPublicKey,
    /// The node's share; `None` for a node that holds none.
    pub share: Option<&'a AnyKeyShare>,
    /// Who makes shares for a request.
    pub delivery: Delivery,
    /// Which node holds which share.
    pub holders: &'a Holders,
    /// When it was made, in seconds since 1970.
    pub created: u64,
}

/// Stores a dealt key at a node that does not run: as version 1 of a new key, or as the next version of an existing
/// one. Returns the version's number.
///
/// # Errors
/// [`CustodyError`]: the parts do not belong together, the name is that of a destroyed key, the store has the key or its secret
/// already, or the store fails.
pub fn import_dealt(store: &Store, key: &DealtKey<'_>) -> Result<Version, CustodyError> {
    let DealtKey { name, public, share, delivery, holders, created } = *key;
    let suite = public.suite();
    let misfit = |reason| KeyTableError::UnsupportedDelivery { name: name.clone(), reason };
    suite.check_delivery(delivery).map_err(misfit)?;
    let no_majority = |reason| KeyTableError::UnfitThreshold { name: name.clone(), reason };
    suite.check_threshold(public.threshold(), delivery).map_err(no_majority)?;
    if let Some(share) = share {
        // A mismatch of files shows now, and not when the node starts.
        AnyKeyShare::from_bytes(share.to_bytes().expose(), public).map_err(|error| misfit_share(name, None, error))?;
    }
    check_new_key(store, name, public)?;
    let epoch = epoch_of(Epoch::FIRST, public, holders.nodes(), Vec::new(), created);
    let share = share.map(AnyKeyShare::to_bytes);
    store.write(|transaction| {
        let known = store.key(name)?.is_some();
        if !known {
            transaction.create_key(name, suite.purpose())?;
        }
        Ok(transaction.import_version(name, (suite.name(), delivery), epoch, share)?)
    })
}

/// The key table of a store whose node does not run. A running node's is [`crate::Custodian::keys`].
///
/// # Errors
/// [`CustodyError`] if the store cannot be read, or its keys do not go together.
pub fn read_keys(store: &Store, local: NodeId) -> Result<KeyTable, CustodyError> {
    let table = KeyTable::of_node(local);
    for record in store.keys()? {
        let entries = entries(store, &record, local, &[])?;
        let Some(name) = entries.first().map(|entry| entry.name.clone()) else { continue };
        table.check(&entries)?;
        table.put(&name, entries);
    }
    Ok(table)
}

/// The versions of a key that have public material, in ascending order. Those that `before` has at the same epoch keep
/// their stock; others get a new one, in which there is nothing but what is known of quarantines.
pub(crate) fn entries(
    store: &Store,
    record: &KeyRecord,
    local: NodeId,
    before: &[Arc<KeyEntry>],
) -> Result<Vec<Arc<KeyEntry>>, CustodyError> {
    let name = record.name.clone();
    let newest = || record.versions().iter().rev().find(|version| version.serving.is_some());
    let primary = record.primary().or_else(newest).map(|version| version.version);
    let generation = store.key_generation(&record.name)?;
    let stopped = store.frozen_of(&record.name)?;
    let mut entries = Vec::new();
    for version in record.versions() {
        let Some(epoch) = version.serving.as_ref().or(version.pending.as_ref()) else { continue };
        let (public, share) = parts(store, record, version, epoch)?;
        let error = |error| KeyTableError::HolderList { name: name.clone(), error };
        let holders = Holders::new(parties(&epoch.holders)).map_err(error)?;
        let decided = record.effective_state(version);
        let known = before.iter().find(|entry| entry.version == version.version && entry.epoch == epoch.number);
        // The end of the shares is that of the quarantines, too.
        let known = known.filter(|_| decided != KeyState::Destroyed);
        let stock = match known {
            // What was made with a share goes with it: those who have the presignatures of one signature have the key.
            Some(entry) if share.is_some() => Arc::clone(&entry.stock),
            _ => new_stock(store, &name, (version.version, epoch.number), known.map(|entry| &*entry.stock))?,
        };
        let frozen = stopped.iter().any(|stopped| stopped.covers(version.version));
        let entry = KeyEntry {
            name: name.clone(),
            version: version.version,
            epoch: epoch.number,
            state: if frozen { decided.and(KeyState::Disabled) } else { decided },
            frozen,
            generation,
            primary: primary == Some(version.version),
            share: share.map(Arc::new),
            key_id: *public.key_id(),
            suite: public.suite(),
            delivery: version.delivery,
            holders,
            stock,
            public,
        };
        if entry.share.as_ref().is_some_and(|share| entry.holders.node_of(share.index()) != Some(local)) {
            let key = KeyRef { name, version: Some(version.version) };
            return Err(CustodyError::OtherNode { key, node: local });
        }
        entries.push(Arc::new(entry));
    }
    Ok(entries)
}

/// Public key and share of one epoch, checked against each other.
fn parts(
    store: &Store,
    record: &KeyRecord,
    version: &VersionRecord,
    epoch: &EpochRecord,
) -> Result<(AnyPublicKey, Option<AnyKeyShare>), CustodyError> {
    let wrong = |error| misfit_share(&record.name, Some(version.version), error);
    let public =
        AnyPublicKey::from_bytes(&epoch.public).map_err(|error| misread(&record.name, version.version, error))?;
    if record.effective_state(version) == KeyState::Destroyed {
        return Ok((public, None));
    }
    let Some(share) = store.share(&record.name, version.version, epoch.number)? else { return Ok((public, None)) };
    let share = AnyKeyShare::from_bytes(share.expose(), &public).map_err(wrong)?;
    Ok((public, Some(share)))
}

fn misfit_share(name: &KeyName, version: Option<Version>, error: ShareBytesError) -> CustodyError {
    CustodyError::Share { key: KeyRef { name: name.clone(), version }, error: Box::new(error) }
}

/// The public part of a version that does not decode.
pub(super) fn misread(name: &KeyName, version: Version, error: PublicBytesError) -> CustodyError {
    let key = KeyRef { name: name.clone(), version: Some(version) };
    CustodyError::Public { key, error: Box::new(error) }
}

/// The store's record of a sharing.
pub(crate) fn epoch_of(
    number: Epoch,
    public: &AnyPublicKey,
    holders: &[NodeId],
    certificate: Vec<u8>,
    created: u64,
) -> EpochRecord {
    let (threshold, public) = (public.threshold(), public.to_bytes());
    EpochRecord { number, k: threshold.k(), n: threshold.n(), holders: numbers(holders), public, certificate, created }
}
