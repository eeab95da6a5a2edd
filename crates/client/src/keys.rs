//! Public keys: from files, or from the nodes if enough of the key's holders agree.

pub(crate) mod backup;
mod belief;
pub(crate) mod ceremonies;
mod ciphertext;
pub(crate) mod known;
mod listed;
pub(crate) mod renewal;
pub(crate) mod states;

use std::{collections::HashMap, time::Duration};

use prost::Message as _;
use theta_keyfiles::PublicKeyText as _;
use theta_names::{KeyRef, NodeId};
use theta_schemes::keys::AnyPublicKey;
use theta_wire::v1;
use tokio::time::{self, Instant};

use crate::{
    Client, ClientError, Problem,
    fan_out::{self, Problems},
};

pub use listed::ListedKey;

use belief::{Belief, Told};
use listed::{MOST_LISTED, MOST_LISTED_BYTES, MOST_TOLD_BYTES, Own};

/// The method that lists keys.
const LIST: &str = "/theta.v1.ThresholdProtocol/ListKeys";
/// How long the other nodes have to contradict after enough nodes have told the same key.
const CONTRADICTIONS: Duration = Duration::from_secs(1);
/// How long further lists may take after so many came that they have every version that could be believed.
const LAST_LISTS: Duration = Duration::from_secs(1);
/// What the nodes are asked for a public key by.
const GET: &str = "get public key";

/// Why the nodes did not tell a public key.
struct NotTold {
    error: ClientError,
    /// Whether the policies of as many nodes as the group's k deny it for good, so that an honest one does.
    forbidden: bool,
}

/// The lists of nodes, in the order in which they came, and the failures of the others.
type Lists = (Vec<(NodeId, Vec<v1::KeyInfo>)>, Problems);

impl Client {
    /// The public key of this name, or of `NAME@VERSION`: as the group's ledger has it, or from the client's folder, or else from the
    /// nodes. Nodes are believed if at least max(group k, key k) holders of the key give the same one, and fewer nodes than the group's
    /// k another one. A client that knows the key asks nobody, and so may not know yet of a new version: see [`Client::renew`].
    ///
    /// # Errors
    /// [`ClientError::Refused`] if there is no such key, [`ClientError::KeyDisagreement`] if too few nodes agree.
    pub async fn public_key(&self, name: &str) -> Result<AnyPublicKey, ClientError> {
        let key: KeyRef = name.parse()?;
        if let Some(known) = self.known().find(&key) {
            return Ok(known.public);
        }
        self.learn_since(Instant::now(), false).await;
        match self.known().find(&key) {
            Some(known) => Ok(known.public),
            None => self.renew_public_key(&key).await,
        }
    }

    /// The text of the `.pub` file on which the key's holders agree, even if the client's folder has another one.
    ///
    /// # Errors
    /// As [`Client::public_key`].
    pub async fn public_key_file(&self, name: &str) -> Result<String, ClientError> {
        let key: KeyRef = name.parse()?;
        Ok(self.renew_public_key(&key).await?.to_text(&key.name))
    }

    /// Asks the nodes, and keeps the key if enough of them agree.
    pub(crate) async fn renew_public_key(&self, key: &KeyRef) -> Result<AnyPublicKey, ClientError> {
        let public = self.ask_public_key(key).await?;
        self.known().insert(key.to_string(), public.clone());
        Ok(public)
    }

    async fn ask_public_key(&self, key: &KeyRef) -> Result<AnyPublicKey, ClientError> {
        self.ask_holders(key, false).await.map_err(|untold| untold.error)
    }

