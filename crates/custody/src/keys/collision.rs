//! Finds keys that one node must not hold together, before they are stored.

use theta_keyfiles::{KeySummary, PublicKeyText as _};
use theta_schemes::keys::{AnyPublicKey, KeyName};
use theta_store::{KeyRecord, Store, VersionRecord};

use super::KeyTableError;
use super::stored::{content, not_text};
use crate::CustodyError;

/// Refuses a key if the store has it already, or has its secret for another purpose, destroyed keys included: with both
/// the node would not start.
///
/// # Errors
/// [`KeyTableError::SameKey`] and [`KeyTableError::SameSecret`], which name the existing key first; [`CustodyError`] if
/// the store cannot be read.
pub fn check_new_key(store: &Store, name: &KeyName, public: &AnyPublicKey) -> Result<(), CustodyError> {
    let new = KeySummary::of_text(&public.to_text(name)).map_err(|error| content(name, None, error))?;
    for record in store.keys()? {
        for version in record.versions() {
            let Some(known) = summary(&record, version)? else { continue };
            let (first, second) = (record.name.clone(), name.clone());
            if known.is_same_key(&new) {
                return Err(KeyTableError::SameKey { first, second }.into());
            }
            if known.is_same_secret_for_another_purpose(&new) {
                return Err(KeyTableError::SameSecret { first, second }.into());
            }
        }
    }
    Ok(())
}

/// What distinguishes a version from others, in all its epochs; `None` if it has no public material yet.
fn summary(record: &KeyRecord, version: &VersionRecord) -> Result<Option<KeySummary>, CustodyError> {
    let Some(epoch) = version.serving.as_ref().or(version.pending.as_ref()) else { return Ok(None) };
    let wrong = |error| content(&record.name, Some(version.version), error);
    let text = core::str::from_utf8(&epoch.public).map_err(|_| wrong(not_text()))?;
    KeySummary::of_text(text).map(Some).map_err(wrong)
}
