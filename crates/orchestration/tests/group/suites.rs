//! A group in which nobody misbehaves.

use std::{collections::HashSet, sync::Arc, time::Duration};

use crate::gated::Request;
use bytes::Bytes;
use theta_authority::KeyRequest;
use theta_orchestration::{InstanceState, SubmitError};
use theta_schemes::{RequestError, Suite};

use crate::group::{Group, PATIENCE, config};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_suite_answers_at_every_node() {
    let suites: Vec<Suite> = Suite::ALL.to_vec();
    let group = Group::of_four(&suites);
    for suite in suites {
        group.answers(suite, "the first").await;
        group.answers(suite, "the second").await;
        let finished =
            group.metric(1, &format!("theta_instances_finished_total{{scheme=\"{suite}\",result=\"finished\"}}"));
        assert!((finished - 2.0).abs() < 0.1, "{}", group.metrics(1));
    }
    for stage in ["key_found", "instance_assigned", "ciphertext_validated", "share_made", "combining", "finished"] {
        let count =
            group.metric(1, &format!("theta_stage_seconds_count{{stage=\"{stage}\",scheme=\"sg02-ristretto255\"}}"));
        assert!((count - 2.0).abs() < 0.1, "{stage}: {count}");
    }
    assert!(group.nodes.values().all(|node| node.orchestrator.culprits().is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_one_and_all_of_all() {
    for (k, n) in [(1, 1), (1, 3), (3, 3)] {
        let group = Group::new(k, n, &[Suite::Cks05Ristretto255, Suite::Sg02Ristretto255], &config());
        group.answers(Suite::Cks05Ristretto255, "coin").await;
        group.answers(Suite::Sg02Ristretto255, "text").await;
        assert_eq!(group.nodes.len(), usize::from(group.size()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_instances_at_once() {
    const COUNT: usize = 2_000;
    let suite = Suite::Cks05Ristretto255;
    let group = Group::of_four(&[suite]);
    let mut tasks = Vec::new();
    for node in group.nodes.values() {
        for i in 0..COUNT {
            let (node, request) = (Arc::clone(&node.orchestrator), group.request(suite, &format!("coin {i}")));
            tasks.push(tokio::spawn(async move { (i, node.run(request).await.unwrap().1.unwrap()) }));
        }
    }
    let mut values = vec![Vec::new(); COUNT];
    for task in tasks {
        let (i, finished) = tokio::time::timeout(PATIENCE, task).await.expect("in time").unwrap();
        values[i].push(finished);
    }
    for (i, results) in values.iter().enumerate() {
        assert_eq!(results.len(), 4);
        assert!(results.iter().all(|finished| finished.result.expose() == results[0].result.expose()));
        if i % 100 == 0 {
            group.check(suite, &format!("coin {i}"), results);
        }
    }
    let different: HashSet<&[u8]> = values.iter().map(|results| results[0].result.expose().as_slice()).collect();
    assert_eq!(different.len(), COUNT);
    for node in group.nodes.values() {
        let load = node.orchestrator.load();
        assert_eq!((load.running, load.queued), (0, 0));
        assert!(node.orchestrator.culprits().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_requests_meet() {
    let suite = Suite::Bls04MinPk;
    let group = Group::of_four(&[suite]);
    let request = group.request(suite, "once");
    // Nodes 2 to 4 have not been asked, so the instance goes on.
    let first = group.node(1).submit(request.clone()).await.unwrap();
    assert_eq!(group.node(1).submit(request.clone()).await.unwrap(), first);
    assert_eq!(group.node(1).load().running, 1);
    let results = group.run(&request).await;
    group.check(suite, "once", &results);
    // Afterwards it is the same result again, not a new instance.
    let (id, again) = group.node(1).run(request.clone()).await.unwrap();
    assert_eq!(id, first);
    assert!(Arc::ptr_eq(&again.unwrap(), &results[0]));
    assert!(Arc::ptr_eq(&group.node(1).outcome(id).await.unwrap(), &results[0]));
    assert!(
        (group.metric(1, &format!("theta_instances_finished_total{{scheme=\"{suite}\",result=\"finished\"}}")) - 1.0)
            .abs()
            < 0.1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_messages_never_share_an_instance() {
    let group = Group::of_four(&[Suite::Bls04MinSig]);
    let (one, other) = (group.request(Suite::Bls04MinSig, "one"), group.request(Suite::Bls04MinSig, "other"));
    assert_ne!(group.node(1).submit(one.clone()).await.unwrap(), group.node(1).submit(other.clone()).await.unwrap());
    let (one, other) = (group.run(&one).await, group.run(&other).await);
    group.check(Suite::Bls04MinSig, "one", &one);
    group.check(Suite::Bls04MinSig, "other", &other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tampered_ciphertext_does_not_take_the_honest_ones_place() {
    let suite = Suite::Sg02Ristretto255;
    let group = Group::of_four(&[suite]);
    let honest = group.request(suite, "secret");
    let KeyRequest::Decapsulate(header) = &honest.operation else { panic!() };
    let mut refused = 0;
    for position in 0..header.len() {
        let mut bytes = header.to_vec();
        bytes[position] ^= 1;
        let tampered = Request { operation: KeyRequest::Decapsulate(bytes.into()), ..honest.clone() };
        assert_ne!(group.id(&tampered), group.id(&honest));
        match group.node(1).submit(tampered).await {
            Err(SubmitError::Request(_)) => refused += 1,
            other => panic!("byte {position}: {other:?}"),
        }
    }
    assert_eq!(refused, header.len());
    let load = group.node(1).load();
    assert_eq!((load.running, load.queued), (0, 0));
    group.check(suite, "secret", &group.run(&honest).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_requests_are_refused_with_advice() {
    let group = Group::of_four(&[Suite::Bls04MinPk, Suite::Cks05Ristretto255, Suite::Sg02Ristretto255]);
    let ask = |key: &str, operation| Request { key: key.to_owned(), operation };
    let message = KeyRequest::Sign(Bytes::from_static(b"m"));
    let error = group.node(1).submit(ask("nokey", message.clone())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no key \"nokey\" here; the known ones are: bls04-bls12381-min-pk, cks05-ristretto255, \
         sg02-ristretto255"
    );
    let error = group.node(1).submit(ask("cks05-ristretto255", message)).await.unwrap_err();
    assert!(matches!(error, SubmitError::Request(RequestError::Purpose { .. })), "{error}");
    let noise = KeyRequest::Decapsulate(Bytes::from_static(b"noise"));
    let error = group.node(1).submit(ask("bls04-bls12381-min-pk", noise)).await.unwrap_err();
    assert!(matches!(error, SubmitError::Request(RequestError::Header(_))), "{error}");
    let header = group.request(Suite::Sg02Ristretto255, "not for a signing key").operation;
    let error = group.node(1).submit(ask("bls04-bls12381-min-pk", header)).await.unwrap_err();
    assert!(matches!(error, SubmitError::Request(RequestError::Purpose { .. })), "{error}");
    let long = KeyRequest::FlipCoin(vec![0; (64 << 10) + 1].into());
    let error = group.node(1).submit(ask("cks05-ristretto255", long)).await.unwrap_err();
    assert!(matches!(error, SubmitError::Request(RequestError::TooLarge { .. })), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_share_waits_for_its_request() {
    let suite = Suite::Sg02Ristretto255;
    let group = Group::of_four(&[suite]);
    let request = group.request(suite, "early");
    group.node(2).submit(request.clone()).await.unwrap();
    crate::group::eventually("the share waits", || group.node(1).load().backlog == 1).await;
    // Node 1 has all it needs when it is asked: its own share and the one that waited.
    let results = group.run_at(&[1], &request).await;
    group.check(suite, "early", &results);
    assert_eq!(results[0].contributors.iter().map(|party| party.get()).collect::<Vec<_>>(), [1, 2]);
    crate::group::eventually("the backlog is empty", || group.node(1).load().backlog == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_see_the_shares_and_the_end() {
    let suite = Suite::Cks05Bls12381;
    let group = Group::new(3, 4, &[suite], &config());
    let request = group.request(suite, "watched");
    let id = group.node(1).submit(request.clone()).await.unwrap();
    let mut watch = group.node(1).watch(id).await.unwrap();
    assert_eq!((watch.borrow().key.as_str(), watch.borrow().operation), (suite.name(), "flip_coin"));
    assert_eq!(watch.borrow().needed, 3);
    group.node(2).submit(request.clone()).await.unwrap();
    let two = tokio::time::timeout(PATIENCE, watch.wait_for(|snapshot| snapshot.shares == 2)).await.unwrap().is_ok();
    assert!(two);
    assert!(matches!(group.node(1).status(id).await.unwrap().state, InstanceState::Running));
    group.node(3).submit(request).await.unwrap();
    let end = watch.wait_for(|snapshot| matches!(snapshot.state, InstanceState::Finished(_)));
    tokio::time::timeout(PATIENCE, end).await.unwrap().unwrap();
    assert!(matches!(group.node(1).status(id).await.unwrap().state, InstanceState::Finished(_)));
    let after = group.node(1).watch(id).await.unwrap();
    assert!(matches!(after.borrow().state, InstanceState::Finished(_)));
    assert!(tokio::time::timeout(Duration::from_secs(1), watch.changed()).await.unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_messages_are_signed_too() {
    let suite = Suite::Bls04MinPk;
    let group = Group::of_four(&[suite]);
    let text = "x".repeat(1 << 20);
    group.answers(suite, &text).await;
}