    /// Asks the nodes for the key. `hear_all`: also when too few are left that could tell it, until it is known whether as many nodes as the
    /// group's k deny it, one of which is honest.
    async fn ask_holders(&self, key: &KeyRef, hear_all: bool) -> Result<AnyPublicKey, NotTold> {
        let (patience, enclosed, name) = (self.shared.options.timeout, self.enclose_token(), &key.name);
        let known = self.known().given(&key.to_string());
        let connections = self.connections();
        let mut replies = fan_out::ask_all(&connections, patience, |connection| {
            let request = enclosed.request(&connection, v1::GetPublicKeyRequest { key: key.to_string() }, patience);
            async move {
                let mut protocol = connection.protocol().max_decoding_message_size(MOST_TOLD_BYTES);
                Ok(protocol.get_public_key(request).await?.into_inner())
            }
        });
        let mut problems = Problems::new(&connections);
        let (mut told, mut deadline) = (Told::default(), None);
        loop {
            // Wait until all nodes have answered, or had the time to contradict.
            let next = match deadline {
                None => replies.recv().await,
                Some(deadline) => time::timeout_at(deadline, replies.recv()).await.unwrap_or_default(),
            };
            let Some((node, reply)) = next else { break };
            match reply.map(|answer| told.take(node, name, answer)) {
                Ok(Ok(())) => {}
                Ok(Err(wrong)) => problems.add(node, Problem::FalseAnswer(wrong)),
                Err(problem) => problems.add(node, problem),
            }
            if let Belief::Key(_) = told.belief(self.quorum(), known.as_ref()) {
                deadline = deadline.or_else(|| Some(Instant::now() + CONTRADICTIONS));
            } else if let Some(error) = problems.hopeless(GET, self.quorum()) {
                let forbidden = problems.forbidding() >= self.quorum();
                if forbidden || !hear_all || !matches!(error, ClientError::Denied { .. }) {
                    return Err(NotTold { error, forbidden });
                }
            }
        }
        match told.belief(self.quorum(), known.as_ref()) {
            Belief::Key(public) => {
                for (node, words) in told.against(&public) {
                    tracing::warn!(%node, %key, "a node contradicts the holders of the key: it {words}");
                }
                Ok(public)
            }
            Belief::Open(needed) => {
                if let Some(error) = problems.hopeless(GET, self.quorum()) {
                    return Err(NotTold { error, forbidden: false });
                }
                told.words().for_each(|(node, words)| problems.add(node, Problem::Unconfirmed(words)));
                let needed = u16::try_from(needed).unwrap_or(u16::MAX);
                let (name, dispute) = (key.to_string(), told.dispute(self.quorum()));
                let error = ClientError::KeyDisagreement { name, needed, dispute, nodes: problems.all() };
                Err(NotTold { error, forbidden: false })
            }
        }
    }

    /// The versions of keys that the nodes know, by name and version, each with the nodes that list it. Several entries of
    /// one version mean that the nodes disagree. The second value has the nodes that did not answer.
    pub async fn list_keys(&self) -> (Vec<ListedKey>, Vec<crate::NodeProblem>) {
        self.list_keys_within(self.shared.options.timeout).await
    }

    /// The same for callers that do not wait for slow nodes: a node that does not answer for so long is left out.
    pub async fn list_keys_within(&self, patience: Duration) -> (Vec<ListedKey>, Vec<crate::NodeProblem>) {
        let (lists, problems) = self.key_lists(patience).await;
        let mut listed: HashMap<Vec<u8>, ListedKey> = HashMap::new();
        for (node, mut info) in
            lists.into_iter().flat_map(|(node, keys)| keys.into_iter().map(move |info| (node, info)))
        {
            let own = Own::of(&mut info);
            let key = listed.entry(info.encode_to_vec()).or_insert_with(|| ListedKey { info, ..ListedKey::default() });
            key.add(node, own);
        }
        let mut listed: Vec<ListedKey> = listed.into_values().collect();
        for key in &mut listed {
            key.nodes.sort_unstable();
            key.held.sort_unstable();
            key.stocks.sort_unstable_by_key(|(node, _)| *node);
        }
        // Of what they disagree on, the nodes with the smallest numbers come first.
        listed.sort_by(|a, b| (&a.info.name, a.info.version, &a.nodes).cmp(&(&b.info.name, b.info.version, &b.nodes)));
        (listed, problems.all())
    }

    /// What each node lists, each version once, in the order of the answers, and the failures of the others.
    async fn key_lists(&self, patience: Duration) -> Lists {
        self.some_key_lists(patience, usize::MAX).await
    }

    /// The same without those that come more than a moment after `enough` are here.
    async fn some_key_lists(&self, patience: Duration, enough: usize) -> Lists {
        let enclosed = self.enclose_token();
        let connections = self.connections();
        let mut replies = fan_out::ask_all(&connections, patience, |connection| {
            let request = enclosed.request(&connection, v1::ListKeysRequest {}, patience);
            async move { listed::parse(connection.list::<_, MOST_LISTED>(LIST, request, MOST_LISTED_BYTES).await?) }
        });
        let (mut lists, mut problems, mut deadline) = (Vec::new(), Problems::new(&connections), None);
        loop {
            let next = match deadline {
                None => replies.recv().await,
                Some(deadline) => time::timeout_at(deadline, replies.recv()).await.unwrap_or_default(),
            };
            match next {
                Some((node, Err(problem))) => problems.add(node, problem),
                Some((node, Ok(keys))) => lists.push((node, keys)),
                None => return (lists, problems),
            }
            if lists.len() >= enough {
                deadline = deadline.or_else(|| Some(Instant::now() + LAST_LISTS));
            }
        }
    }
}
