//! Every call of both services, by real gRPC clients over real sockets to a real group.

use std::{collections::HashSet, time::Duration};

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_keyfiles::PublicKeyText as _;
use theta_payload::{Aead, Encrypt as _, split_ciphertext};
use theta_statements::{CeremonyRequest, KeyChange};
use theta_wire::v1::{
    self, CeremonyState, InstanceState, Wait, statement, threshold_keys_client::ThresholdKeysClient,
    threshold_protocol_client::ThresholdProtocolClient, threshold_scheme_client::ThresholdSchemeClient,
};
use tonic::Code;

use crate::{
    group::{CIPHER, COIN, KEYS, Prepared, SIGNER, TestGroup},
    sound::eventually,
};

type Protocol = ThresholdProtocolClient;
type Scheme = ThresholdSchemeClient;

async fn protocols(group: &TestGroup) -> Vec<Protocol> {
    let mut clients = Vec::new();
    for id in 1..=4 {
        clients.push(ThresholdProtocolClient::new(group.channel(id).await));
    }
    clients
}

/// Sends a request to all nodes and takes the first node's answer, as an honest client that trusts node 1.
macro_rules! at_all {
    ($clients:expr, $method:ident, $request:expr) => {{
        let request = $request;
        let (mut first, rest) = ($clients[0].clone(), $clients[1..].to_vec());
        for mut client in rest {
            let request = request.clone();
            tokio::spawn(async move { client.$method(request).await });
        }
        first.$method(request).await.map(|response| response.into_inner())
    }};
}

