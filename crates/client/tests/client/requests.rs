//! The client against real groups: honest ones, and ones with nodes that lie, hang or are down.

mod batch;
mod holders;
mod lists;

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_client::{Client, ClientError, ClientOptions, KeyDispute, OpenError, Problem};
use theta_names::NodeId;
use theta_network::{Inbound, PeerStatus, SendError, Transport};
use theta_payload::{Aead, Encrypt as _, open_bytes, split_ciphertext};
use tokio::{net::TcpListener, sync::mpsc};

use crate::{
    group::{CIPHER, COIN, KEYS, Prepared, SIGNER, TestGroup},
    liar,
};

fn node(id: u16) -> NodeId {
    NodeId::try_from(id).unwrap()
}

fn seal(group: &TestGroup, plaintext: &[u8]) -> Bytes {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    group.public(CIPHER).encrypt(plaintext, b"label", Aead::default(), &mut rng).unwrap().into()
}

/// Checks that all operations work, each with a result that the client has checked.
async fn all_work(group: &TestGroup, client: &Client, tag: &str) {
    let message = Bytes::from(format!("message {tag}"));
    let signed = client.sign(SIGNER, message.clone()).await.unwrap();
    group.public(SIGNER).verify(&message, &signed.result, &[]).unwrap();
    assert_eq!(signed.contributors.len(), 2);

    let coin = client.flip_coin(COIN, message.clone()).await.unwrap();
    group.public(COIN).verify(&message, &coin.result.value, &coin.result.proof).unwrap();

    let ciphertext = seal(group, &message);
    let opened = client.decrypt(CIPHER, ciphertext.clone()).await.unwrap();
    assert_eq!(opened.result.expose().as_slice(), &*message);
    let header = ciphertext.slice_ref(split_ciphertext(&ciphertext).unwrap().0);
    let unwrapped = client.decapsulate(CIPHER, header).await.unwrap();
    assert_eq!(unwrapped.instance_id, opened.instance_id);
    assert_eq!(open_bytes(&unwrapped.result, &ciphertext).unwrap().expose().as_slice(), &*message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_honest_group() {
    let group = TestGroup::new().await;
    let client = Client::open(&group.client_folder()).unwrap();
    all_work(&group, &client, "one").await;
    let first = client.sign(SIGNER, "same".into()).await.unwrap();
    let second = client.sign(SIGNER, "same".into()).await.unwrap();
    assert_eq!((first.instance_id, first.result), (second.instance_id, second.result));

    let statuses = client.status().await;
    assert_eq!(statuses.iter().map(|status| status.node.get()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(statuses.iter().all(|status| status.status.is_ok()));
    let (keys, problems) = client.list_keys().await;
    assert!(problems.is_empty());
    assert_eq!(keys.len(), KEYS.len());
    assert!(keys.iter().all(|key| key.nodes.len() == 4));

    let mut scheme = client.scheme(node(3)).unwrap();
    let request =
        theta_wire::v1::EncryptRequest { key: CIPHER.to_owned(), plaintext: "by node 3".into(), ..Default::default() };
    let ciphertext = scheme.encrypt(request).await.unwrap().into_inner().ciphertext;
    assert_eq!(client.decrypt(CIPHER, ciphertext).await.unwrap().result.expose().as_slice(), b"by node 3");
    assert!(matches!(client.scheme(node(9)), Err(ClientError::UnknownNode(_))));
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_come_from_the_nodes_if_enough_agree() {
    let group = TestGroup::new().await;
    fs::remove_dir_all(group.client_folder().join("keys")).unwrap();
    let stripped = Client::open(&group.client_folder()).unwrap();
    assert_eq!(
        stripped.public_key(SIGNER).await.unwrap().key_id(),
        stripped.public_key(SIGNER).await.unwrap().key_id()
    );
    stripped.sign(SIGNER, "by a key from the nodes".into()).await.unwrap();
    let error = stripped.public_key("absent").await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused { .. }) && error.to_string().contains("\"absent\""), "{error}");
    assert!(matches!(stripped.public_key("No Name").await, Err(ClientError::KeyName(_))));
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_callers_mistakes_are_told_at_once() {
    let group = TestGroup::new().await;
    let client = Client::open(&group.client_folder()).unwrap();
    let error = client.decapsulate(CIPHER, "not a header".into()).await.unwrap_err();
    assert!(matches!(error, ClientError::Request(_)), "{error}");
    let error = client.decrypt(SIGNER, seal(&group, b"for another key")).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused { .. }), "{error}");
    let error = client.decrypt(CIPHER, "not a ciphertext".into()).await.unwrap_err();
    assert!(matches!(error, ClientError::Request(_)), "{error}");
    let mut changed = seal(&group, b"secret").to_vec();
    *changed.last_mut().unwrap() ^= 1;
    let error = client.decrypt(CIPHER, changed.into()).await.unwrap_err();
    assert!(matches!(error, ClientError::Payload(_)), "{error}");
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_may_be_down_until_too_few_are_left() {
    let mut group = TestGroup::new().await;
    let options = ClientOptions { timeout: Duration::from_secs(20), ..ClientOptions::default() };
    let client = Client::open_with(&group.client_folder(), options).unwrap();
    all_work(&group, &client, "all up").await;
    group.kill(1);
    all_work(&group, &client, "one down").await;
    group.kill(2);
    all_work(&group, &client, "two down").await;
    group.kill(3);
    let options = ClientOptions { timeout: Duration::from_secs(2), ..ClientOptions::default() };
    let hasty = Client::open_with(&group.client_folder(), options).unwrap();
    let error = hasty.sign(SIGNER, "too few".into()).await.unwrap_err();
    let ClientError::NoAnswer { nodes, .. } = &error else { panic!("{error}") };
    assert_eq!(nodes.len(), 4, "{error}");
    for id in 1..=3 {
        assert!(matches!(nodes[id - 1].problem, Problem::Unreachable(_)), "{error}");
    }
    assert_eq!(error.to_string().lines().count(), 5, "a line for each node: {error}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}

/// Changes the last byte of everything that it sends.
struct Forger(Arc<dyn Transport>);

impl Transport for Forger {
    fn local(&self) -> NodeId {
        self.0.local()
    }
    fn peers(&self) -> Vec<NodeId> {
        self.0.peers()
    }
    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        let mut bytes = message.to_vec();
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        self.0.send(to, bytes.into())
    }
    fn status(&self) -> Vec<PeerStatus> {
        self.0.status()
    }
}

fn forge(
    transport: Arc<dyn Transport>,
    inbound: mpsc::Receiver<Inbound>,
) -> (Arc<dyn Transport>, mpsc::Receiver<Inbound>) {
    (Arc::new(Forger(transport)), inbound)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_sends_false_shares_is_named() {
    let group = Prepared::new(2, 4)
        .start(|_, _| {}, |id, builder| if id == 2 { builder.transport(forge) } else { builder })
        .await;
    let client = Client::open(&group.client_folder()).unwrap();
    let started = Instant::now();
    let mut named = false;
    for round in 0.. {
        all_work(&group, &client, &format!("with a forger {round}")).await;
        let statuses = client.status().await;
        let honest = statuses.iter().filter(|status| status.node != node(2)).map(|status| &status.status);
        let culprits: Vec<u32> =
            honest.flatten().flat_map(|(status, _)| status.culprits.iter().map(|culprit| culprit.node)).collect();
        assert!(culprits.iter().all(|culprit| *culprit == 2), "an honest node is accused: {culprits:?}");
        named = !culprits.is_empty();
        if named || started.elapsed() > Duration::from_secs(30) {
            break;
        }
    }
    assert!(named, "nobody noticed node 2");
    group.shutdown().await;
}

/// A group in which `api` replaces the API of node 1.
pub(crate) async fn with_other_api(k: u16) -> (TestGroup, TcpListener) {
    let mut prepared = Prepared::new(k, 4);
    let api = prepared.listeners[0].api.take().unwrap();
    api.set_nonblocking(true).unwrap();
    let elsewhere = |id, config: &mut theta_service::NodeConfig| {
        if id == 1 {
            config.listen.api = "127.0.0.1:0".parse().unwrap();
        }
    };
    let group = prepared.start(elsewhere, |_, builder| builder).await;
    (group, TcpListener::from_std(api).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lies_to_clients_is_named() {
    let (group, api) = with_other_api(2).await;
    liar::serve(&group, api);
    let client = Client::open(&group.client_folder()).unwrap();
    all_work(&group, &client, "with a liar").await;

    // The liar answers at once and the others have work to do, so it is first sooner or later.
    let mut caught = [false; 3];
    let started = Instant::now();
    for round in 0.. {
        let text = Bytes::from(format!("round {round}"));
        let signed = client.sign(SIGNER, text.clone()).await.unwrap();
        let drawn = client.flip_coin(COIN, text.clone()).await.unwrap();
        let opened = client.decrypt(CIPHER, seal(&group, &text)).await.unwrap();
        for (caught, bad) in caught.iter_mut().zip([&signed.bad_answers, &drawn.bad_answers, &opened.bad_answers]) {
            assert!(bad.iter().all(|bad| bad.node == node(1)), "{bad:?}");
            *caught |= !bad.is_empty();
        }
        assert!(signed.node != node(1) && drawn.node != node(1) && opened.node != node(1));
        if caught == [true; 3] || started.elapsed() > Duration::from_secs(30) {
            break;
        }
    }
    assert_eq!(caught, [true; 3], "the liar was not caught");

    // Its public keys are not believed either.
    fs::remove_dir_all(group.client_folder().join("keys")).unwrap();
    let stripped = Client::open(&group.client_folder()).unwrap();
    let key = stripped.public_key(SIGNER).await.unwrap();
    assert_eq!(key.key_id(), client.public_key(SIGNER).await.unwrap().key_id());
    group.shutdown().await;
}

/// An address at which somebody listens and says nothing: the words are for people, and not those of a library.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_never_made_is_told_in_words() {
    let (group, _silent) = with_other_api(2).await;
    let options = ClientOptions { connect_timeout: Duration::from_millis(300), ..ClientOptions::default() };
    let client = Client::open_with(&group.client_folder(), options).unwrap();
    let statuses = client.status().await;
    let problem = statuses[0].status.as_ref().unwrap_err();
    assert!(matches!(problem.problem, Problem::Unreachable(_)), "{problem:?}");
    assert!(problem.to_string().contains("no connection within the time"), "{problem}");
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_truthful_key_among_lies_is_not_enough() {
    let (mut group, api) = with_other_api(2).await;
    liar::serve(&group, api);
    fs::remove_dir_all(group.client_folder().join("keys")).unwrap();
    group.kill(2);
    group.kill(3);
    let client = Client::open(&group.client_folder()).unwrap();
    let error = client.public_key(SIGNER).await.unwrap_err();
    let unopposed = matches!(error, ClientError::KeyDisagreement { needed: 2, dispute: KeyDispute::Unopposed, .. });
    assert!(unopposed, "what the liar says cannot be true: {error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_hangs_delays_nobody() {
    let (mut group, api) = with_other_api(2).await;
    // This API accepts connections and never answers.
    let hanging = tokio::spawn(async move {
        let mut taken = Vec::new();
        loop {
            taken.push(api.accept().await.unwrap());
        }
    });
    let options = ClientOptions {
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(60),
        ..ClientOptions::default()
    };
    let client = Client::open_with(&group.client_folder(), options).unwrap();
    let answer = client.sign(SIGNER, "with one that hangs".into()).await.unwrap();
    assert!(answer.latency < Duration::from_secs(20) && answer.bad_answers.is_empty());

    for id in 2..=4 {
        group.kill(id);
    }
    let options = ClientOptions {
        timeout: Duration::from_secs(1),
        connect_timeout: Duration::from_secs(60),
        ..ClientOptions::default()
    };
    let hasty = Client::open_with(&group.client_folder(), options).unwrap();
    let error = hasty.sign(SIGNER, "nobody left".into()).await.unwrap_err();
    let ClientError::NoAnswer { nodes, .. } = &error else { panic!("{error}") };
    assert_eq!(nodes[0].problem, Problem::Silent(Duration::from_secs(1)), "{error}");
    hanging.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_comes_back_is_used_again() {
    let mut group = TestGroup::new().await;
    let client = Client::open(&group.client_folder()).unwrap();
    all_work(&group, &client, "before").await;
    let listeners = theta_service::Listeners::default();
    let config = theta_service::NodeConfig::load(&group.folder.path().join("node-1/node.toml")).unwrap();
    group.nodes[0].take().unwrap().shutdown().await;
    all_work(&group, &client, "without").await;
    let back = theta_service::Node::builder(config).listeners(listeners).start().await.unwrap();
    group.nodes[0] = Some(back);
    let started = Instant::now();
    while client.status().await[0].status.is_err() {
        assert!(started.elapsed() < Duration::from_secs(30), "never connected again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    all_work(&group, &client, "after").await;
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_client_folders() {
    let prepared = Prepared::new(2, 4);
    let folder = prepared.folder.path().join("client");
    let other = prepared.folder.path().join("node-1");
    fs::remove_file(folder.join("client.key")).unwrap();
    let message = Client::open(&folder).unwrap_err().to_string();
    assert!(message.contains("client.key"), "half an identity is none: {message}");
    fs::copy(other.join("node.key"), folder.join("client.key")).unwrap();
    assert!(matches!(Client::open(&folder), Err(OpenError::Identity(_))), "another's key");
    fs::remove_file(folder.join("client.key")).unwrap();
    fs::remove_file(folder.join("client.crt")).unwrap();
    Client::open(&folder).unwrap();
    fs::write(folder.join("keys/broken.pub"), "nonsense").unwrap();
    let message = Client::open(&folder).unwrap_err().to_string();
    assert!(message.contains("broken.pub") && !message.contains('\n'), "{message}");
    fs::remove_file(folder.join("group.toml")).unwrap();
    let message = Client::open(&folder).unwrap_err().to_string();
    assert!(message.contains("group.toml"), "{message}");
}

/// Messages of the full size pass in both directions; nothing between client and node has a smaller bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_messages_pass() {
    let group = TestGroup::new().await;
    let client = Client::open(&group.client_folder()).unwrap();
    let plaintext = Bytes::from(vec![3; 31 << 20]);
    let mut scheme = client.scheme(node(1)).unwrap();
    let request =
        theta_wire::v1::EncryptRequest { key: CIPHER.to_owned(), plaintext: plaintext.clone(), ..Default::default() };
    let ciphertext = scheme.encrypt(request).await.unwrap().into_inner().ciphertext;
    let opened = client.decrypt(CIPHER, ciphertext).await.unwrap();
    assert!(opened.result.expose().as_slice() == &*plaintext);
    group.shutdown().await;
}

/// Answers from the cache need no cryptography but TLS: they show what the service adds to a request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_requests_are_answered_from_the_cache() {
    let group = TestGroup::new().await;
    let client = Client::open(&group.client_folder()).unwrap();
    client.sign(SIGNER, "again and again".into()).await.unwrap();
    let mut one = client.protocol(node(1)).unwrap();
    let request = theta_wire::v1::SignRequest {
        key: SIGNER.to_owned(),
        message: "again and again".into(),
        wait: 0,
        ..Default::default()
    };
    let first = one.sign(request.clone()).await.unwrap().into_inner();
    let started = Instant::now();
    for _ in 0..1000 {
        let again = one.sign(request.clone()).await.unwrap().into_inner();
        assert_eq!(again.instance_id, first.instance_id);
    }
    eprintln!("a cached answer takes {:?}, both ends and the loopback together", started.elapsed() / 1000);
    group.shutdown().await;
}
