//! Attacks on a node's bounds: requests without bodies, endless handshakes, unread answers. Honest clients continue.

use std::{num::NonZeroUsize, time::Duration};

use bytes::{Bytes, BytesMut};
use h2::{RecvStream, SendStream, client::SendRequest};
use prost::Message;
use theta_names::NodeId;
use theta_network::{Identity, tls};
use theta_service::{NodeConfig, config::LimitsConfig};
use theta_wire::v1;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
    time,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::Code;

use crate::{
    group::{CIPHER, COIN, Prepared, TestGroup},
    sound::{eventually, works},
};

const SIGN: &str = "/theta.v1.ThresholdProtocol/Sign";
const ENCRYPT: &str = "/theta.v1.ThresholdScheme/Encrypt";

fn size(value: usize) -> NonZeroUsize {
    NonZeroUsize::new(value).unwrap()
}

/// A group of four whose policy knows a token, so that it accepts connections without a certificate, and a second client.
async fn group(limits: impl Fn(&mut LimitsConfig)) -> (TestGroup, Identity) {
    let prepared = Prepared::new(2, 4);
    let made = Identity::generate("other").unwrap();
    let other = Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap();
    let policy = format!(
        "{}\n[[client]]\nname = \"other\"\ncertificates = [\"{}\"]\n\n[[rule]]\nname = \"other\"\neffect = \"allow\"\n\
         clients = [\"other\"]\nkeys = [\"*\"]\noperations = [\"*\"]\n\n[[client]]\nname = \"robot\"\ntokens = [\"{}\"]\n",
        prepared.open_policy(),
        other.fingerprint(),
        "ed25519:03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
    );
    prepared.write_policy(&policy);
    let configure = |_, config: &mut NodeConfig| limits(&mut config.limits);
    (prepared.start(configure, |_, node| node).await, other)
}

/// The value of a metric of node 1.
async fn metric(group: &TestGroup, name: &str) -> usize {
    let mut tcp = TcpStream::connect(group.node(1).metrics_address().unwrap()).await.unwrap();
    tcp.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    tcp.read_to_string(&mut text).await.unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
}

async fn secured(group: &TestGroup, id: u16, identity: Option<&Identity>) -> std::io::Result<TlsStream<TcpStream>> {
    let node = group.group.node(NodeId::try_from(id).unwrap()).unwrap();
    let config = match identity {
        Some(identity) => tls::client_config(identity, node.certificate, &[b"h2"]).unwrap(),
        None => tls::anonymous_client_config(node.certificate, &[b"h2"]).unwrap(),
    };
    let tcp = TcpStream::connect(&node.api_address).await?;
    TlsConnector::from(config).connect(tls::server_name(), tcp).await
}

/// An HTTP/2 connection that does as an attacker likes.
struct Raw {
    requests: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

/// A request whose body is still open, and its answer.
struct Open {
    answer: h2::client::ResponseFuture,
    body: SendStream<Bytes>,
}

impl Raw {
    /// `window`: bytes of each answer that the node may send before they are read.
    async fn open(group: &TestGroup, id: u16, identity: Option<&Identity>, window: u32) -> Self {
        let tls = secured(group, id, identity).await.unwrap();
        let (requests, connection) = h2::client::Builder::new()
            .initial_window_size(window)
            .initial_max_send_streams(10_000)
            .handshake(tls)
            .await
            .unwrap();
        Self { requests, driver: tokio::spawn(async move { drop(connection.await) }) }
    }

    /// Sends the headers of a request. `None` if the node takes none at present.
    async fn headers(&self, path: &str) -> Option<Open> {
        let request = http::Request::post(format!("http://node{path}")).header("content-type", "application/grpc");
        let request = request.header("te", "trailers").body(()).unwrap();
        let ready = self.requests.clone().ready();
        let mut requests = time::timeout(Duration::from_millis(500), ready).await.ok()?.ok()?;
        let (answer, body) = requests.send_request(request, false).ok()?;
        Some(Open { answer, body })
    }

