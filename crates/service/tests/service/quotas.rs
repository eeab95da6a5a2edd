//! One client requests as much as it can: it gets what the policy allows, and the others still find places.

use std::{num::NonZeroUsize, time::Duration};

use crate::group::{Prepared, SIGNER, TestGroup};
use theta_network::Identity;
use theta_wire::v1::{self, Wait, threshold_protocol_client::ThresholdProtocolClient};
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
