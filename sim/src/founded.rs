//! Groups that were founded with cards: the cards, those that come later, and the operators' words.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use theta_ceremonies::CeremonyKeys;
use theta_groups::Secret;
use theta_ledger::founding::{Card, CardContent, Founding, NodeSignatures};
use theta_ledger::{LedgerId, MemberChange, OperatorKey, StandIn};

use crate::group::{EPOCH, Failed, GROUP, identity, party};

/// A number that no node has.
const NOBODY: u16 = 99;

/// The keys of the machine that comes in a member's place.
pub(crate) fn second_identity(node: u16) -> Result<CeremonyKeys, Failed> {
    Ok(CeremonyKeys::new(party(node)?, second_secret(node)))
}

pub(crate) const fn second_secret(node: u16) -> Secret<[u8; 32]> {
    let [high, low] = node.to_be_bytes();
    let mut secret = [0xa5; 32];
    secret[0] = high;
    secret[1] = low;
    Secret::new(secret)
}

/// The key of ceremonies of a machine.
fn key_of(keys: &CeremonyKeys) -> Result<[u8; 32], Failed> {
    keys.member().verifying_key().bytes().try_into().map_err(|_| "a key of another length".to_owned())
}

pub(crate) fn operator(node: u16) -> OperatorKey {
    let [high, low] = node.to_be_bytes();
    let mut master = [0x90; 32];
    master[0] = high;
    master[1] = low;
    OperatorKey::new(Secret::new(master))
}

fn card(node: u16, keys: &CeremonyKeys, (port, made): (u16, u64)) -> Result<Card, Failed> {
    let mut tls_key = [0x7e; 32];
    tls_key.split_at_mut(2).0.copy_from_slice(&port.to_be_bytes());
    let content = CardContent {
        name: format!("node {node:02}").parse().map_err(|error| format!("{error}"))?,
        ceremony_key: key_of(keys)?,
        tls_key,
        operator_key: operator(node).id().map_err(|error| error.to_string())?,
        peer_address: format!("n{node}.example:{port}").parse().map_err(|error| format!("{error}"))?,
        api_address: format!("n{node}.example:{}", port + 1).parse().map_err(|error| format!("{error}"))?,
        made,
        until: u64::MAX,
    };
    let signature = keys.sign(&content.signed());
    content.with_signature(signature, &NodeSignatures).map_err(|error| error.to_string())
}

/// The foundings, by k and n: each is put together once a process, since it is the same in all runs.
static FOUNDINGS: LazyLock<Mutex<BTreeMap<(u16, u16), Founding>>> = LazyLock::new(Mutex::default);

pub(crate) fn founding(k: u16, n: u16) -> Result<Founding, Failed> {
    let mut all = FOUNDINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(founding) = all.get(&(k, n)) {
        return Ok(founding.clone());
    }
    let founding = assembled(k, n)?;
    all.insert((k, n), founding.clone());
    Ok(founding)
}

fn assembled(k: u16, n: u16) -> Result<Founding, Failed> {
    let cards = (1..=n).map(|node| card(node, &identity(node)?, (7_000 + 2 * node, 1)));
    Founding::assemble(GROUP, k, cards.collect::<Result<_, _>>()?).map_err(|error| error.to_string())
}

/// The machine that votes in the place of the member's first one.
pub(crate) fn stand_in(node: u16) -> Result<StandIn, Failed> {
    Ok(StandIn { node: party(node)?, gone: key_of(&identity(node)?)?, card: second_card(node)? })
}

fn second_card(node: u16) -> Result<Card, Failed> {
    card(node, &second_identity(node)?, (8_000 + 2 * node, 1))
}

/// Another machine in the place of the member's first one, and the word of its operator.
pub(crate) fn replacement(node: u16, ledger: &LedgerId) -> Result<(MemberChange, Vec<u8>), Failed> {
    let change = MemberChange::Replace { node, card: second_card(node)? };
    let proof = operator(node).sign(&change.signed_by_operator(ledger, &key_of(&identity(node)?)?));
    Ok((change, proof.to_vec()))
}

/// A new card of a member with its first machine.
pub(crate) fn renewal(node: u16) -> Result<(MemberChange, Vec<u8>), Failed> {
    let change = MemberChange::Renew { node, card: card(node, &identity(node)?, (9_000 + 2 * node, EPOCH - 1))? };
    Ok((change, Vec::new()))
}

/// A new member.
pub(crate) fn arrival(node: u16) -> Result<(MemberChange, Vec<u8>), Failed> {
    Ok((MemberChange::Add(card(node, &identity(node)?, (7_000 + 2 * node, EPOCH - 1))?), Vec::new()))
}

/// The key of a machine that only liars want in the group.
fn false_identity() -> Result<CeremonyKeys, Failed> {
    Ok(CeremonyKeys::new(party(1)?, Secret::new([0xe1; 32])))
}

/// Whether a card is of that machine.
pub(crate) fn is_of_liars(card: &Card) -> bool {
    let key = false_identity().and_then(|keys| key_of(&keys));
    key.is_ok_and(|key| card.content().ceremony_key == key)
}

/// The card of a liar's machine: in the place of the member with that card, or of nobody's.
pub(crate) fn false_card(of: Option<&CardContent>) -> Result<Card, Failed> {
    let keys = false_identity()?;
    let mut content = card(NOBODY, &keys, (6_000, 1))?.content().clone();
    if let Some(known) = of {
        (content.name, content.operator_key) = (known.name.clone(), known.operator_key);
    }
    let signature = keys.sign(&content.signed());
    content.with_signature(signature, &NodeSignatures).map_err(|error| error.to_string())
}
