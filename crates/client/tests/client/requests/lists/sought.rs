//! The keys of ciphertexts, where nodes deny them, do not agree, or are silent.

use std::time::{Duration, Instant};

use bytes::Bytes;
use theta_client::{Client, ClientError, ClientOptions};
use theta_keyfiles::PublicKeyText as _;
use theta_schemes::{Suite, keys::AnyPublicKey};
use tonic::Status;

use super::{listed, name_a_public_key, open, sealed};
use crate::fake::{FakeGroup, Key, key};

fn denied(reason: &str) -> Status {
    let mut denied = Status::permission_denied("this client gets no keys");
    denied.metadata_mut().insert("theta-reason", reason.parse().unwrap());
    denied
}

fn vault(seed: u64) -> Key {
    key(Suite::Sg02Ristretto255, seed)
}

fn file(public: &AnyPublicKey) -> Result<Option<String>, Status> {
    Ok(Some(public.to_text(&"vault".parse().unwrap())))
}

/// Node 1 has made the ciphertext and its key, and answers with the payload key; the others refuse it.
fn forged_by_node_1(group: &FakeGroup) -> Bytes {
    let (header, outcome) = sealed(&vault(2));
    for (number, node) in (1..).zip(&group.nodes) {
        let mut node = node.lock().unwrap();
        node.refusal = (number > 1).then(|| Status::invalid_argument("a ciphertext for another key"));
    }
    group.node(1).outcome = Some(outcome);
    header
}

/// Of two nodes one lies. It denies this client the key, which leaves too few to confirm any, and no honest node has denied it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_liar_alone_does_not_make_a_client_one_that_may_not_ask() {
    let group = FakeGroup::pair();
    let header = forged_by_node_1(&group);
    group.node(1).public_refusal = Some(denied("no-rule"));
    group.node(1).list_refusal = Some(denied("no-rule"));
    name_a_public_key(&group, 2, &vault(1).0);
    let error = open(&group).decapsulate("vault", header.clone()).await.unwrap_err();
    assert!(matches!(error, ClientError::Denied { .. }), "{error}");
    // Where both deny it, an honest one does.
    group.node(2).public_refusal = Some(denied("no-rule"));
    open(&group).decapsulate("vault", header).await.unwrap();
}

/// Somebody has sent so many ciphertexts that this client has asked for keys too often. It may ask for them all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_too_often_is_not_one_that_may_not_ask() {
    for reason in ["too-often", "rates-full", "agent-silent", "token-proof"] {
        let group = FakeGroup::new();
        let header = forged_by_node_1(&group);
        (1..=4).for_each(|number| group.node(number).public_refusal = Some(denied(reason)));
        let error = open(&group).decapsulate("vault", header).await.unwrap_err();
        assert!(matches!(&error, ClientError::Denied { reason: told, .. } if told == reason), "{error}");
    }
}

/// A host that is told that there is no such key may throw the ciphertext away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_cannot_be_looked_for_is_not_called_absent() {
    let (before, now) = (vault(1), vault(2));
    let (header, outcome) = sealed(&before);
    let group = FakeGroup::new();
    group.answer(&outcome);
    (1..=4).for_each(|number| {
        name_a_public_key(&group, number, &now.0);
        let mut node = group.node(number);
        node.keys = vec![listed(&before.0, 1, "active"), listed(&now.0, 2, "active")];
        node.versions.insert("vault@1".to_owned(), file(&before.0));
        node.list_refusal = Some(denied("too-often"));
    });
    let error = open(&group).decapsulate("vault", header.clone()).await.unwrap_err();
    assert!(matches!(&error, ClientError::Denied { reason, .. } if reason == "too-often"), "{error}");
    // It is listed, and the nodes have no time to tell it.
    (1..=4).for_each(|number| {
        let mut node = group.node(number);
        node.list_refusal = None;
        node.versions.insert("vault@1".to_owned(), Err(denied("too-often")));
    });
    let error = open(&group).decapsulate("vault", header.clone()).await.unwrap_err();
    assert!(matches!(&error, ClientError::Denied { reason, .. } if reason == "too-often"), "{error}");
    for number in 1..=4 {
        group.node(number).versions.insert("vault@1".to_owned(), file(&before.0));
    }
    open(&group).decapsulate("vault", header).await.unwrap();
}

/// The key is about to change: two nodes tell one version as the one that is meant, and two another. The ciphertext is for a third.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_is_found_while_the_nodes_do_not_agree_which_is_meant() {
    let before = vault(1);
    let (header, outcome) = sealed(&before);
    let group = FakeGroup::new();
    group.answer(&outcome);
    for number in 1..=4 {
        name_a_public_key(&group, number, &vault(if number < 3 { 2 } else { 3 }).0);
        let mut node = group.node(number);
        node.keys = vec![listed(&before.0, 1, "active")];
        node.versions.insert("vault@1".to_owned(), file(&before.0));
    }
    open(&group).decapsulate("vault", header).await.unwrap();
}

/// Node 4 is silent, and somebody sends ciphertexts with ids that he made up, each of which is to hold up the good one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_ids_hold_up_no_good_ciphertext() {
    let timeout = Duration::from_secs(30);
    let group = FakeGroup::new();
    let good = vault(1);
    let (header, outcome) = sealed(&good);
    group.answer(&outcome);
    (1..=3).for_each(|number| name_a_public_key(&group, number, &good.0));
    group.node(4).silent_about_keys = true;
    let options = ClientOptions { timeout, ..ClientOptions::default() };
    let client = Client::open_with(&group.prepared.folder.path().join("client"), options).unwrap();
    let mut headers: Vec<Bytes> = (0..20).map(|seed| sealed(&vault(100 + seed)).0).collect();
    headers.push(header);
    let began = Instant::now();
    let mut answers = client.decapsulate_all("vault", &headers).await.unwrap();
    assert!(began.elapsed() < timeout, "{:?}", began.elapsed());
    answers.pop().unwrap().unwrap();
    assert_eq!(answers.len(), 20);
    for answer in answers {
        assert!(matches!(answer, Err(ClientError::NoSuchKey { .. })));
    }
}
