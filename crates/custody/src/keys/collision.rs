//! Finds keys that one node must not hold together, before they are stored.

use theta_schemes::Suite;
use theta_schemes::keys::{AnyPublicKey, KeyName, PublicParts};
use theta_store::{KeyRecord, Store, VersionRecord};

use super::KeyTableError;
use super::stored::misread;
use crate::CustodyError;

/// The public parts of a key, and what they are of.
type OfSuite = (Suite, PublicParts);

/// Refuses a key if the store has it already, or has its secret for another purpose, destroyed keys included: with both
/// the node would not start.
///
/// # Errors
/// [`KeyTableError::SameKey`] and [`KeyTableError::SameSecret`], which name the existing key first; [`CustodyError`] if
/// the store cannot be read.
pub fn check_new_key(store: &Store, name: &KeyName, public: &AnyPublicKey) -> Result<(), CustodyError> {
    let new = (public.suite(), public.parts());
    for record in store.keys()? {
        for version in record.versions() {
            let Some(known) = parts(&record, version)? else { continue };
            let (first, second) = (record.name.clone(), name.clone());
            if is_same_key(&known, &new) {
                return Err(KeyTableError::SameKey { first, second }.into());
            }
            if is_same_secret_for_another_purpose(&known, &new) {
                return Err(KeyTableError::SameSecret { first, second }.into());
            }
        }
    }
    Ok(())
}

/// The public parts of a version, which were checked when they were written; `None` if it has none yet.
fn parts(record: &KeyRecord, version: &VersionRecord) -> Result<Option<OfSuite>, CustodyError> {
    let Some(epoch) = version.serving.as_ref().or(version.pending.as_ref()) else { return Ok(None) };
    let wrong = |error| misread(&record.name, version.version, error);
    PublicParts::decode(&epoch.public).map(Some).map_err(wrong)
}

/// Whether both are the same key, in whatever sharing: both have one id, which follows from these.
fn is_same_key((suite, one): &OfSuite, (other_suite, other): &OfSuite) -> bool {
    suite == other_suite && one.public_key() == other.public_key()
}

/// Whether both have one secret for two purposes: an answer for one purpose could then help to attack the other.
fn is_same_secret_for_another_purpose((suite, one): &OfSuite, (other_suite, other): &OfSuite) -> bool {
    suite.purpose() != other_suite.purpose() && one.public_key() == other.public_key()
}
