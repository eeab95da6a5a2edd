//! The public keys that ciphertexts name by their ids.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use theta_names::{KeyRef, Version};
use theta_schemes::keys::{AnyPublicKey, KeyId};
use theta_wire::v1;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tonic::Code;

use super::{Lists, NotTold, known::Untold};
use crate::{Client, ClientError};

/// How many versions that nodes list with an id are asked for: one is right, and each liar may list another.
const MOST_VERSIONS: usize = 8;
/// How many versions are asked for altogether, for all ciphertexts of a call: those come first that most nodes list.
const MOST_ASKED: usize = 256;
/// How many of them at one time.
const AT_ONCE: usize = 8;
/// What is done here, as errors have it.
const OPERATION: &str = "look up the key of the ciphertext";

/// The key of a ciphertext; `None` if the client may not ask for it.
pub(crate) type Sought = Result<Option<AnyPublicKey>, ClientError>;

/// Why a key was not found.
enum Unfound {
    Untold(Untold),
    Failed(ClientError),
}

/// What was found of each id.
type Found = BTreeMap<KeyId, Result<AnyPublicKey, Unfound>>;

impl Client {
    /// The key of this name that a ciphertext names by its id, in whichever version has it: as this client knows it, or as enough holders tell it;
    /// `None` if this client may not ask for keys.
    ///
    /// # Errors
    /// [`ClientError::NoSuchKey`] if no version of the name has the id, and otherwise why that could not be learned.
    pub async fn key_with_id(&self, name: &str, id: &KeyId) -> Result<Option<AnyPublicKey>, ClientError> {
        self.key_of_ciphertext(&name.parse()?, id).await
    }

    /// [`key_with_id`](Client::key_with_id) for many ciphertexts: the keys of all ids are looked for together and until one deadline.
    pub async fn keys_with_ids(
        &self,
        name: &str,
        ids: BTreeSet<KeyId>,
    ) -> BTreeMap<KeyId, Result<Option<AnyPublicKey>, ClientError>> {
        match name.parse().map_err(ClientError::from) {
            Ok(name) => self.keys_of_ciphertexts(&name, ids).await,
            Err(error) => ids.into_iter().map(|id| (id, Err(error.clone()))).collect(),
        }
    }

    /// The key of this id: see [`Client::keys_of_ciphertexts`].
    pub(crate) async fn key_of_ciphertext(&self, name: &KeyRef, id: &KeyId) -> Sought {
        let mut found = self.keys_of_ciphertexts(name, BTreeSet::from([*id])).await;
        found.remove(id).unwrap_or_else(|| because(Untold::Absent, name, id))
    }

    /// The key of this id, if this client knows it, or knows since a moment that the nodes do not tell it.
    pub(crate) fn key_at_hand(&self, name: &KeyRef, id: &KeyId) -> Option<Sought> {
        let known = self.known();
        match known.of_id(id) {
            Some(key) => Some(Ok(Some(key.public))),
            None => known.untold(&name.to_string(), id).map(|why| because(why, name, id)),
        }
    }

    /// The keys of these ids, each if this client knows it, the ledger has it, or enough holders give it under this name; `None` if the client may
    /// not ask for it. The id alone makes it no key of the group: whoever made the ciphertext may have made a key as well. All are looked for
    /// together and until one deadline: whoever sends ciphertexts with ids that he made up must not hold up the others.
    ///
    /// The errors are [`ClientError::NoSuchKey`] if there is none, and otherwise why it could not be learned.
    pub(crate) async fn keys_of_ciphertexts(&self, name: &KeyRef, ids: BTreeSet<KeyId>) -> BTreeMap<KeyId, Sought> {
        let (mut sought, mut open) = (BTreeMap::new(), BTreeSet::new());
        for id in ids {
            if let Some(found) = self.key_at_hand(name, &id) {
                sought.insert(id, found);
            } else {
                open.insert(id);
            }
        }
        if open.is_empty() {
            return sought;
        }
        self.learn_since(Instant::now(), false).await;
        let known = self.known();
        for id in std::mem::take(&mut open) {
            if let Some(key) = known.of_id(&id) {
                sought.insert(id, Ok(Some(key.public)));
            } else {
                open.insert(id);
            }
        }
        if open.is_empty() {
            return sought;
        }
        for (id, found) in self.told_keys_of(name, open).await {
            let found = match found {
                Ok(public) => Ok(Some(public)),
                Err(Unfound::Failed(error)) => Err(error),
                Err(Unfound::Untold(why)) => {
                    known.note_untold(name.to_string(), id, why);
                    because(why, name, &id)
                }
            };
            sought.insert(id, found);
        }
        sought
    }

    /// The keys as their holders tell them: the version that is meant, or else those that nodes list with these ids.
    async fn told_keys_of(&self, name: &KeyRef, mut open: BTreeSet<KeyId>) -> Found {
        let mut found = Found::new();
        // A key that is about to change is in dispute for a moment, and another version of it is not.
        let disputed = match self.ask_holders(name, true).await {
            Ok(public) => {
                let id = *public.key_id();
                if open.remove(&id) {
                    self.known().insert(name.to_string(), public.clone());
                    found.insert(id, Ok(public));
                }
                None
            }
            Err(NotTold { forbidden: true, .. }) => return all(open, || Unfound::Untold(Untold::Denied)),
            Err(NotTold { error: error @ ClientError::KeyDisagreement { .. }, .. }) if name.version.is_none() => {
                Some(error)
            }
            Err(NotTold { error, .. }) => return all(open, || Unfound::Failed(error.clone())),
        };
        if !open.is_empty() && name.version.is_none() {
            let deadline = Instant::now() + self.shared.options.timeout;
            let (listed, untellable) = self.listed_versions_of(name, &open, deadline).await;
            let why = untellable.or(disputed);
            let unfound = || why.clone().map_or(Unfound::Untold(Untold::Absent), Unfound::Failed);
            let told = self.told_versions(name, listed, deadline).await;
            found.extend(all(open, unfound));
            // What is known of an id by its own versions says more.
            found.extend(told);
        } else {
            found.extend(all(open, || Unfound::Untold(Untold::Absent)));
        }
        found
    }

