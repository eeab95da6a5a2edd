//! One client requests as much as it can: it gets what the policy allows, and the others still find places.

use std::{num::NonZeroUsize, time::Duration};

use crate::group::{CIPHER, Prepared, SIGNER, TestGroup};
use theta_network::Identity;
use theta_wire::v1::{
    self, Wait, threshold_protocol_client::ThresholdProtocolClient, threshold_scheme_client::ThresholdSchemeClient,
};
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};

type Protocol = ThresholdProtocolClient;

/// Two clients that may do everything; the first has these limits.
fn policy(greedy: &str, other: &str, limits: &str) -> String {
    format!(
        "format = 1\n[[client]]\nname = \"greedy\"\ncertificates = [\"{greedy}\"]\n{limits}\n[[client]]\nname = \"other\"\n\
         certificates = [\"{other}\"]\n[[rule]]\nname = \"all\"\neffect = \"allow\"\nclients = [\"*\"]\nkeys = [\"*\"]\n\
         operations = [\"*\"]\n"
    )
}

/// A group, and the two clients' connections to its first node.
async fn group_with(limits: &str, places: usize) -> (TestGroup, Protocol, Protocol) {
    let prepared = Prepared::new(2, 4);
    let made = Identity::generate("other").unwrap();
    let other = Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap();
    let greedy = prepared.group.clients()[0].certificate;
    prepared.write_policy(&policy(&greedy.to_string(), &made.fingerprint.to_string(), limits));
    let bound = |_, config: &mut theta_service::NodeConfig| {
        config.limits.max_in_flight = NonZeroUsize::new(places).unwrap();
    };
    let group = prepared.start(bound, |_, node| node).await;
    let other = group.channel_as(1, &other).await.unwrap();
    let greedy = Protocol::new(group.channel(1).await);
    (group, greedy, Protocol::new(other))
}

fn sign(message: String, wait: Wait) -> v1::SignRequest {
    v1::SignRequest { key: SIGNER.to_owned(), message: message.into(), wait: wait.into(), ..Default::default() }
}

fn is_exhausted(status: &Status, words: &str) {
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains(words), "{status}");
}

/// One client submits far more than its quota without waiting. The other one can still start its requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submissions_that_nobody_waits_for_take_no_more_than_their_client_may() {
    let (group, mut greedy, mut other) = group_with("limits = { instances = 10 }", 1_000).await;
    let mut ids = Vec::new();
    for number in 0..50 {
        match greedy.sign(sign(format!("greedy {number}"), Wait::Started)).await {
            Ok(started) => ids.push(started.into_inner().instance_id),
            Err(status) => is_exhausted(&status, "client greedy has 10 running instances"),
        }
    }
    assert_eq!(ids.len(), 10);
    for number in 0..50 {
        other.sign(sign(format!("other {number}"), Wait::Started)).await.unwrap();
    }
    // An instance that ends releases its place.
    let mut second = Protocol::new(group.channel(2).await);
    second.sign(sign("greedy 0".to_owned(), Wait::Done)).await.unwrap();
    let again = async {
        while greedy.sign(sign("greedy again".to_owned(), Wait::Started)).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(50), again).await.unwrap();
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submissions_have_a_rate_and_a_burst() {
    let (group, mut greedy, mut other) = group_with("limits = { submissions = \"1/h\", burst = 5 }", 1_000).await;
    let mut taken = 0;
    for number in 0..20 {
        match greedy.sign(sign(format!("greedy {number}"), Wait::Started)).await {
            Ok(_) => taken += 1,
            Err(status) => is_exhausted(&status, "client greedy may send 1/h, burst 5: again in"),
        }
    }
    assert_eq!(taken, 5);
    other.sign(sign("other".to_owned(), Wait::Started)).await.unwrap();
    group.shutdown().await;
}

