//! A slot of a signing rule has one message at most, over all nodes.

use std::{fmt::Debug, time::Duration};

use bytes::Bytes;
use theta_client::{Client, ClientError};
use theta_wire::v1;
use tonic::{Code, Request};

use super::{allow, denied, node, people, tester};
use crate::group::{SIGNER, TestGroup};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_is_one_messages_at_every_node_also_after_a_restart() {
    let mut group = TestGroup::new().await;
    let rules = allow("all", "tester", "*", "\"*\"", "")
        + "[[signing]]\nname = \"heights\"\nkeys = [\"release\"]\nslot = \"claimed\"\norder = \"increasing\"\n";
    group.set_policies(&(people(&group) + &rules)).await;
    group.trusted().await;
    let client = tester(&group);
    let (rule, reason, _) = denied(client.sign(SIGNER, "without".into()).await);
    assert_eq!((rule.as_deref(), reason.as_str()), (Some("all"), "slot-missing"));
    let first = client.sign_for_slot(SIGNER, "block a".into(), 7).await.unwrap();
    for id in 1..=4 {
        let mut one = client.protocol(node(id)).unwrap();
        let request = |message: &'static str, slot| v1::SignRequest {
            key: SIGNER.to_owned(),
            message: message.into(),
            slot: Some(slot),
            ..Default::default()
        };
        let refused = one.sign(request("block b", 7)).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "node {id}: {refused}");
        assert_eq!(refused.metadata().get("theta-reason").unwrap(), "slot-taken", "node {id}");
        let again = one.sign(request("block a", 7)).await.unwrap().into_inner();
        assert_eq!(again.outcome.unwrap().result, first.result, "the same message is no second one");
        let mut scheme = client.scheme(node(id)).unwrap();
        let statement = Some(v1::Statement { statement: Some(v1::statement::Statement::Message("block b".into())) });
        let share = v1::CreateShareRequest { key: SIGNER.to_owned(), statement, slot: Some(7), ..Default::default() };
        assert_eq!(scheme.create_share(share).await.unwrap_err().code(), Code::PermissionDenied, "no way around");
    }
    for id in 1..=4 {
        group.restart(id).await;
    }
    // The nodes refuse until enough peers have confirmed their stores.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    let refused = loop {
        match client.sign_for_slot(SIGNER, "block b".into(), 7).await.unwrap_err() {
            ClientError::Denied { rule, reason, .. } => break (rule, reason),
            _ if tokio::time::Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(200)).await,
            other => panic!("{other}"),
        }
    };
    assert_eq!((refused.0.as_deref(), refused.1.as_str()), (Some("all"), "slot-taken"));
    client.sign_for_slot(SIGNER, "block c".into(), 8).await.unwrap();
    assert_eq!(denied(client.sign_for_slot(SIGNER, "block a".into(), 6).await).1, "slot-over");
    group.shutdown().await;
}

/// A request for a slot at one node alone.
async fn sign_at(
    client: Client,
    id: u16,
    message: String,
    slot: u64,
    timeout: Duration,
) -> Result<Bytes, tonic::Status> {
    let request =
        v1::SignRequest { key: SIGNER.to_owned(), message: message.into(), slot: Some(slot), ..Default::default() };
    let mut request = Request::new(request);
    request.set_timeout(timeout);
    let answer = client.protocol(node(id)).unwrap().sign(request).await?;
    Ok(answer.into_inner().outcome.unwrap().result)
}

/// What a node says of a request that its time ran out for. On a busy machine the transport's deadline may be first, which does not say why: then it is asked
/// again.
async fn why_late<T: Debug, F: Future<Output = Result<T, tonic::Status>>>(ask: impl Fn() -> F) -> tonic::Status {
    loop {
        let late = ask().await.unwrap_err();
        if late.code() != Code::Cancelled {
            return late;
        }
    }
}

fn reason(status: &tonic::Status) -> &str {
    status.metadata().get("theta-reason").map_or("", |reason| reason.to_str().unwrap())
}