    /// Sends a whole request.
    async fn send(&self, path: &str, message: &impl Message) -> Option<h2::client::ResponseFuture> {
        let mut open = self.headers(path).await?;
        let mut framed = BytesMut::from(&[0][..]);
        framed.extend_from_slice(&(message.encoded_len() as u32).to_be_bytes());
        message.encode(&mut framed).unwrap();
        let mut bytes = framed.freeze();
        while !bytes.is_empty() {
            open.body.reserve_capacity(bytes.len());
            // A node that has refused the request takes no more of it.
            let Some(Ok(room)) = std::future::poll_fn(|context| open.body.poll_capacity(context)).await else { break };
            let piece = bytes.split_to(room.min(bytes.len()));
            if open.body.send_data(piece, bytes.is_empty()).is_err() {
                break;
            }
        }
        Some(open.answer)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The gRPC status of an answer: in its headers, or after its body.
async fn status(answer: http::Response<RecvStream>) -> Code {
    let (head, mut body) = answer.into_parts();
    let code = |headers: &http::HeaderMap| headers.get("grpc-status").map(|code| Code::from_bytes(code.as_bytes()));
    if let Some(code) = code(&head.headers) {
        return code;
    }
    while let Some(Ok(data)) = body.data().await {
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    body.trailers().await.ok().flatten().and_then(|trailers| code(&trailers)).unwrap_or(Code::Unknown)
}

/// Opens 1,100 requests at each node whose bodies never come, as a stranger or as a client that may do everything.
async fn without_bodies(group: &TestGroup, identity: Option<&Identity>) -> (Vec<Raw>, Vec<Open>) {
    let (mut connections, mut held) = (Vec::new(), Vec::new());
    for id in 1..=4 {
        let mut sent = 0;
        while sent < 1_100 {
            let raw = Raw::open(group, id, identity, 65_535).await;
            for _ in 0..100 {
                // The node has closed the connection, which ends the attack on it.
                let Some(open) = raw.headers(SIGN).await else { break };
                held.push(open);
            }
            sent += 100;
            connections.push(raw);
        }
    }
    (connections, held)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strangers_requests_without_bodies_stop_nobody() {
    let (group, _) = group(|limits| {
        limits.max_in_flight = size(100);
        limits.body_seconds = size(3600);
        limits.stranger_idle_seconds = size(3600);
    })
    .await;
    let held = without_bodies(&group, None).await;
    works(&group, "among strangers").await;
    assert!(metric(&group, "theta_api_in_flight_requests").await <= 64);
    assert!(metric(&group, "theta_api_shed_requests_total").await > 0);
    drop(held);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clients_requests_without_bodies_leave_others_their_places() {
    let (group, other) = group(|limits| {
        limits.max_in_flight = size(100);
        limits.body_seconds = size(3600);
    })
    .await;
    let held = without_bodies(&group, Some(&other)).await;
    works(&group, "besides a greedy client").await;
    // All common places, and the eight that are reserved for the client.
    assert!(metric(&group, "theta_api_in_flight_requests").await <= 108);
    drop(held);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_has_its_time() {
    let (group, other) = group(|limits| limits.body_seconds = size(1)).await;
    let raw = Raw::open(&group, 1, Some(&other), 65_535).await;
    let silent = raw.headers(SIGN).await.unwrap();
    let mut slow = raw.headers(SIGN).await.unwrap();
    let drip = tokio::spawn(async move {
        // The beginning of a message that takes an hour to arrive.
        let _ = slow.body.send_data(Bytes::from_static(&[0, 0, 0, 14, 16]), false);
        for _ in 0..3_600 {
            time::sleep(Duration::from_millis(100)).await;
            if slow.body.send_data(Bytes::from_static(&[8]), false).is_err() {
                break;
            }
        }
    });
    for answer in [silent.answer, slow.answer] {
        let answer = time::timeout(Duration::from_secs(60), answer).await.unwrap().unwrap();
        assert_eq!(status(answer).await, Code::DeadlineExceeded);
    }
    drip.abort();
    eventually("the places are given back", async || metric(&group, "theta_api_in_flight_requests").await == 0).await;
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_handshakes_keep_no_client_out() {
    let (group, _) = group(|limits| {
        limits.max_handshakes = size(8);
        limits.handshake_seconds = size(3600);
        limits.max_connections = size(64);
    })
    .await;
    let mut sockets = Vec::new();
    for node in 1..=4 {
        let address = group.node(node).api_address();
        for number in 0..200 {
            let mut tcp = TcpStream::connect(address).await.unwrap();
            if number % 2 == 0 {
                // The beginning of a ClientHello that never ends.
                tcp.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
            }
            sockets.push(tcp);
        }
    }
    eventually("the oldest are shed", async || metric(&group, "theta_api_shed_handshakes_total").await >= 190).await;
    works(&group, "among silent sockets").await;
    assert!(metric(&group, "theta_api_handshakes").await <= 8);
    drop(sockets);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strangers_idle_connections_end_and_keep_nobody_out() {
    let (group, other) = group(|limits| {
        limits.max_connections = size(32);
        limits.max_stranger_connections = size(8);
        limits.max_client_connections = size(4);
        limits.stranger_idle_seconds = size(1);
    })
    .await;
    let mut strangers = Vec::new();
    for _ in 0..100 {
        strangers.push(secured(&group, 1, None).await.unwrap());
        assert!(metric(&group, "theta_api_connections").await <= 8 + 4);
    }
    for _ in 0..20 {
        strangers.push(secured(&group, 1, Some(&other)).await.unwrap());
        assert!(metric(&group, "theta_api_connections").await <= 8 + 4 + 4);
    }
    works(&group, "among idle connections").await;
    eventually("strangers without requests are sent away", async || {
        metric(&group, "theta_api_connections").await <= 4 + 4
    })
    .await;
    let mut end = [0; 64];
    let first = time::timeout(Duration::from_secs(60), async {
        while !matches!(strangers[0].read(&mut end).await, Ok(0) | Err(_)) {}
    });
    first.await.unwrap();
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_takes_count_and_end() {
    const MOST: usize = 8 << 20;
    const ANSWER: usize = 1 << 20;
    let (group, other) = group(|limits| {
        limits.max_client_bytes = size(MOST);
        limits.response_seconds = size(10);
    })
    .await;
    let raw = Raw::open(&group, 1, Some(&other), 0).await;
    let plaintext = Bytes::from(vec![7; ANSWER]);
    let request = v1::EncryptRequest { key: CIPHER.to_owned(), plaintext, ..Default::default() };
    let (mut refused, mut held, mut most) = (0, Vec::new(), 0);
    for _ in 0..16 {
        let Some(answer) = raw.send(ENCRYPT, &request).await else { break };
        let answer = time::timeout(Duration::from_secs(60), answer).await.unwrap();
        most = most.max(metric(&group, "theta_api_in_flight_bytes").await);
        match answer {
            Ok(answer) if answer.headers().get("grpc-status").is_none() => held.push(answer),
            Ok(answer) => {
                assert_eq!(status(answer).await, Code::ResourceExhausted);
                refused += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(most <= MOST, "{most} bytes were held for one client");
    assert!(most >= 2 * ANSWER, "answers count: {most}");
    assert!(held.len() >= 2 && held.len() + refused == 16, "{} held, {refused} refused", held.len());
    works(&group, "besides one who does not read").await;
    eventually("the connection is closed", async || raw.driver.is_finished()).await;
    eventually("nothing is held", async || metric(&group, "theta_api_in_flight_bytes").await == 0).await;
    drop(held);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_that_reads_gets_its_answer() {
    const ANSWER: usize = 1 << 20;
    let (group, other) = group(|limits| limits.response_seconds = size(5)).await;
    let raw = Raw::open(&group, 1, Some(&other), 65_535).await;
    let plaintext = Bytes::from(vec![7; ANSWER]);
    let request = v1::EncryptRequest { key: CIPHER.to_owned(), plaintext, ..Default::default() };
    let answer = raw.send(ENCRYPT, &request).await.unwrap().await.unwrap();
    let mut body = answer.into_body();
    let mut read = 0;
    while let Some(data) = body.data().await {
        let length = data.unwrap().len();
        read += length;
        // The whole body takes about twice the time allowed.
        time::sleep(Duration::from_millis(10 * length as u64 / 1024)).await;
        body.flow_control().release_capacity(length).unwrap();
    }
    assert!(read > ANSWER, "{read}");
    group.shutdown().await;
}

/// Two clients read the log as slowly as they can, in as many streams as they may have: nothing else waits for them, not even a new policy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_of_the_log_hold_up_nothing() {
    let (group, other) = group(|limits| limits.max_in_flight = size(10_000)).await;
    let protocol = v1::threshold_protocol_client::ThresholdProtocolClient::new(group.channel(1).await);
    for number in 0..400 {
        let name = format!("coin {number}").into();
        let request =
            v1::FlipCoinRequest { key: COIN.to_owned(), name, wait: v1::Wait::Started.into(), ..Default::default() };
        protocol.clone().flip_coin(request).await.unwrap();
    }
    let mut streams = Vec::new();
    for channel in [group.channel(1).await, group.channel_as(1, &other).await.unwrap()] {
        let governance = v1::governance_client::GovernanceClient::new(channel);
        for _ in 0..256 {
            let asked = v1::ReadAuditRequest { from: 0, count: 0 };
            streams.push(governance.clone().read_audit(asked).await.unwrap().into_inner());
        }
    }
    time::sleep(Duration::from_secs(1)).await;
    // Both need a thread that may block.
    let mut governance = v1::governance_client::GovernanceClient::new(group.channel(1).await);
    let asked = v1::ExplainPolicyRequest {
        client: "other".to_owned(),
        operation: "sign".to_owned(),
        key: COIN.to_owned(),
        ..Default::default()
    };
    let explained = time::timeout(Duration::from_secs(10), governance.explain_policy(asked)).await;
    assert_eq!(explained.expect("a thread is free").unwrap().into_inner().answer, "allow");
    let reloaded = group.set_policy(1, "format = 1\n");
    time::timeout(Duration::from_secs(20), reloaded).await.expect("the policy is read again");
    drop(streams);
    group.shutdown().await;
}
