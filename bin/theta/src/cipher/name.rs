//! Which key a ciphertext is for.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    slice,
};

use theta_client::{Client, ListedKey};
use theta_names::NodeId;
use theta_payload::Header;
use theta_schemes::{Purpose, keys::KeyId};
use tokio::task::JoinSet;

use crate::{connect::Session, exit::Failure, keys::NamedKey};

/// How many names that nodes list with the id are tried: one is right, and each liar may list another.
const MOST_NAMES: usize = 8;

/// The name of each key that was found, or why it was not.
type Found = BTreeMap<KeyId, Result<String, Failure>>;

/// The key that was named, or else that of the ciphertext: from the client directory or the ledger or, for keys that are in neither, from the nodes.
pub(super) fn key_name(asked: Option<&str>, session: &Session, header: &Header<'_>) -> Result<String, Failure> {
    let name = key_names(asked, session, slice::from_ref(header)).pop();
    name.unwrap_or_else(|| Err(Failure::internal("a ciphertext was forgotten")))
}

/// The same for many ciphertexts. What this client does not know yet it asks for once, for all of them: whoever sends ciphertexts with ids that he
/// made up must not hold up the others one by one.
pub(super) fn key_names(
    asked: Option<&str>,
    session: &Session,
    headers: &[Header<'_>],
) -> Vec<Result<String, Failure>> {
    if let Some(name) = asked {
        let key = session.look_up(Some(name), |keyring| keyring.choose(Some(name), Purpose::Decrypt));
        let named = |header| key.as_ref().map_err(Failure::clone).and_then(|key| named(name, key, session, header));
        return headers.iter().map(named).collect();
    }
    let mut found = Found::new();
    let ids: BTreeSet<KeyId> = headers.iter().map(|header| *header.key_id()).collect();
    let mut open = unknown(session, ids, &mut found);
    if !open.is_empty() {
        // What the ledger has needs no word of single nodes.
        session.renew();
        open = unknown(session, open, &mut found);
    }
    if !open.is_empty() {
        let (listed, _) = session.block_on(session.client().list_keys());
        let names = open.iter().map(|id| (*id, names_of(&listed, id))).collect();
        session.block_on(try_names(session.client(), &names, &mut found));
    }
    let name = |header: &Header<'_>| {
        found.get(header.key_id()).cloned().unwrap_or_else(|| {
            let (id, suite) = (header.key_id().abbreviated(), header.suite());
            Err(Failure::Usage(format!(
                "the ciphertext is for a key that is not in the client directory, and that no node lists ({suite}, id {id}): \
                 theta keys list --live shows those that there are"
            )))
        })
    };
    headers.iter().map(name).collect()
}

/// Finds the names of keys that this client knows; returns the ids of the others.
fn unknown(session: &Session, ids: BTreeSet<KeyId>, found: &mut Found) -> BTreeSet<KeyId> {
    let keyring = session.keyring();
    let is_open = |id: &KeyId| match keyring.with_id(id).transpose() {
        Some(key) => {
            found.insert(*id, key.map(|key| key.asked()));
            false
        }
        None => true,
    };
    ids.into_iter().filter(is_open).collect()
}

/// Asks for each key by the names that it may have, until one is right: by the first ones of all keys, then by the second ones.
async fn try_names(client: &Client, names: &BTreeMap<KeyId, Vec<String>>, found: &mut Found) {
    for turn in 0..MOST_NAMES {
        let mut by_name: BTreeMap<&str, BTreeSet<KeyId>> = BTreeMap::new();
        for (id, names) in names {
            if let Some(name) = names.get(turn).filter(|_| !matches!(found.get(id), Some(Ok(_)))) {
                by_name.entry(name).or_default().insert(*id);
            }
        }
        let mut asked = JoinSet::new();
        for (name, ids) in by_name {
            let (client, name) = (client.clone(), name.to_owned());
            asked.spawn(async move {
                let sought = client.keys_with_ids(&name, ids).await;
                (name, sought)
            });
        }
        while let Some(Ok((name, sought))) = asked.join_next().await {
            for (id, key) in sought {
                match key {
                    Ok(_) => {
                        found.insert(id, Ok(name.clone()));
                    }
                    Err(error) => {
                        found.entry(id).or_insert_with(|| Err(error.into()));
                    }
                }
            }
        }
    }
}

/// Whether the ciphertext is for the key of this name, which is then said of it.
fn named(name: &str, key: &NamedKey, session: &Session, header: &Header<'_>) -> Result<String, Failure> {
    let (its, wanted) = (key.public.key_id(), header.key_id());
    // A name without a version is that of all its versions.
    let fits = |key: &NamedKey| if key.public.key_id() == wanted { Ok(()) } else { Err(()) };
    if session.keyring().fitting(key, fits).is_err() {
        return Err(Failure::Usage(format!(
            "the ciphertext is for the key with the id {}, {name} has the id {}: leave out --key, and the right one is \
             found",
            wanted.abbreviated(),
            its.abbreviated()
        )));
    }
    Ok(key.asked())
}

/// The names that nodes list with this id, those first that most list.
fn names_of(listed: &[ListedKey], id: &KeyId) -> Vec<String> {
    let mut told: BTreeMap<&str, BTreeSet<NodeId>> = BTreeMap::new();
    for key in listed.iter().filter(|key| key.info.key_id.as_ref() == id.as_bytes()) {
        told.entry(&key.info.name).or_default().extend(&key.nodes);
    }
    let mut names: Vec<(&str, usize)> = told.into_iter().map(|(name, nodes)| (name, nodes.len())).collect();
    names.sort_by_key(|(_, nodes)| Reverse(*nodes));
    names.into_iter().take(MOST_NAMES).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use theta_wire::v1::KeyInfo;

    use super::*;

    /// Node 1 lists the key under names that stand before the true one.
    #[test]
    fn the_name_that_most_nodes_list_is_tried_first() {
        let id = KeyId::from_bytes([7; 32]);
        let listed = |name: &str, id: [u8; 32], state: &str, nodes: &[u16]| ListedKey {
            info: KeyInfo {
                name: name.to_owned(),
                version: 1,
                state: state.to_owned(),
                key_id: id.to_vec().into(),
                ..KeyInfo::default()
            },
            nodes: nodes.iter().map(|node| (*node).try_into().unwrap()).collect(),
            ..ListedKey::default()
        };
        let mut all: Vec<ListedKey> =
            (0..10).map(|number| listed(&format!("a{number}"), [7; 32], "active", &[1])).collect();
        // Two of the others know a newer state of it.
        all.push(listed("vault", [7; 32], "active", &[2, 3]));
        all.push(listed("vault", [7; 32], "retired", &[4]));
        all.push(listed("b", [8; 32], "active", &[1, 2, 3, 4]));
        let names = names_of(&all, &id);
        assert_eq!((names[0].as_str(), names.len()), ("vault", MOST_NAMES));
        assert!(names_of(&all, &KeyId::from_bytes([9; 32])).is_empty());
    }
}
