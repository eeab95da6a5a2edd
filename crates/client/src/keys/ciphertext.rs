//! The public key that a ciphertext names by its id.

use std::{cmp::Reverse, collections::BTreeMap};

use theta_names::{KeyRef, Version};
use theta_schemes::keys::{AnyPublicKey, KeyId};
use tokio::time::Instant;

use super::known::Untold;
use crate::{Client, ClientError};

/// How many versions that nodes list with the id are asked for: one is right, and each liar may list another.
const MOST_VERSIONS: usize = 8;

impl Client {
    /// The key of this id, if this client knows it, the ledger has it, or enough holders give it under this name; `None` if the client may not ask
    /// for it. The id alone makes it no key of the group: whoever made the ciphertext may have made a key as well.
    ///
    /// # Errors
    /// [`ClientError::NoSuchKey`] if there is none, and otherwise why it could not be learned.
    pub(crate) async fn key_of_ciphertext(
        &self,
        name: &KeyRef,
        id: &KeyId,
    ) -> Result<Option<AnyPublicKey>, ClientError> {
        let known = self.known();
        if let Some(key) = known.of_id(id) {
            return Ok(Some(key.public));
        }
        let text = name.to_string();
        let without = |why| match why {
            Untold::Denied => Ok(None),
            Untold::Absent => Err(ClientError::NoSuchKey { name: text.clone(), id: id.abbreviated() }),
        };
        if let Some(why) = known.untold(&text, id) {
            return without(why);
        }
        self.learn_since(Instant::now(), false).await;
        if let Some(key) = known.of_id(id) {
            return Ok(Some(key.public));
        }
        let why = match self.told_key_of(name, id).await {
            Ok(Some(public)) => return Ok(Some(public)),
            Ok(None) => Untold::Absent,
            Err(ClientError::Denied { .. }) => Untold::Denied,
            Err(error) => return Err(error),
        };
        known.note_untold(text.clone(), *id, why);
        without(why)
    }

    /// The key as its holders tell it: the version that is meant, or else the one that nodes list with this id.
    async fn told_key_of(&self, name: &KeyRef, id: &KeyId) -> Result<Option<AnyPublicKey>, ClientError> {
        let meant = self.told_if(name, id).await?;
        if meant.is_some() || name.version.is_some() {
            return Ok(meant);
        }
        let (listed, _) = self.list_keys().await;
        let of_id = listed
            .iter()
            .filter(|key| key.info.name == name.name.as_str() && key.info.key_id.as_ref() == id.as_bytes().as_slice());
        // What nodes list is a hint: the version is believed as any key is. What most list comes first.
        let mut tellers: BTreeMap<Version, usize> = BTreeMap::new();
        for key in of_id {
            if let Some(version) = Version::new(key.info.version) {
                *tellers.entry(version).or_default() += key.nodes.len();
            }
        }
        let mut versions: Vec<(Version, usize)> = tellers.into_iter().collect();
        versions.sort_by_key(|(_, nodes)| Reverse(*nodes));
        for (version, _) in versions.into_iter().take(MOST_VERSIONS) {
            let named = KeyRef { name: name.name.clone(), version: Some(version) };
            match self.told_if(&named, id).await {
                Ok(None) => {}
                Err(error @ ClientError::Denied { .. }) => return Err(error),
                Err(error) => tracing::debug!(key = %named, %error, "the nodes do not tell the public key"),
                told => return told,
            }
        }
        Ok(None)
    }

    /// The key of this name, if enough holders agree on it and it has this id.
    async fn told_if(&self, name: &KeyRef, id: &KeyId) -> Result<Option<AnyPublicKey>, ClientError> {
        let public = self.ask_public_key(name).await?;
        let is_it = public.key_id() == id;
        if is_it {
            self.known().insert(name.to_string(), public.clone());
        }
        Ok(is_it.then_some(public))
    }
}