fn sign_request(message: &'static str) -> v1::SignRequest {
    v1::SignRequest { key: SIGNER.to_owned(), message: message.into(), wait: Wait::Done.into(), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_randomizer_for_a_key_that_takes_none_is_refused() {
    let group = TestGroup::new().await;
    let mut client = ThresholdProtocolClient::new(group.channel(1).await);
    let request = v1::SignRequest { randomizer: vec![7; 32].into(), ..sign_request("a message") };
    let refused = client.sign(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("bls04-bls12381-min-pk make no re-randomised signatures"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_protocol_api() {
    let group = TestGroup::new().await;
    let clients = protocols(&group).await;

    let signed = at_all!(clients, sign, sign_request("a message")).unwrap();
    let outcome = signed.outcome.unwrap();
    group.public(SIGNER).verify(b"a message", &outcome.result, &[]).unwrap();
    assert_eq!(outcome.contributors.len(), 2);
    assert!(outcome.culprits.is_empty());

    let again = clients[0].clone().sign(sign_request("a message")).await.unwrap().into_inner();
    assert_eq!(again.instance_id, signed.instance_id, "equal requests meet");
    assert_eq!(again.outcome.unwrap().result, outcome.result);

    let coin = v1::FlipCoinRequest { key: COIN.to_owned(), name: "monday".into(), ..Default::default() };
    let coin = at_all!(clients, flip_coin, coin).unwrap().outcome.unwrap();
    group.public(COIN).verify(b"monday", &coin.result, &coin.proof).unwrap();

    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let plaintext = vec![7; 200_000];
    let ciphertext: Bytes =
        group.public(CIPHER).encrypt(&plaintext, b"label", Aead::Aes256Gcm, &mut rng).unwrap().into();
    let request = v1::DecryptRequest {
        key: CIPHER.to_owned(),
        ciphertext: ciphertext.clone(),
        wait: Wait::Done.into(),
        ..Default::default()
    };
    let decrypted = at_all!(clients, decrypt, request).unwrap();
    assert_eq!(decrypted.outcome.unwrap().result, plaintext);

    let header = Bytes::copy_from_slice(split_ciphertext(&ciphertext).unwrap().0);
    let request =
        v1::DecapsulateRequest { key: CIPHER.to_owned(), header, wait: Wait::Done.into(), ..Default::default() };
    let unwrapped = at_all!(clients, decapsulate, request).unwrap();
    assert_eq!(unwrapped.instance_id, decrypted.instance_id, "decrypting is decapsulating and opening");
    assert_eq!(unwrapped.outcome.unwrap().result.len(), 32);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_watch_and_fetch() {
    let group = TestGroup::new().await;
    let mut clients = protocols(&group).await;
    let request = v1::SignRequest { wait: Wait::Started.into(), ..sign_request("later") };
    let started = clients[0].sign(request.clone()).await.unwrap().into_inner();
    assert!(started.outcome.is_none());
    let id = started.instance_id;

    let get = v1::GetResultRequest { instance_id: id.clone() };
    let running = clients[0].get_result(get.clone()).await.unwrap().into_inner();
    assert_eq!((running.state(), running.shares_needed, running.key.as_str()), (InstanceState::Running, 2, SIGNER));
    let watch = v1::WatchInstanceRequest { instance_id: id.clone() };
    let mut changes = clients[0].watch_instance(watch).await.unwrap().into_inner();
    assert_eq!(changes.message().await.unwrap().unwrap().state(), InstanceState::Running);

    clients[1].sign(request).await.unwrap();
    let mut last = None;
    while let Some(status) = changes.message().await.unwrap() {
        last = Some(status);
    }
    let last = last.unwrap();
    assert_eq!(last.state(), InstanceState::Finished);
    let fetched = clients[0].get_result(get).await.unwrap().into_inner();
    assert_eq!(fetched.outcome.as_ref().unwrap().result, last.outcome.unwrap().result);
    group.public(SIGNER).verify(b"later", &fetched.outcome.unwrap().result, &[]).unwrap();

    let unknown = v1::GetResultRequest { instance_id: Bytes::from_static(&[9; 32]) };
    assert_eq!(clients[0].get_result(unknown).await.unwrap_err().code(), Code::NotFound);
    let unknown = v1::WatchInstanceRequest { instance_id: Bytes::from_static(&[9; 32]) };
    assert_eq!(clients[0].watch_instance(unknown).await.unwrap_err().code(), Code::NotFound);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_status() {
    let group = TestGroup::new().await;
    let mut client = protocols(&group).await.swap_remove(2);
    let keys = client.list_keys(v1::ListKeysRequest {}).await.unwrap().into_inner().keys;
    let names: HashSet<&str> = keys.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(names, KEYS.iter().map(|(name, _)| *name).collect());
    for (name, suite) in KEYS {
        let request = v1::GetPublicKeyRequest { key: name.to_owned() };
        let answer = client.get_public_key(request).await.unwrap().into_inner();
        let info = answer.info.unwrap();
        assert_eq!((info.suite.as_str(), info.threshold, info.nodes), (suite.name(), 2, 4));
        assert_eq!(answer.public_key_file, group.public(name).to_text(&name.parse().unwrap()));
    }
    let missing = client.get_public_key(v1::GetPublicKeyRequest { key: "absent".to_owned() }).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    assert!(!missing.message().contains(SIGNER), "which keys there are is not told here: {}", missing.message());

    let status = client.get_status(v1::GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!((status.node, status.nodes, status.peers.len()), (3, 4, 3));
    group.shutdown().await;
}

fn message_statement(message: &'static str) -> Option<v1::Statement> {
    Some(v1::Statement { statement: Some(statement::Statement::Message(message.into())) })
}

async fn schemes(group: &TestGroup) -> Vec<Scheme> {
    let mut clients = Vec::new();
    for id in 1..=4 {
        clients.push(ThresholdSchemeClient::new(group.channel(id).await));
    }
    clients
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scheme_api_signs_by_hand() {
    let group = TestGroup::new().await;
    let mut clients = schemes(&group).await;
    let key = SIGNER.to_owned();
    let mut shares = Vec::new();
    for client in &mut clients[1..3] {
        let request =
            v1::CreateShareRequest { key: key.clone(), statement: message_statement("by hand"), ..Default::default() };
        let made = client.create_share(request).await.unwrap().into_inner();
        shares.push(v1::IndexedShare { node: made.node, share: made.share });
    }
    assert_eq!(shares.iter().map(|share| share.node).collect::<Vec<_>>(), [2, 3]);
    let check = |node, share: Bytes| v1::VerifyShareRequest {
        key: key.clone(),
        statement: message_statement("by hand"),
        node,
        share,
    };
    let good = clients[0].verify_share(check(2, shares[0].share.clone())).await.unwrap().into_inner();
    assert!(good.valid, "{}", good.reason);
    let false_share = clients[0].verify_share(check(3, shares[0].share.clone())).await.unwrap().into_inner();
    assert!(!false_share.valid && !false_share.reason.is_empty(), "another node's share");

    let combine = v1::CombineRequest { key: key.clone(), statement: message_statement("by hand"), shares };
    let outcome = clients[3].combine(combine.clone()).await.unwrap().into_inner().outcome.unwrap();
    assert_eq!(outcome.contributors, [2, 3]);
    group.public(SIGNER).verify(b"by hand", &outcome.result, &[]).unwrap();
    let verify = |message: &'static str| v1::VerifyRequest {
        key: key.clone(),
        message: message.into(),
        result: outcome.result.clone(),
        proof: Bytes::new(),
    };
    assert!(clients[0].verify(verify("by hand")).await.unwrap().into_inner().valid);
    assert!(!clients[0].verify(verify("another")).await.unwrap().into_inner().valid);

    let mut few = combine.clone();
    few.shares.truncate(1);
    assert_eq!(clients[0].combine(few).await.unwrap_err().code(), Code::InvalidArgument);
    let mut swapped = combine;
    swapped.shares[0].node = 4;
    let error = clients[0].combine(swapped).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("node 4"), "the liar is named: {}", error.message());
    group.shutdown().await;
}

/// Makes all nodes hold a ceremony, and waits for its end at each of them.
async fn hold(group: &TestGroup, change: KeyChange) {
    let CeremonyRequest { nonce, change } = CeremonyRequest { nonce: [7; 32], change };
    let request = v1::HoldCeremonyRequest {
        change: change.encode().into(),
        nonce: Bytes::copy_from_slice(&nonce),
        ..Default::default()
    };
    let mut clients = Vec::new();
    for node in group.nodes.iter().flatten() {
        clients.push(ThresholdKeysClient::new(group.channel(node.id().get()).await));
    }
    let mut watched = Vec::new();
    for client in &mut clients {
        // The keys that a dealer brought come into the ledger soon after the start; until then the node says: ask again.
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        let id = loop {
            match client.hold_ceremony(request.clone()).await {
                Ok(status) => break status.into_inner().id,
                Err(status) => {
                    let soon = status.code() == Code::Unavailable && tokio::time::Instant::now() < deadline;
                    assert!(soon, "{status}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        };
        watched.push(client.watch_ceremony(v1::WatchCeremonyRequest { id }).await.unwrap().into_inner());
    }
    for mut changes in watched {
        let mut last = None;
        while let Some(status) = changes.message().await.unwrap() {
            last = Some(status);
        }
        let last = last.unwrap();
        assert_eq!(last.state(), CeremonyState::Activated, "{last:?}");
    }
}

/// After a reshare to nodes 1, 2, 3 and 5 node 5 has the share of index 4; callers still use node numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scheme_api_speaks_of_nodes_whatever_their_share_indices() {
    let group = Prepared::new(2, 5).start(|_, _| {}, |_, node| node).await;
    let name = SIGNER.parse().unwrap();
    hold(&group, KeyChange::Reshare { key: name, version: None, k: 2, holders: vec![1, 2, 3, 5] }).await;
    let mut clients = Vec::new();
    for id in 1..=5 {
        clients.push(ThresholdSchemeClient::new(group.channel(id).await));
    }
    let (key, statement) = (SIGNER.to_owned(), message_statement("moved"));
    let create = v1::CreateShareRequest { key: key.clone(), statement: statement.clone(), ..Default::default() };
    let mut shares = Vec::new();
    for node in [5, 2, 3] {
        let made = clients[node - 1].create_share(create.clone()).await.unwrap().into_inner();
        assert_eq!(made.node, node as u32);
        shares.push(v1::IndexedShare { node: made.node, share: made.share });
    }
    let refused = clients[3].create_share(create).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "node 4 holds nothing any more: {refused}");

    // Anybody can verify shares, also node 4, which has only the public key.
    for client in &mut clients {
        for share in &shares {
            let v1::IndexedShare { node, share } = share.clone();
            let check = v1::VerifyShareRequest { key: key.clone(), statement: statement.clone(), node, share };
            let checked = client.verify_share(check).await.unwrap().into_inner();
            assert!(checked.valid, "node {node}: {}", checked.reason);
        }
    }
    let check = |node, share: &Bytes| v1::VerifyShareRequest {
        key: key.clone(),
        statement: statement.clone(),
        node,
        share: share.clone(),
    };
    let theirs = clients[0].verify_share(check(5, &shares[1].share)).await.unwrap().into_inner();
    assert_eq!((theirs.valid, theirs.reason.as_str()), (false, "false shares, of node 5"));
    let garbage = clients[0].verify_share(check(5, &Bytes::from_static(&[1]))).await.unwrap().into_inner();
    assert!(!garbage.valid && garbage.reason.starts_with("the share of node 5 is malformed"), "{}", garbage.reason);
    let stranger = clients[0].verify_share(check(4, &shares[0].share)).await.unwrap_err();
    assert_eq!(stranger.code(), Code::InvalidArgument);
    assert!(stranger.message().contains("node 4 holds no share") && stranger.message().contains("1, 2, 3, 5"));

    let combine =
        |shares: Vec<v1::IndexedShare>| v1::CombineRequest { key: key.clone(), statement: statement.clone(), shares };
    let outcome = clients[3].combine(combine(shares.clone())).await.unwrap().into_inner().outcome.unwrap();
    assert_eq!(outcome.contributors, [5, 2]);
    group.public(SIGNER).verify(b"moved", &outcome.result, &[]).unwrap();
    for (lie, words) in [
        (v1::IndexedShare { node: 5, share: shares[1].share.clone() }, "false shares, of node 5"),
        (v1::IndexedShare { node: 5, share: Bytes::from_static(&[1]) }, "the share of node 5 is malformed"),
        (shares[2].clone(), "two shares of node 3"),
        (v1::IndexedShare { node: 4, share: shares[0].share.clone() }, "node 4 holds no share"),
    ] {
        let refused = clients[0].combine(combine(vec![shares[2].clone(), lie])).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains(words), "{words}: {refused}");
    }

    // The protocol API names the same nodes.
    let mut asked = Vec::new();
    for id in [3, 5] {
        let mut client = ThresholdProtocolClient::new(group.channel(id).await);
        asked.push(tokio::spawn(async move { client.sign(sign_request("moved on")).await }));
    }
    for answer in asked {
        let mut contributors = answer.await.unwrap().unwrap().into_inner().outcome.unwrap().contributors;
        contributors.sort_unstable();
        assert_eq!(contributors, [3, 5]);
    }
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scheme_api_encrypts() {
    let group = TestGroup::new().await;
    let mut clients = schemes(&group).await;
    for aead in ["", "chacha20-poly1305", "aes-256-gcm"] {
        let request = v1::EncryptRequest {
            key: CIPHER.to_owned(),
            plaintext: "secret".into(),
            label: "context".into(),
            aead: aead.to_owned(),
        };
        let ciphertext = clients[0].encrypt(request).await.unwrap().into_inner().ciphertext;
        let check = |ciphertext: Bytes| v1::VerifyCiphertextRequest { key: CIPHER.to_owned(), ciphertext };
        let whole = clients[1].verify_ciphertext(check(ciphertext.clone())).await.unwrap().into_inner();
        assert!(whole.valid, "{}", whole.reason);
        assert_eq!(whole.label, "context");
        let header = Bytes::copy_from_slice(split_ciphertext(&ciphertext).unwrap().0);
        assert!(clients[1].verify_ciphertext(check(header)).await.unwrap().into_inner().valid);
        for position in [6, 40, ciphertext.len() - 1] {
            let mut changed = ciphertext.to_vec();
            changed[position] ^= 1;
            let changed = clients[1].verify_ciphertext(check(changed.into())).await.unwrap().into_inner();
            assert!(!changed.valid && !changed.reason.is_empty(), "byte {position}");
        }
    }
    let request = v1::EncryptRequest { key: CIPHER.to_owned(), aead: "rot13".to_owned(), ..Default::default() };
    assert_eq!(clients[0].encrypt(request).await.unwrap_err().code(), Code::InvalidArgument);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_reflection() {
    use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };

    let group = TestGroup::new().await;
    let channel = group.channel(1).await;
    let mut health = HealthClient::new(channel.clone());
    for service in ["", "theta.v1.ThresholdProtocol", "theta.v1.ThresholdScheme"] {
        let answer = health.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service:?}");
    }
    let absent = health.check(HealthCheckRequest { service: "absent".to_owned() }).await.unwrap_err();
    assert_eq!(absent.code(), Code::NotFound);

    let mut reflection = ServerReflectionClient::new(channel.clone());
    let list = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..Default::default()
    };
    let mut answers = reflection.server_reflection_info(tokio_stream::once(list)).await.unwrap().into_inner();
    let Some(MessageResponse::ListServicesResponse(services)) =
        answers.message().await.unwrap().unwrap().message_response
    else {
        panic!("no list of services")
    };
    let names: HashSet<String> = services.service.into_iter().map(|service| service.name).collect();
    for name in ["theta.v1.ThresholdProtocol", "theta.v1.ThresholdScheme", "grpc.health.v1.Health"] {
        assert!(names.contains(name), "{names:?}");
    }

    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<v1::ListKeysRequest, v1::ListKeysResponse>::default();
    let path = "/theta.v1.Nothing/Nothing".parse().unwrap();
    let error = grpc.unary(tonic::Request::new(v1::ListKeysRequest {}), path, codec).await.unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_and_readiness_over_http() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let mut group = TestGroup::new().await;
    let clients = protocols(&group).await;
    at_all!(clients, sign, sign_request("counted")).unwrap();
    let address = group.node(1).metrics_address().unwrap();
    let get = async |path: &str| {
        let mut tcp = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        tcp.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(get("/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(get("/readyz").await.starts_with("HTTP/1.1 200"));
    assert!(get("/nothing").await.starts_with("HTTP/1.1 404"));
    // A request's place is released when the last byte of its answer has left, which the caller may see earlier.
    eventually("the request's place is given back", async || {
        get("/metrics").await.contains("theta_api_in_flight_requests 0")
    })
    .await;
    let metrics = get("/metrics").await;
    for expected in [
        "theta_api_requests_total{method=\"Sign\",code=\"OK\"} 1",
        "theta_api_request_duration_seconds_bucket",
        "theta_peer_connected{peer=\"2\"} 1",
        "theta_peer_messages_sent_total{peer=\"2\"}",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
        "theta_clock_seconds 1",
        "theta_keys{state=\"active\"} ",
        "theta_keys_spare_holders 2\n",
        "theta_keys_lost_shares 0",
        "theta_quarantines 0",
        "theta_nonces_ready ",
        "theta_presignatures_ready ",
        "theta_set_ups_ready ",
        "theta_ceremonies_running 0",
        "theta_ceremony_oldest_seconds 0",
        "theta_ledger_behind 0",
        "theta_api_in_flight_requests 0",
        "theta_api_in_flight_bytes 0",
        "theta_api_connections 1",
        "theta_api_shed_requests_total 0",
        "theta_stage_seconds",
        "# EOF",
    ] {
        assert!(metrics.contains(expected), "{expected} is not in\n{metrics}");
    }
    for id in 2..=4 {
        group.kill(id);
    }
    eventually("not ready without peers", async || get("/readyz").await.starts_with("HTTP/1.1 503")).await;
    // Alone it is one holder short of the two that each key takes.
    assert!(get("/metrics").await.contains("theta_keys_spare_holders -1\n"));
}
