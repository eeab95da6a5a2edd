//! Every node decides about every request by its own policy: over real sockets, with every kind of client.

mod signed;
mod slots;
mod tokens;

use std::time::Duration;

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_client::{Client, ClientError, ClientOptions, Credentials, Problem, audit};
use theta_names::NodeId;
use theta_network::Identity;
use theta_payload::{Aead, Encrypt as _};
use theta_schemes::groups::Secret;
use theta_statements::{SigningKey, Token};
use theta_wire::v1;
use tonic::{Code, Request};

use crate::group::{CIPHER, COIN, SIGNER, TestGroup};

fn node(id: u16) -> NodeId {
    NodeId::try_from(id).unwrap()
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(Secret::new([number; 32])).unwrap()
}

fn token(seed: u64) -> Token {
    Token::generate(&mut ChaCha20Rng::seed_from_u64(seed)).unwrap()
}

/// The tester's certificate, a token of `operator`, signing key 3 of `validator`, approvers ann (11), ben (12) and cy (13).
fn people(group: &TestGroup) -> String {
    let mut text = format!(
        "format = 1\n[[client]]\nname = \"tester\"\ncertificates = [\"{}\"]\n[[client]]\nname = \"operator\"\n\
         tokens = [\"{}\"]\n[[client]]\nname = \"validator\"\nsigning_keys = [\"{}\"]\n",
        group.group.clients()[0].certificate,
        token(1).key(),
        key(3).verifying_key()
    );
    for (name, number) in [("ann", 11), ("ben", 12), ("cy", 13)] {
        text += &format!("[[approver]]\nname = \"{name}\"\nkey = \"{}\"\n", key(number).verifying_key());
    }
    text
}

fn allow(name: &str, client: &str, keys: &str, operations: &str, more: &str) -> String {
    format!(
        "[[rule]]\nname = \"{name}\"\neffect = \"allow\"\nclients = [\"{client}\"]\nkeys = [\"{keys}\"]\n\
         operations = [{operations}]\n{more}\n"
    )
}

fn options() -> ClientOptions {
    ClientOptions { timeout: Duration::from_secs(20), ..ClientOptions::default() }
}

/// The client of the group's folder.
fn tester(group: &TestGroup) -> Client {
    Client::open_with(&group.client_folder(), options()).unwrap()
}

/// A client without a certificate, with this token.
fn holder(group: &TestGroup, token: Token) -> Client {
    let client = Client::new(group.group.clone(), None, [], options()).unwrap();
    client.with_credentials(Credentials { token: Some(token), ..Credentials::default() })
}

