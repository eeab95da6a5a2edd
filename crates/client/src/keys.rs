//! Public keys: from files, or from the nodes if k of them agree.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{PoisonError, RwLock},
};

use theta_network::PeerId;
use theta_schemes::keys::{AnyPublicKey, KeyName};
use theta_wire::v1;
use tonic::Request;

use crate::{
    Client, ClientError, Problem,
    fan_out::{self, Problems},
};

/// Keys that are trusted already.
#[derive(Debug)]
pub(crate) struct Cache(RwLock<HashMap<KeyName, AnyPublicKey>>);

impl Cache {
    pub(crate) fn new(keys: impl IntoIterator<Item = (KeyName, AnyPublicKey)>) -> Self {
        Self(RwLock::new(keys.into_iter().collect()))
    }

    fn get(&self, name: &KeyName) -> Option<AnyPublicKey> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn insert(&self, name: KeyName, key: AnyPublicKey) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name, key);
    }
}

/// A key, and the nodes that say they hold a share of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedKey {
    /// The key as the nodes describe it.
    pub info: v1::KeyInfo,
    /// Who lists it exactly so.
    pub nodes: Vec<PeerId>,
}

impl Client {
    /// The public key of this name: from the client's folder, or else from the nodes, if k of them give the same.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if there is no such key, [`ClientError::KeyDisagreement`] if too few nodes agree.
    pub async fn public_key(&self, name: &str) -> Result<AnyPublicKey, ClientError> {
        let name: KeyName = name.parse()?;
        if let Some(key) = self.0.keys.get(&name) {
            return Ok(key);
        }
        let key = self.ask_public_key(&name).await?;
        self.0.keys.insert(name, key.clone());
        Ok(key)
    }

    async fn ask_public_key(&self, name: &KeyName) -> Result<AnyPublicKey, ClientError> {
        let patience = self.0.options.timeout;
        let mut replies = fan_out::ask_all(&self.0.connections, patience, |connection| {
            let mut request = Request::new(v1::GetPublicKeyRequest { key: name.to_string() });
            request.set_timeout(patience);
            async move { Ok(connection.protocol().get_public_key(request).await?.into_inner().public_key_file) }
        });
        let mut problems = Problems::new(&self.0.connections);
        let mut votes: BTreeMap<String, Vec<PeerId>> = BTreeMap::new();
        while let Some((node, reply)) = replies.recv().await {
            match reply {
                Ok(text) => {
                    let supporters = votes.entry(text.clone()).or_default();
                    supporters.push(node);
                    if supporters.len() >= self.quorum() {
                        match AnyPublicKey::from_text(&text) {
                            Ok((given, key)) if given == *name => return Ok(key),
                            Ok((given, _)) => problems.add(node, false_answer(format!("the key is named {given}"))),
                            Err(error) => problems.add(node, false_answer(error.to_string())),
                        }
                    }
                }
                Err(problem) => problems.add(node, problem),
            }
            if let Some(reason) = problems.blame_for_request(self.quorum()) {
                return Err(ClientError::Refused { operation: "get public key", reason });
            }
        }
        for (text, supporters) in votes {
            let id = AnyPublicKey::from_text(&text)
                .map_or_else(|error| error.to_string(), |(_, key)| format!("gives key {}", key.key_id().abbreviated()));
            supporters.into_iter().for_each(|node| problems.add(node, false_answer(id.clone())));
        }
        let needed = self.0.group.threshold();
        Err(ClientError::KeyDisagreement { name: name.to_string(), needed, nodes: problems.all() })
    }

    /// The keys that the nodes hold, by name, each with the nodes that list it; more than one entry of a name means that
    /// the nodes disagree. Nodes that did not answer come second.
    pub async fn list_keys(&self) -> (Vec<ListedKey>, Vec<crate::NodeProblem>) {
        let patience = self.0.options.timeout;
        let mut replies = fan_out::ask_all(&self.0.connections, patience, |connection| async move {
            let mut request = Request::new(v1::ListKeysRequest {});
            request.set_timeout(patience);
            Ok(connection.protocol().list_keys(request).await?.into_inner().keys)
        });
        let mut problems = Problems::new(&self.0.connections);
        let mut listed: Vec<ListedKey> = Vec::new();
        while let Some((node, reply)) = replies.recv().await {
            match reply {
                Err(problem) => problems.add(node, problem),
                Ok(keys) => {
                    for info in keys {
                        match listed.iter_mut().find(|key| key.info == info) {
                            Some(key) => key.nodes.push(node),
                            None => listed.push(ListedKey { info, nodes: vec![node] }),
                        }
                    }
                }
            }
        }
        listed.iter_mut().for_each(|key| key.nodes.sort_unstable());
        listed.sort_by(|a, b| a.info.name.cmp(&b.info.name));
        (listed, problems.all())
    }
}

fn false_answer(reason: String) -> Problem {
    Problem::FalseAnswer(reason)
}
