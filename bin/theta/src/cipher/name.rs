//! Which key a ciphertext is for.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use theta_client::ListedKey;
use theta_names::NodeId;
use theta_payload::Header;
use theta_schemes::{Purpose, keys::KeyId};

use crate::{connect::Session, exit::Failure, keys::NamedKey};

/// How many names that nodes list with the id are tried: one is right, and each liar may list another.
const MOST_NAMES: usize = 8;

/// The key that was named, or else that of the ciphertext: from the client directory or the ledger or, for keys that are in neither, from the nodes.
pub(super) fn key_name(asked: Option<&str>, session: &Session, header: &Header<'_>) -> Result<String, Failure> {
    if let Some(name) = asked {
        return named(name, session, header);
    }
    if let Some(key) = session.keyring().with_id(header.key_id())? {
        return Ok(key.asked());
    }
    // What the ledger has needs no word of single nodes.
    session.renew();
    if let Some(key) = session.keyring().with_id(header.key_id())? {
        return Ok(key.asked());
    }
    let (listed, _) = session.block_on(session.client().list_keys());
    let mut failure = None;
    for name in names_of(&listed, header.key_id()) {
        match session.block_on(session.client().key_with_id(&name, header.key_id())) {
            Ok(_) => return Ok(name),
            Err(error) => failure = failure.or(Some(Failure::from(error))),
        }
    }
    let (id, suite) = (header.key_id().abbreviated(), header.suite());
    Err(failure.unwrap_or_else(|| {
        Failure::Usage(format!(
            "the ciphertext is for a key that is not in the client directory, and that no node lists ({suite}, id {id}): \
             theta keys list --live shows those that there are"
        ))
    }))
}

/// The key of this name, if the ciphertext is for it.
fn named(name: &str, session: &Session, header: &Header<'_>) -> Result<String, Failure> {
    let key = session.look_up(Some(name), |keyring| keyring.choose(Some(name), Purpose::Decrypt))?;
    let (its, wanted) = (key.public.key_id(), header.key_id());
    // A name without a version is that of all its versions.
    let fits = |key: &NamedKey| if key.public.key_id() == wanted { Ok(()) } else { Err(()) };
    if session.keyring().fitting(&key, fits).is_err() {
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