/// Any two of four nodes sign. A goes to nodes 1 and 2, B to nodes 3 and 4. Before slots had certificates both were signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_two_of_four_sign_and_yet_a_slot_never_has_two_messages() {
    let group = TestGroup::new().await;
    let signing = "[[signing]]\nname = \"heights\"\nkeys = [\"release\"]\nslot = \"claimed\"\n";
    let rules = people(&group) + &allow("all", "tester", "*", "\"*\"", "");
    group.set_policies(&(rules.clone() + signing)).await;
    group.trusted().await;
    let client = tester(&group);
    let long = Duration::from_secs(20);
    for slot in 0..10 {
        let sent = [(1, "a"), (2, "a"), (3, "b"), (4, "b")];
        let asked =
            sent.map(|(id, text)| tokio::spawn(sign_at(client.clone(), id, format!("{text} {slot}"), slot, long)));
        for asked in asked {
            let refused = asked.await.unwrap().unwrap_err();
            assert_eq!((refused.code(), reason(&refused)), (Code::PermissionDenied, "slot-void"), "{refused}");
            assert!(refused.message().contains("split 2 : 2"), "{refused}");
        }
    }
    // Both messages go to all nodes: at most one is signed, and every request ends.
    for slot in 100..130 {
        let all = (1..=4).flat_map(|id| [(id, "a"), (id, "b")]);
        let ask = |(id, text): (u16, &'static str)| {
            let asked = sign_at(client.clone(), id, format!("{text} {slot}"), slot, long);
            tokio::spawn(async move { (text, asked.await) })
        };
        let asked: Vec<_> = all.map(ask).collect();
        let mut signed = std::collections::BTreeSet::new();
        for asked in asked {
            match asked.await.unwrap() {
                (text, Ok(_)) => drop(signed.insert(text)),
                (_, Err(refused)) => {
                    assert!(["slot-void", "slot-taken"].contains(&reason(&refused)), "slot {slot}: {refused}");
                }
            }
        }
        assert!(signed.len() <= 1, "slot {slot}: {signed:?}");
    }
    // Three nodes promise. The fourth was asked first for another message and follows them; a bare share gets nobody around
    // this.
    let short = Duration::from_secs(2);
    let late = why_late(|| sign_at(client.clone(), 4, "b".to_owned(), 500, short)).await;
    assert_eq!((late.code(), reason(&late)), (Code::DeadlineExceeded, "slot-undecided"), "{late}");
    assert!(late.message().contains("no promise by nodes 1, 2, 3"), "{late}");
    let statement = Some(v1::Statement { statement: Some(v1::statement::Statement::Message("b".into())) });
    let share = v1::CreateShareRequest { key: SIGNER.to_owned(), statement, slot: Some(500), ..Default::default() };
    let refused = why_late(|| {
        let (mut scheme, mut share) = (client.scheme(node(4)).unwrap(), Request::new(share.clone()));
        share.set_timeout(short);
        async move { scheme.create_share(share).await }
    })
    .await;
    assert_eq!(reason(&refused), "slot-undecided", "{refused}");
    client.sign_for_slot(SIGNER, "a".into(), 500).await.unwrap();
    assert!(!sign_at(client.clone(), 4, "a".to_owned(), 500, long).await.unwrap().is_empty());
    let refused = sign_at(client.clone(), 4, "b".to_owned(), 500, long).await.unwrap_err();
    assert_eq!(reason(&refused), "slot-taken", "{refused}");
    // Node 4 lacks the rule and shares for any message; still no second message is signed.
    group.set_policy(4, &rules).await;
    let sent = [(1, "a"), (2, "a"), (3, "b"), (4, "b"), (4, "a")];
    let asked = sent.map(|(id, text)| tokio::spawn(sign_at(client.clone(), id, format!("{text} 600"), 600, short)));
    for (asked, (id, text)) in asked.into_iter().zip(sent) {
        let refused = asked.await.unwrap().unwrap_err();
        assert!(id == 4 || reason(&refused) == "slot-undecided", "node {id}, {text}: {refused}");
    }
    assert!(group.node(1).orchestrator().culprits().is_empty());
    group.shutdown().await;
}
