//! Lists of keys by nodes that lie, and ciphertexts for keys that the group does not have.

mod sought;

use std::time::{Duration, Instant};

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_client::{AgreedState, Client, ClientError, KeyState};
use theta_keyfiles::PublicKeyText as _;
use theta_payload::{Aead, Encrypt as _, split_ciphertext};
use theta_schemes::{Statement, Suite, keys::AnyPublicKey};
use theta_wire::v1;
use tonic::Status;

use crate::fake::{FakeGroup, Key, adopt, key};

fn open(group: &FakeGroup) -> Client {
    Client::open(&group.prepared.folder.path().join("client")).unwrap()
}

fn listed(public: &AnyPublicKey, version: u32, state: &str) -> v1::KeyInfo {
    let key_id = public.key_id().as_bytes().to_vec().into();
    v1::KeyInfo { name: "vault".to_owned(), version, state: state.to_owned(), key_id, ..Default::default() }
}

/// Node 1 says k times that a key is destroyed, or that one is active which the others say is destroyed. It is one node all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lists_a_key_twice_counts_once() {
    let group = FakeGroup::new();
    let vault = key(Suite::Sg02Ristretto255, 1);
    let client = open(&group);
    for (lie, truth) in [("destroyed", "active"), ("active", "destroyed")] {
        group.node(1).keys = vec![listed(&vault.0, 1, lie); 3];
        (2..=4).for_each(|number| group.node(number).keys = vec![listed(&vault.0, 1, truth)]);
        let agreed: Vec<AgreedState> = client.key_states(&"vault".parse().unwrap()).await.unwrap();
        let states: Vec<KeyState> = agreed.iter().map(|agreed| agreed.state).collect();
        assert_eq!(states.iter().map(|state| state.name()).collect::<Vec<_>>(), [truth]);
        let (keys, problems) = client.list_keys().await;
        assert!(problems.is_empty());
        assert!(keys.iter().all(|key| key.nodes.len() == if key.info.state == lie { 1 } else { 3 }), "{keys:?}");
    }
}

/// A list of entries of two bytes each takes little of the network, and would take gigabytes here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_more_keys_than_there_can_be_is_not_read() {
    let group = FakeGroup::new();
    group.node(1).keys = vec![v1::KeyInfo::default(); 1_000_000];
    let (keys, problems) = open(&group).list_keys().await;
    assert!(keys.is_empty() && problems.len() == 1 && problems[0].node.get() == 1, "{problems:?}");
    assert!(problems[0].to_string().contains("more than 65536 parts"), "{}", problems[0]);
}

/// A group that makes a key for each object has more versions than four thousand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_thousands_of_versions_are_read() {
    let group = FakeGroup::new();
    let vault = key(Suite::Sg02Ristretto255, 1);
    let versions: Vec<_> = (1..=5_000).map(|version| listed(&vault.0, version, "active")).collect();
    (1..=4).for_each(|number| group.node(number).keys = versions.clone());
    let (keys, problems) = open(&group).list_keys().await;
    assert!(problems.is_empty(), "{problems:?}");
    assert!(keys.len() == 5_000 && keys.iter().all(|key| key.nodes.len() == 4));
}

/// Node 1 says late that it cannot be used, and takes no connection by which the client would learn why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fails_late_has_no_more_time_than_others() {
    let group = FakeGroup::new();
    let vault = key(Suite::Sg02Ristretto255, 1);
    (1..=4).for_each(|number| group.node(number).keys = vec![listed(&vault.0, 1, "active")]);
    let client = open(&group);
    assert!(client.list_keys().await.1.is_empty(), "all are connected");
    {
        let mut late = group.node(1);
        late.list_refusal = Some(Status::unavailable("later"));
        late.list_delay = Duration::from_secs(3);
        late.takes_no_more = true;
    }
    let began = Instant::now();
    let (keys, problems) = client.list_keys_within(Duration::from_secs(6)).await;
    assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
    assert!(keys.len() == 1 && keys[0].nodes.len() == 3, "{keys:?}");
    assert!(problems.len() == 1 && problems[0].to_string().contains("later"), "{problems:?}");
}