/// The rule and reason of a refusal by all nodes.
fn denied<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> (Option<String>, String, String) {
    match answer.unwrap_err() {
        ClientError::Denied { rule, reason, message, .. } => (rule, reason, message),
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_allowed_by_default_and_each_kind_of_client_is_recognised() {
    let group = TestGroup::new().await;
    let text = people(&group);
    group.set_policies(&text).await;
    let (tester, operator) = (tester(&group), holder(&group, token(1)));
    let validator = tester.clone().with_credentials(Credentials { signer: Some(key(3)), ..Credentials::default() });

    let (rule, reason, message) = denied(tester.sign(SIGNER, "m".into()).await);
    assert_eq!((rule, reason.as_str()), (None, "no-rule"));
    assert!(message.contains("--client tester --operation sign --key release"), "{message}");
    for refused in [
        denied(tester.flip_coin(COIN, "m".into()).await).1,
        denied(operator.public_key(SIGNER).await).1,
        denied(tester.audit(node(1), 0, 0).await).1,
        denied(tester.policy(node(1)).await).1,
        denied(tester.change_state_at(SIGNER, None, theta_client::KeyState::Destroyed, 1).await).1,
    ] {
        assert_eq!(refused, "no-rule");
    }
    for status in tester.status().await {
        let refused = status.status.map(drop).unwrap_err();
        assert!(matches!(&refused.problem, Problem::Denied { reason, .. } if reason == "no-rule"), "{refused}");
    }
    let (keys, problems) = tester.list_keys().await;
    assert_eq!((keys.len(), problems.len()), (0, 4));

    let rules = allow("by-certificate", "tester", SIGNER, "\"sign\", \"keys.list\"", "")
        + &allow("by-token", "operator", "*", "\"sign\", \"keys.list\", \"status\"", "")
        + &allow("by-signature", "validator", COIN, "\"flip-coin\"", "");
    group.set_policies(&(text.clone() + &rules)).await;
    tester.sign(SIGNER, "by certificate".into()).await.unwrap();
    operator.sign(SIGNER, "by token".into()).await.unwrap();
    assert!(operator.status().await.iter().all(|status| status.status.is_ok()));
    validator.flip_coin(COIN, "by signature".into()).await.unwrap();
    // The caller is the signer, even if the connection's certificate may do more.
    assert_eq!(denied(validator.sign(SIGNER, "m".into()).await).1, "no-rule");
    assert_eq!(denied(tester.flip_coin(COIN, "m".into()).await).1, "no-rule");
    assert_eq!(denied(holder(&group, token(2)).public_key(SIGNER).await).1, "unidentified");
    let stranger = tester.clone().with_credentials(Credentials { signer: Some(key(4)), ..Credentials::default() });
    let (_, reason, message) = denied(stranger.sign(SIGNER, "m".into()).await);
    assert!(reason == "unidentified" && message.contains(&key(4).verifying_key().to_string()), "{message}");
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_a_certificate_come_and_go_with_the_tokens() {
    let group = TestGroup::new().await;
    let operator = holder(&group, token(1));
    // The nodes accept nobody, and say so.
    let refused = operator.public_key(SIGNER).await.unwrap_err();
    assert!(matches!(&refused, ClientError::TurnedAway { certificate: None, .. }), "{refused}");
    group.set_policies(&(people(&group) + &allow("r", "operator", "*", "\"keys.list\"", ""))).await;
    let operator = holder(&group, token(1));
    operator.public_key(SIGNER).await.unwrap();
    let nobody = Client::new(group.group.clone(), None, [], options()).unwrap();
    let (_, reason, message) = denied(nobody.public_key(SIGNER).await);
    assert!(reason == "unidentified" && message.contains("nothing says who asks"), "{message}");
    // A certificate that only the policy knows.
    let made = Identity::generate("gateway").unwrap();
    let gateway = Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap();
    let unknown = Client::new(group.group.clone(), Some(&gateway), [], options()).unwrap().public_key(SIGNER).await;
    let refused = unknown.unwrap_err();
    let shown = Some(gateway.fingerprint());
    assert!(matches!(&refused, ClientError::TurnedAway { certificate, .. } if *certificate == shown), "{refused}");
    let known = format!("[[client]]\nname = \"gateway\"\ncertificates = [\"{}\"]\n", gateway.fingerprint());
    group.set_policies(&(people(&group) + &known + &allow("r", "gateway", "*", "\"keys.list\"", ""))).await;
    let gateway = Client::new(group.group.clone(), Some(&gateway), [], options()).unwrap();
    gateway.public_key(SIGNER).await.unwrap();
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_labels_and_validity_bound_what_is_allowed() {
    let group = TestGroup::new().await;
    let rules = allow("rare", "tester", SIGNER, "\"sign\"", "rate = \"2/day\"")
        + &allow("inbox", "tester", CIPHER, "\"decapsulate\"", "labels = [\"inbox/\"]")
        + &allow("over", "tester", COIN, "\"flip-coin\"", "until = 2026-01-01T00:00:00Z")
        + &allow("look", "tester", "*", "\"keys.list\"", "");
    group.set_policies(&(people(&group) + &rules)).await;
    let client = tester(&group);
    for message in ["one", "two"] {
        client.sign(SIGNER, message.into()).await.unwrap();
    }
    // The later calls to each node may still be on their way.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (rule, reason, _) = denied(client.sign(SIGNER, "three".into()).await);
    assert_eq!((rule.as_deref(), reason.as_str()), (Some("rare"), "too-often"));
    let mut one = client.protocol(node(1)).unwrap();
    let again = v1::SignRequest { key: SIGNER.to_owned(), message: "four".into(), ..Default::default() };
    assert_eq!(one.sign(again).await.unwrap_err().code(), Code::ResourceExhausted);

    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut seal = |label: &[u8]| -> Bytes {
        group.public(CIPHER).encrypt(b"secret", label, Aead::default(), &mut rng).unwrap().into()
    };
    let (good, other) = (seal(b"inbox/1"), seal(b"outbox/1"));
    assert_eq!(client.decrypt(CIPHER, good).await.unwrap().result.expose().as_slice(), b"secret");
    assert_eq!(denied(client.decrypt(CIPHER, other).await).1, "no-rule");
    let (rule, reason, _) = denied(client.flip_coin(COIN, "x".into()).await);
    assert_eq!((rule.as_deref(), reason.as_str()), (Some("over"), "not-in-force"));
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_for_those_who_may_ask() {
    let group = TestGroup::new().await;
    let rules = allow("signs", "tester", SIGNER, "\"sign\"", "") + &allow("looks", "operator", "*", "\"*\"", "");
    group.set_policies(&(people(&group) + &rules)).await;
    let client = tester(&group);
    let started = v1::SignRequest {
        key: SIGNER.to_owned(),
        message: "later".into(),
        wait: v1::Wait::Started.into(),
        ..Default::default()
    };
    let mut one = client.protocol(node(1)).unwrap();
    let id = one.sign(started).await.unwrap().into_inner().instance_id;
    let get = v1::GetResultRequest { instance_id: id.clone() };
    one.get_result(get.clone()).await.unwrap();
    let operator = holder(&group, token(1));
    let mut other = operator.protocol(node(1)).unwrap();
    let mut request = Request::new(get.clone());
    request.metadata_mut().insert("authorization", operator.authorization(node(1)).unwrap().unwrap());
    let refused = other.get_result(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "who was not allowed it here does not get it: {refused}");
    // Neither does a client that no rule allows any more.
    group.set_policies(&people(&group)).await;
    assert_eq!(one.get_result(get).await.unwrap_err().code(), Code::PermissionDenied);
    let watch = v1::WatchInstanceRequest { instance_id: id };
    assert_eq!(one.watch_instance(watch).await.unwrap_err().code(), Code::PermissionDenied);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_change_under_open_connections_and_broken_ones_change_nothing() {
    let group = TestGroup::new().await;
    let rules = allow("all", "tester", "*", "\"*\"", "");
    let text = people(&group) + &rules;
    group.set_policies(&text).await;
    let client = tester(&group);
    client.sign(SIGNER, "before".into()).await.unwrap();

    for id in 1..=4 {
        let file = group.folder.path().join(format!("node-{id}/policy.toml"));
        std::fs::write(&file, format!("{text}\n[[rule]]\nname = \"broken\"\n")).unwrap();
        let error = group.node(id).reload_policy().await.unwrap_err().to_string();
        assert!(error.contains("policy.toml:") && error.contains("missing field"), "{error}");
        std::fs::remove_file(&file).unwrap();
        let error = group.node(id).reload_policy().await.unwrap_err().to_string();
        assert!(error.contains("policy.toml"), "{error}");
    }
    client.sign(SIGNER, "with the old policy".into()).await.unwrap();

    // The nodes notice by themselves that their files no longer have the tester.
    let without = text
        .replace("name = \"tester\"", "name = \"nobody\"")
        .replace("[\"tester\"]", "[\"nobody\"]")
        .replace(&group.group.clients()[0].certificate.to_string(), &"ab".repeat(32));
    for id in 1..=4 {
        std::fs::write(group.folder.path().join(format!("node-{id}/policy.toml")), &without).unwrap();
    }
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        match client.sign(SIGNER, "after".into()).await {
            Err(ClientError::Denied { reason, message, .. }) if reason == "unidentified" => {
                assert!(message.contains("no client of the policy has the certificate"), "{message}");
                break;
            }
            other => assert!(tokio::time::Instant::now() < deadline, "never refused: {other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    group.set_policies("format = 1").await;
    let (_, _, message) = denied(client.sign(SIGNER, "to nobody".into()).await);
    assert!(message.contains("write policy.toml with format = 1"), "{message}");
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_decision_is_in_a_log_that_shows_any_change() {
    let mut group = TestGroup::new().await;
    let rules = allow("signs", "tester", SIGNER, "\"sign\"", "") + &allow("reads", "operator", "*", "\"*\"", "");
    group.set_policies(&(people(&group) + &rules)).await;
    let (client, operator) = (tester(&group), holder(&group, token(1)));
    client.sign(SIGNER, "on the record".into()).await.unwrap();
    assert_eq!(denied(client.flip_coin(COIN, "refused".into()).await).1, "no-rule");
    tokio::time::sleep(Duration::from_millis(300)).await;

    let log = operator.audit(node(2), 0, 0).await.unwrap();
    let checkpoint = audit::verify(&log, audit::Checkpoint::START, None).unwrap();
    assert_eq!(checkpoint.count, log.len() as u64);
    let find = |operation: &str, allowed: bool| {
        log.iter().map(|entry| &entry.record).find(|record| record.operation == operation && record.allowed == allowed)
    };
    let (signed, refused) = (find("sign", true).unwrap(), find("flip-coin", false).unwrap());
    assert_eq!((signed.rule.as_deref(), signed.client.as_deref(), signed.node), (Some("signs"), Some("tester"), 2));
    assert_eq!(signed.statement, theta_statements::Digest::of(b"on the record"));
    assert_eq!(signed.recognised_by.as_deref(), Some("certificate"));
    assert_eq!((refused.rule.as_deref(), refused.reason.as_str()), (None, "no-rule"));
    assert!(find("audit.read", true).is_some(), "reading it is a decision, too");

    for place in 0..log.len() {
        let mut changed = log.clone();
        changed[place].record.allowed ^= true;
        assert_eq!(audit::verify(&changed, audit::Checkpoint::START, None).unwrap_err().sequence, place as u64);
    }
    let mut flipped = log.clone();
    flipped[1].hash.0[7] ^= 1;
    assert_eq!(audit::verify(&flipped, audit::Checkpoint::START, None).unwrap_err().sequence, 1);
    let cut_off = audit::verify(&log[..log.len() - 1], audit::Checkpoint::START, Some(checkpoint)).unwrap_err();
    assert_eq!(cut_off.sequence, checkpoint.count - 1);

    // The log goes on after a restart, from the same head.
    group.restart(2).await;
    let operator = holder(&group, token(1));
    let rest = operator.audit(node(2), checkpoint.count, 0).await.unwrap();
    audit::verify(&rest, checkpoint, None).unwrap();
    assert_eq!(operator.audit(node(2), 0, 1).await.unwrap(), log[..1]);
    assert!(denied(client.audit(node(2), 0, 0).await).1 == "no-rule");
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_explains_its_policy() {
    let group = TestGroup::new().await;
    let rules =
        allow("signs", "tester", SIGNER, "\"sign\"", "") + &allow("reads", "tester", "*", "\"policy.read\"", "");
    group.set_policies(&(people(&group) + &rules)).await;
    let client = tester(&group);
    let ask = |operation: &str| v1::ExplainPolicyRequest {
        client: "tester".to_owned(),
        operation: operation.to_owned(),
        key: SIGNER.to_owned(),
        ..Default::default()
    };
    let yes = client.explain(node(1), ask("sign")).await.unwrap();
    assert!(
        yes.answer == "allow" && yes.text.contains("rule signs") && yes.json.contains("\"answer\":\"allow\""),
        "{yes:?}"
    );
    let no = client.explain(node(1), ask("keys.destroy")).await.unwrap();
    assert!(no.answer == "deny" && no.text.contains("no rule allows it"), "{no:?}");
    let policy = client.policy(node(1)).await.unwrap();
    assert_eq!((policy.rules, policy.digest), (vec!["signs".to_owned(), "reads".to_owned()], no.policy));
    let error = client.explain(node(1), ask("everything")).await.unwrap_err().to_string();
    assert!(error.contains("is not an operation"), "{error}");
    let long = v1::ExplainPolicyRequest { label: vec![0; 65_537].into(), ..ask("decapsulate") };
    let error = client.explain(node(1), long).await.unwrap_err().to_string();
    assert!(error.contains("a label has at most 65536 bytes, not 65537"), "{error}");
    group.shutdown().await;
}
