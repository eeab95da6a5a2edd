//! What a client does before it calls a node a liar, and what it asks before it uses a key without any node.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use theta_names::{KeyRef, KeyState, NodeId, Version};
use theta_schemes::keys::{AnyPublicKey, KeyName};
use tokio::time::Instant;

use crate::{Client, ClientError, Problem};

/// A key's version and its state, on which so many nodes agree that one of them is honest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgreedState {
    /// The version.
    pub version: Version,
    /// The id of its public key.
    pub key_id: Bytes,
    /// Its state.
    pub state: KeyState,
}

/// Which key an answer has to fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Under<'a> {
    client: &'a Client,
    key: &'a KeyRef,
}

impl<'a> Under<'a> {
    pub(crate) const fn new(client: &'a Client, key: &'a KeyRef) -> Self {
        Self { client, key }
    }

    /// How many holders the key takes, as far as this client knows it.
    pub(crate) fn threshold(&self) -> Option<u16> {
        Some(self.client.known().find(self.key)?.public.threshold().k())
    }

    /// What follows from an answer under the key: whichever of its last epochs it was made in, since what was proven in an older one stays
    /// proven. An answer under another version than the one that is meant comes from a node that is behind or ahead.
    pub(crate) fn check<T>(&self, check: impl Fn(&AnyPublicKey) -> Result<T, String>) -> Result<T, Problem> {
        let known = self.client.known();
        let meant = self.key.version.or_else(|| known.primary(&self.key.name));
        let mut first = None;
        for candidate in known.recent(self.key) {
            match (check(&candidate.public), candidate.version) {
                (Ok(_), Some(version)) if Some(version) != meant => return Err(Problem::OtherVersion(version)),
                (Ok(value), _) => return Ok(value),
                (Err(reason), _) => first = first.or(Some(reason)),
            }
        }
        Err(Problem::FalseAnswer(first.unwrap_or_else(|| "there is no key that it could be checked with".to_owned())))
    }

    /// Learns what is new in the ledger.
    pub(crate) async fn follow(&self) {
        self.client.learn_since(Instant::now(), true).await;
    }

    /// Learns what the key's holders say of it. Some keys are not in the ledger, since few nodes hold them, and the others come into it a
    /// moment after they have changed. Says whether they may tell it: where a rule denies it, nobody can be called a liar.
    pub(crate) async fn ask_holders(&self) -> bool {
        let told = self.client.renew_public_key(self.key).await;
        if let Err(error) = &told {
            tracing::debug!(key = %self.key, %error, "the nodes do not tell the public key");
        }
        !matches!(told, Err(ClientError::Denied { .. }))
    }

    /// Learns what is in the ledger, if there was no other reason to look there lately.
    pub(crate) async fn glance(&self) {
        self.client.learn_since(Instant::now(), false).await;
    }
}

impl Client {
    /// In which state the versions of a key are, according to as many nodes as the group's k, so that one of them is honest. A version on
    /// which so many do not agree is left out.
    ///
    /// # Errors
    /// [`ClientError`] if fewer than k nodes list their keys (which takes the permission `keys.list`).
    pub async fn key_states(&self, name: &KeyName) -> Result<Vec<AgreedState>, ClientError> {
        const OPERATION: &str = "read the key's state";
        let (listed, problems) = self.list_keys().await;
        if self.group().nodes().len().saturating_sub(problems.len()) < self.quorum() {
            return Err(ClientError::NoAnswer { operation: OPERATION, nodes: problems });
        }
        let mut told: BTreeMap<AgreedState, BTreeSet<NodeId>> = BTreeMap::new();
        for key in listed.into_iter().filter(|key| key.info.name == name.as_str()) {
            if let (Some(version), Some(state)) = (Version::new(key.info.version), state(&key.info.state)) {
                told.entry(AgreedState { version, key_id: key.info.key_id, state }).or_default().extend(key.nodes);
            }
        }
        let agreed = told.into_iter().filter(|(_, nodes)| nodes.len() >= self.quorum());
        Ok(agreed.map(|(told, _)| told).collect())
    }
}

fn state(name: &str) -> Option<KeyState> {
    KeyState::ALL.into_iter().find(|state| state.name() == name)
}