/// A header for this key, and what the nodes of the fake group answer to it: the payload key.
fn sealed((public, shares): &Key) -> (Bytes, v1::Outcome) {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let sealed = Bytes::from(public.encrypt(b"text", b"", Aead::default(), &mut rng).unwrap());
    let header = sealed.slice_ref(split_ciphertext(&sealed).unwrap().0);
    let statement = Statement::Decapsulate(&header);
    let made: Vec<_> =
        shares.iter().take(2).map(|it| (it.index(), public.create_share(it, statement, &mut rng).unwrap())).collect();
    let parts: Vec<_> = made.iter().map(|(index, share)| (*index, share.as_slice())).collect();
    let combined = public.combine(statement, &parts, &mut rng).unwrap();
    let result = combined.result.expose().clone().into();
    (header.clone(), v1::Outcome { result, contributors: vec![1, 2], ..Default::default() })
}

fn name_a_public_key(group: &FakeGroup, node: usize, public: &AnyPublicKey) {
    group.node(node).public = Some(public.to_text(&"vault".parse().unwrap()));
}

/// Whoever made the ciphertext made the key, too, and node 1 is with him. The group has no such key, and the client takes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ciphertext_for_a_key_that_the_group_does_not_have_is_refused() {
    let group = FakeGroup::new();
    let (vault, his) = (key(Suite::Sg02Ristretto255, 1), key(Suite::Sg02Ristretto255, 2));
    (2..=4).for_each(|number| {
        name_a_public_key(&group, number, &vault.0);
        group.node(number).refusal = Some(Status::invalid_argument("a ciphertext for another key"));
    });
    let (header, outcome) = sealed(&his);
    name_a_public_key(&group, 1, &his.0);
    group.node(1).keys = vec![listed(&his.0, 7, "active")];
    group.node(1).outcome = Some(outcome);
    let client = open(&group);
    for _ in 0..2 {
        let error = client.decapsulate("vault", header.clone()).await.unwrap_err();
        assert!(matches!(error, ClientError::NoSuchKey { .. }), "{error}");
    }
    // One of several fails alone, and a true one after it is opened and checked: nothing of the name is forgotten.
    let (good, outcome) = sealed(&vault);
    (2..=4).for_each(|number| {
        let mut node = group.node(number);
        (node.refusal, node.outcome) = (None, Some(outcome.clone()));
    });
    client.decapsulate("vault", good.clone()).await.unwrap();
    assert_eq!(client.known().of_id(vault.0.key_id()).map(|key| *key.public.key_id()), Some(*vault.0.key_id()));
}

/// Who may not ask for keys takes what fits the commitment, as decision 19 says. One node that denies it does not make that so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_ask_for_the_key_checks_the_commitment_alone() {
    let mut denied = Status::permission_denied("no rule lets this client list keys");
    denied.metadata_mut().insert("theta-reason", "no-rule".parse().unwrap());
    let group = FakeGroup::new();
    let vault = key(Suite::Sg02Ristretto255, 1);
    let (header, outcome) = sealed(&vault);
    group.answer(&outcome);
    group.node(1).public_refusal = Some(denied.clone());
    let error = open(&group).decapsulate("vault", header.clone()).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused { .. }), "there is no such key: {error}");
    (2..=4).for_each(|number| group.node(number).public_refusal = Some(denied.clone()));
    open(&group).decapsulate("vault", header).await.unwrap();
}

/// A new version that came after the client has asked in vain is found, and checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_comes_later_is_found() {
    let mut group = FakeGroup::new();
    let (vault, next) = (key(Suite::Sg02Ristretto255, 1), key(Suite::Sg02Ristretto255, 2));
    group.decide(adopt("vault", 1, 0, &vault.0));
    (1..=4).for_each(|number| name_a_public_key(&group, number, &vault.0));
    let (header, outcome) = sealed(&next);
    group.answer(&outcome);
    let client = open(&group);
    let error = client.decapsulate("vault", header.clone()).await.unwrap_err();
    assert!(matches!(error, ClientError::NoSuchKey { .. }), "{error}");
    group.decide(adopt("vault", 2, 0, &next.0));
    client.renew().await.unwrap();
    client.decapsulate("vault", header).await.unwrap();
}
