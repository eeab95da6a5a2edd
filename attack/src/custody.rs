//! The messages of custodians (spec/custody.md), and ceremonies as clients ask for them.

use std::{num::NonZeroU16, time::Duration};

use theta_ceremonies::{CeremonyKeys, Statement};
use theta_client::{CeremonyOutcome, Client, KeyChange};
use theta_store::{SealingKey, Store};
use tokio::{task::JoinHandle, time};

use crate::{attack::Trouble, group::Group};

/// The version of custodians' messages.
pub(crate) const FORMAT: u8 = 1;
/// The tag of statements of a ceremony.
pub(crate) const ITEMS: u8 = 1;
/// The tag of a summary: what a node has of a ceremony.
pub(crate) const SUMMARY: u8 = 2;
/// The tag of a greeting: the state of a node's store, and what it remembers of the receiver's.
pub(crate) const GREETING: u8 = 3;
/// The tag of a question about the subject of a ceremony.
pub(crate) const QUESTION: u8 = 4;
/// The tag of the answer to [`QUESTION`].
pub(crate) const ANSWER: u8 = 5;
/// The tag of a lineage: the openings that led to a store's state.
pub(crate) const LINEAGE: u8 = 6;
/// The tag of the present state of a store.
pub(crate) const NOW: u8 = 8;
/// How long a ceremony may take under attack.
const PATIENCE: Duration = Duration::from_secs(60);

/// A ceremony in progress; the error is the problem if it has no good result within a minute.
pub(crate) type Held = JoinHandle<Result<CeremonyOutcome, String>>;

/// Renews the shares of a key.
pub(crate) fn refresh(client: Client, key: &'static str) -> Held {
    tokio::spawn(async move {
        let refresh = KeyChange::Refresh { key: key.parse().map_err(|_| "no name of a key")?, version: None };
        let held = time::timeout(PATIENCE, client.hold(refresh, |_| {})).await;
        held.map_err(|_| "a ceremony did not end")?.map_err(|error| error.to_string())
    })
}

/// The ceremony of a message with this tag, and the message.
pub(crate) fn about(tag: u8, payload: &[u8]) -> Option<(&[u8; 32], &[u8])> {
    match payload {
        [FORMAT, said, rest @ ..] if *said == tag => rest.split_first_chunk(),
        _ => None,
    }
}

/// The identity with which a node signs ceremonies, from its own store. The node must not be running.
pub(crate) fn identity(group: &Group, node: u16) -> Result<CeremonyKeys, Trouble> {
    let dir = group.node_dir(node);
    let key = SealingKey::from_file(&dir.join("store.key")).map_err(|error| Trouble::new(error.to_string()))?;
    let store = Store::open(&dir.join("theta.redb"), &key).map_err(|error| Trouble::new(error.to_string()))?;
    let master = store.identity().map_err(|error| Trouble::new(error.to_string()))?;
    let master = master.ok_or_else(|| Trouble::new("the node has no identity"))?;
    let party = NonZeroU16::new(node).ok_or_else(|| Trouble::new("bug: no node has number zero"))?;
    Ok(CeremonyKeys::new(party.into(), master))
}

/// Encodes statements as a message of [`ITEMS`] has them (spec/ceremonies.md).
pub(crate) fn items(statements: &[Statement]) -> Vec<u8> {
    let mut items = Vec::new();
    for said in statements {
        items.push(1);
        items.extend_from_slice(&said.author().get().to_be_bytes());
        items.push(said.slot().kind as u8);
        items.extend_from_slice(&said.slot().number.to_be_bytes());
        items.extend_from_slice(&u32::try_from(said.body().len()).unwrap_or(u32::MAX).to_be_bytes());
        items.extend_from_slice(said.body());
        items.extend_from_slice(said.signature());
    }
    items
}