    /// The versions that nodes list with these ids, those first that most nodes list, and why there may be others: so few lists came that they
    /// need not have all. What nodes list is a hint: a version is believed as any key is.
    async fn listed_versions_of(
        &self,
        name: &KeyRef,
        ids: &BTreeSet<KeyId>,
        deadline: Instant,
    ) -> (Vec<(KeyId, Version)>, Option<ClientError>) {
        let k = self.quorum();
        // A version is believed if k of its holders tell it. One of these is among so many nodes, and so is an honest one.
        let enough = self.connections().len().saturating_sub(k).saturating_add(1).max(k);
        let (lists, problems): Lists =
            self.some_key_lists(deadline.saturating_duration_since(Instant::now()), enough).await;
        let too_few = (lists.len() < enough).then(|| {
            let nodes = problems.all();
            problems.hopeless(OPERATION, k).unwrap_or(ClientError::NoAnswer { operation: OPERATION, nodes })
        });
        let mut tellers: BTreeMap<KeyId, BTreeMap<Version, usize>> = BTreeMap::new();
        let entries = lists.iter().flat_map(|(_, keys)| keys).filter(|info| info.name == name.name.as_str());
        for info in entries {
            let id = id_of(info).filter(|id| ids.contains(id));
            if let (Some(id), Some(version)) = (id, Version::new(info.version)) {
                *tellers.entry(id).or_default().entry(version).or_default() += 1;
            }
        }
        let mut versions = Vec::new();
        for (id, tellers) in tellers {
            let mut of_id: Vec<_> = tellers.into_iter().map(|(version, nodes)| (nodes, id, version)).collect();
            of_id.sort_by_key(|(nodes, ..)| Reverse(*nodes));
            versions.extend(of_id.into_iter().take(MOST_VERSIONS));
        }
        versions.sort_by_key(|(nodes, ..)| Reverse(*nodes));
        (versions.into_iter().map(|(_, id, version)| (id, version)).collect(), too_few)
    }

    /// What the holders tell of these versions, of which each should have its id. Nothing is said of an id if it is clear that no version has it.
    async fn told_versions(&self, name: &KeyRef, versions: Vec<(KeyId, Version)>, deadline: Instant) -> Found {
        let unheard = || Unfound::Failed(ClientError::NoAnswer { operation: OPERATION, nodes: Vec::new() });
        let (mut found, mut asked, mut awaited) = (Found::new(), JoinSet::new(), BTreeMap::<KeyId, usize>::new());
        for (id, _) in &versions {
            *awaited.entry(*id).or_default() += 1;
        }
        let mut next = versions.into_iter().take(MOST_ASKED);
        // What liars list beside the versions that there are holds nobody up once these are found.
        while awaited.keys().any(|id| !matches!(found.get(id), Some(Ok(_)))) {
            while asked.len() < AT_ONCE {
                let Some((id, version)) = next.next() else { break };
                if matches!(found.get(&id), Some(Ok(_))) {
                    continue;
                }
                let (client, named) = (self.clone(), KeyRef { name: name.name.clone(), version: Some(version) });
                asked.spawn(async move {
                    let told = client.ask_public_key(&named).await;
                    (id, named, told)
                });
            }
            let Ok(Some(Ok((id, named, told)))) = timeout_at(deadline, asked.join_next()).await else { break };
            if let Some(awaited) = awaited.get_mut(&id) {
                *awaited = awaited.saturating_sub(1);
            }
            match told {
                Ok(public) if *public.key_id() == id => {
                    self.known().insert(named.to_string(), public.clone());
                    found.insert(id, Ok(public));
                }
                // Another id, or an honest node that does not know the version: it is not the one.
                Ok(_) | Err(ClientError::Refused { code: Code::NotFound, .. }) => {}
                Err(error) => {
                    tracing::debug!(key = %named, %error, "the nodes do not tell the public key");
                    found.entry(id).or_insert(Err(Unfound::Failed(error)));
                }
            }
        }
        for (id, _) in awaited.into_iter().filter(|(_, awaited)| *awaited > 0) {
            found.entry(id).or_insert_with(|| Err(unheard()));
        }
        found
    }
}

fn all(ids: BTreeSet<KeyId>, why: impl Fn() -> Unfound) -> Found {
    ids.into_iter().map(|id| (id, Err(why()))).collect()
}

fn id_of(info: &v1::KeyInfo) -> Option<KeyId> {
    Some(KeyId::from_bytes(info.key_id.as_ref().try_into().ok()?))
}

fn because(why: Untold, name: &KeyRef, id: &KeyId) -> Sought {
    match why {
        Untold::Denied => Ok(None),
        Untold::Absent => Err(ClientError::NoSuchKey { name: name.to_string(), id: id.abbreviated() }),
    }
}