/// Who carries shares by itself gets no more of them than by requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shares_of_the_scheme_api_count_as_submissions() {
    let (group, mut greedy, _other) = group_with("limits = { submissions = \"1/h\", burst = 2 }", 1_000).await;
    let mut scheme = ThresholdSchemeClient::new(group.channel(1).await);
    let share = |text: &'static str| {
        let statement = Some(v1::statement::Statement::Message(text.into()));
        let statement = Some(v1::Statement { statement });
        v1::CreateShareRequest { key: SIGNER.to_owned(), statement, ..Default::default() }
    };
    scheme.create_share(share("one")).await.unwrap();
    greedy.sign(sign("two".to_owned(), Wait::Started)).await.unwrap();
    let refused = scheme.create_share(share("three")).await.unwrap_err();
    is_exhausted(&refused, "client greedy may send 1/h, burst 2: again in");
    group.shutdown().await;
}

/// A client that may use a key may have the node compute with its public part, by no rule and so by no rule's rate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn computations_of_who_may_only_use_a_key_have_a_rate() {
    let group = TestGroup::new().await;
    let certificate = group.client_identity().fingerprint();
    let client = format!(
        "format = 1\n[[client]]\nname = \"user\"\ncertificates = [\"{certificate}\"]\nlimits = {{ submissions = \"1/h\", burst = 3 }}\n"
    );
    let rule = format!(
        "[[rule]]\nname = \"opens\"\neffect = \"allow\"\nclients = [\"user\"]\nkeys = [\"{CIPHER}\"]\noperations = [\"decapsulate\"]\n"
    );
    group.set_policy(1, &(client + &rule)).await;
    let mut scheme = ThresholdSchemeClient::new(group.channel(1).await);
    let request = v1::EncryptRequest { key: CIPHER.to_owned(), plaintext: "secret".into(), ..Default::default() };
    let ciphertext = scheme.encrypt(request.clone()).await.unwrap().into_inner().ciphertext;
    let check = v1::VerifyCiphertextRequest { key: CIPHER.to_owned(), ciphertext };
    assert!(scheme.verify_ciphertext(check.clone()).await.unwrap().into_inner().valid);
    scheme.encrypt(request.clone()).await.unwrap();
    let words = "client user may send 1/h, burst 3: again in";
    is_exhausted(&scheme.encrypt(request).await.unwrap_err(), words);
    is_exhausted(&scheme.verify_ciphertext(check).await.unwrap_err(), words);
    let statement = Some(v1::Statement { statement: None });
    let share = v1::VerifyShareRequest { key: CIPHER.to_owned(), statement: statement.clone(), ..Default::default() };
    is_exhausted(&scheme.verify_share(share).await.unwrap_err(), words);
    let combine = v1::CombineRequest { key: CIPHER.to_owned(), statement, ..Default::default() };
    is_exhausted(&scheme.combine(combine).await.unwrap_err(), words);
    // To read the public part costs nothing.
    let mut protocol = Protocol::new(group.channel(1).await);
    protocol.get_public_key(v1::GetPublicKeyRequest { key: CIPHER.to_owned() }).await.unwrap();
    group.shutdown().await;
}

/// Streams that watch an endless instance. Each used to hold a place among the calls that a node serves at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_streams_take_no_more_than_their_client_may() {
    let (group, mut greedy, mut other) = group_with("limits = { streams = 5 }", 20).await;
    let started = greedy.sign(sign("watched".to_owned(), Wait::Started)).await.unwrap().into_inner();
    let watch = v1::WatchInstanceRequest { instance_id: started.instance_id };
    let mut streams = Vec::new();
    for _ in 0..40 {
        match greedy.watch_instance(watch.clone()).await {
            Ok(stream) => streams.push(stream.into_inner()),
            Err(status) => is_exhausted(&status, "client greedy has 5 streams"),
        }
    }
    assert_eq!(streams.len(), 5);
    other.list_keys(v1::ListKeysRequest {}).await.unwrap();
    other.sign(sign("other".to_owned(), Wait::Started)).await.unwrap();
    drop(streams);
    let again = async {
        while greedy.watch_instance(watch.clone()).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(50), again).await.unwrap();
    group.shutdown().await;
}
