//! What approvers and clients sign, and what others do with it.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use theta_client::Credentials;
use theta_names::Operation;
use theta_statements::{Approval, ApprovalTerms, Ask, RequestTerms, SignedRequest, UnixTime, Validity};
use theta_wire::v1;
use tonic::Code;

use super::{allow, denied, key, node, people, tester};
use crate::group::{SIGNER, TestGroup};

fn now() -> UnixTime {
    UnixTime(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64)
}

fn minutes(from: i64, until: i64) -> Validity {
    let at = |minutes: i64| UnixTime(now().0.checked_add_signed(minutes * 60_000).unwrap());
    Validity { from: at(from), until: at(until) }
}

fn approval(group: &TestGroup, approver: u8, operation: Operation, message: &[u8], validity: Validity) -> Approval {
    let ask = Ask { key: Some(SIGNER), statement: message, ..Ask::new(group.group.name(), operation) };
    Approval::sign(ApprovalTerms::of(&ask, validity).unwrap(), &key(approver))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvals_are_counted_by_every_node() {
    let group = TestGroup::new().await;
    let quorum = "approvals = { of = [\"ann\", \"ben\", \"cy\"], need = 2 }";
    let rules = allow("two-of-three", "tester", SIGNER, "\"sign\", \"keys.destroy\"", quorum)
        + &allow("look", "tester", "*", "\"keys.list\"", "");
    group.set_policies(&(people(&group) + &rules)).await;
    let client = tester(&group);
    let with =
        |approvals: Vec<Approval>| client.clone().with_credentials(Credentials { approvals, ..Credentials::default() });
    let good = |approver| approval(&group, approver, Operation::Sign, b"m", minutes(-1, 5));
    let expired = |approver| approval(&group, approver, Operation::Sign, b"m", minutes(-10, -5));
    for approvals in [
        vec![],
        vec![good(11)],
        vec![good(11), good(11)],
        vec![good(11), good(14)],
        vec![good(11), expired(12)],
        vec![good(11), approval(&group, 12, Operation::Sign, b"other", minutes(-1, 5))],
        vec![good(11), approval(&group, 12, Operation::FlipCoin, b"m", minutes(-1, 5))],
    ] {
        let (rule, reason, message) = denied(with(approvals).sign(SIGNER, "m".into()).await);
        assert_eq!((rule.as_deref(), reason.as_str()), (Some("two-of-three"), "too-few-approvals"), "{message}");
    }
    with(vec![good(11), good(13)]).sign(SIGNER, "m".into()).await.unwrap();
    // The approvals are replayed for another message, and for another operation.
    assert_eq!(denied(with(vec![good(11), good(13)]).sign(SIGNER, "other".into()).await).1, "too-few-approvals");
    let worse = with(vec![good(11), good(13)]).change_state(SIGNER, None, theta_client::KeyState::Destroyed).await;
    assert_eq!(denied(worse).1, "too-few-approvals");
    let mut one = client.protocol(node(1)).unwrap();
    let garbage = v1::SignRequest {
        key: SIGNER.to_owned(),
        message: "m".into(),
        approvals: vec![Bytes::from_static(b"no approval")],
        ..Default::default()
    };
    assert_eq!(one.sign(garbage).await.unwrap_err().code(), Code::InvalidArgument);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_request_is_the_signers_whoever_carries_it() {
    let group = TestGroup::new().await;
    let rules =
        allow("votes", "validator", SIGNER, "\"sign\"", "") + &allow("look", "tester", "*", "\"keys.list\"", "");
    group.set_policies(&(people(&group) + &rules)).await;
    // The tester, who may not sign, carries what the validator signed to each node.
    let relay = tester(&group);
    let signed = |message: &[u8], validity: Validity, name: &str| {
        let ask = Ask { key: Some(SIGNER), statement: message, ..Ask::new(name, Operation::Sign) };
        SignedRequest::sign(RequestTerms::of(&ask, validity, [9; 16]).unwrap(), &key(3)).encode()
    };
    let carry = async |message: &'static str, signed: Vec<u8>| {
        let request = v1::SignRequest {
            key: SIGNER.to_owned(),
            message: message.into(),
            signed_request: signed.into(),
            ..Default::default()
        };
        let mut answers = tokio::task::JoinSet::new();
        for id in 1..=4 {
            let (mut one, request) = (relay.protocol(node(id)).unwrap(), request.clone());
            answers.spawn(async move { one.sign(request).await.map(tonic::Response::into_inner) });
        }
        answers.join_all().await
    };
    let good = signed(b"a vote", minutes(-1, 5), "test");
    for answer in carry("a vote", good.clone()).await {
        let outcome = answer.unwrap().outcome.unwrap();
        group.public(SIGNER).verify(b"a vote", &outcome.result, &[]).unwrap();
    }
    // The relay can neither change a request nor use it out of its time or in another group.
    let mut forged = good.clone();
    *forged.last_mut().unwrap() ^= 1;
    for (message, signed) in [
        ("another vote", good),
        ("a vote", forged),
        ("a vote", signed(b"a vote", minutes(-10, -5), "test")),
        ("a vote", signed(b"a vote", minutes(5, 10), "test")),
        ("a vote", signed(b"a vote", minutes(-1, 120), "test")),
        ("a vote", signed(b"a vote", minutes(-1, 5), "another-group")),
    ] {
        for answer in carry(message, signed.clone()).await {
            assert_eq!(answer.unwrap_err().code(), Code::Unauthenticated);
        }
    }
    for answer in carry("a vote", b"no request".to_vec()).await {
        assert_eq!(answer.unwrap_err().code(), Code::InvalidArgument);
    }
    group.shutdown().await;
}

/// Whoever has seen a signed request can bring it again and again, to every node: that costs its signer nothing, neither of its rate nor of what else it
/// may send.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_of_a_signed_request_cost_its_signer_nothing() {
    let group = TestGroup::new().await;
    let text = people(&group).replace("signing_keys", "limits = { submissions = \"3/h\" }\nsigning_keys");
    let rules = allow("votes", "validator", SIGNER, "\"sign\"", "rate = \"3/h\"")
        + &allow("look", "tester", "*", "\"keys.list\"", "");
    group.set_policies(&(text + &rules)).await;
    let mut one = tester(&group).protocol(node(1)).unwrap();
    let signed = |message: &'static str, nonce: u8| {
        let ask = Ask { key: Some(SIGNER), statement: message.as_bytes(), ..Ask::new("test", Operation::Sign) };
        let terms = RequestTerms::of(&ask, minutes(-1, 5), [nonce; 16]).unwrap();
        v1::SignRequest {
            key: SIGNER.to_owned(),
            message: message.into(),
            signed_request: SignedRequest::sign(terms, &key(3)).encode().into(),
            wait: v1::Wait::Started.into(),
            ..Default::default()
        }
    };
    let vote = signed("a vote", 1);
    for _ in 0..50 {
        one.sign(vote.clone()).await.unwrap();
    }
    one.sign(signed("another vote", 2)).await.unwrap();
    // The same message signed once more is a request of its own.
    one.sign(signed("another vote", 3)).await.unwrap();
    let refused = one.sign(signed("a third vote", 4)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    one.sign(vote).await.unwrap();
    group.shutdown().await;
}
