//! Signatures in two rounds, and coordinators that come and go.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::gated::Request;
use bytes::Bytes;
use theta_authority::{KeyRequest, Seed};
use theta_groups::Secret;
use theta_orchestration::{NodeOffence, OrchestratorConfig, SubmitError};
use theta_protocols::Misbehaviour;
use theta_rounds::Offence;
use theta_schemes::{
    Suite,
    signatures::frost::{SeedError, randomized_key, verify_with_key},
};

use crate::{
    group::{Group, PATIENCE, config},
    wire::{is_share, open, seal},
};

const SUITE: Suite = Suite::FrostEd25519;

fn hasty() -> OrchestratorConfig {
    OrchestratorConfig {
        resend_after: Duration::from_millis(50),
        resend_interval: Duration::from_millis(20),
        ..config()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_signatures_at_once() {
    let group = Group::new(3, 4, &[SUITE], &config());
    let mut tasks = Vec::new();
    for i in 0..200 {
        let request = group.request(SUITE, &format!("message {i}"));
        for node in group.nodes.values() {
            let (node, request) = (Arc::clone(&node.orchestrator), request.clone());
            tasks.push(tokio::spawn(async move { (i, node.run(request).await.unwrap().1.unwrap()) }));
        }
    }
    for task in tasks {
        let (i, finished) = tokio::time::timeout(PATIENCE, task).await.expect("in time").unwrap();
        group.check(SUITE, &format!("message {i}"), &[finished]);
    }
    for node in group.nodes.values() {
        assert_eq!(node.orchestrator.load().running, 0);
        assert!(node.orchestrator.culprits().is_empty());
    }
}

/// Every fourth message has node 2 as its first coordinator.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_that_is_down_is_replaced() {
    let mut group = Group::new(3, 4, &[SUITE], &hasty());
    group.stop(2);
    for i in 0..16 {
        group.answers(SUITE, &format!("without it {i}")).await;
    }
    assert!(group.nodes.values().all(|node| node.orchestrator.culprits().is_empty()));
}

/// Any 3 of 4; the coordinator is stopped after its packages have left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_that_dies_on_the_way_is_replaced() {
    let mut group = Group::new(3, 4, &[SUITE], &hasty());
    group.wire.tamper(|from, _, bytes| {
        // Node 1 cannot announce anything.
        if from == 1 && (4..u32::MAX).contains(&open(&bytes).kind) { Vec::new() } else { vec![bytes] }
    });
    for i in 0..12 {
        let request = group.request(SUITE, &format!("dies {i}"));
        group.node(1).submit(request.clone()).await.unwrap();
        let results = group.run_at(&[2, 3, 4], &request).await;
        group.check(SUITE, &format!("dies {i}"), &results);
    }
    group.stop(1);
    group.wire.restore();
    group.answers(SUITE, "after it").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_node_gets_the_signature_that_the_others_have() {
    let mut group = Group::new(3, 4, &[SUITE], &hasty());
    let request = group.request(SUITE, "before the crash");
    group.check(SUITE, "before the crash", &group.run(&request).await);
    for id in 1..=4 {
        group.start(id, hasty());
        let after = group.run_at(&[id], &request).await;
        group.check(SUITE, "before the crash", &after);
    }
    assert!(group.nodes.values().all(|node| node.orchestrator.culprits().is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_restarts_while_it_signs_is_not_an_equivocator() {
    let mut group = Group::new(3, 4, &[SUITE], &hasty());
    for i in 0..4 {
        let request = group.request(SUITE, &format!("mid-flight {i}"));
        group.node(1).submit(request.clone()).await.unwrap();
        for _ in 0..2 {
            group.start(2, hasty());
            group.node(2).submit(request.clone()).await.unwrap();
        }
        let results = group.run_at(&[1, 2, 3], &request).await;
        group.check(SUITE, &format!("mid-flight {i}"), &results);
    }
    assert!(group.nodes.values().all(|node| node.orchestrator.culprits().is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_messages_are_asked_for() {
    let group = Group::new(3, 3, &[SUITE], &hasty());
    let seen = std::sync::Mutex::new(std::collections::HashSet::new());
    group.wire.tamper(move |from, to, bytes| {
        let lost = is_share(&bytes) && seen.lock().unwrap().insert((from, to, bytes.clone()));
        if lost { Vec::new() } else { vec![bytes] }
    });
    for i in 0..3 {
        group.answers(SUITE, &format!("lost {i}")).await;
    }
    assert!(group.nodes.values().all(|node| node.orchestrator.culprits().is_empty()));
}

/// Node 4 lies in every share. Each coordinator names it, and the others sign.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn false_shares_are_named_and_do_not_stop_the_others() {
    let group = Group::new(2, 4, &[SUITE], &hasty());
    group.wire.tamper(|from, _, bytes| {
        let mut envelope = open(&bytes);
        if from != 4 || envelope.kind != 3 || !is_share(&bytes) {
            return vec![bytes];
        }
        let mut payload = envelope.payload.to_vec();
        payload[9] ^= 1;
        envelope.payload = payload.into();
        vec![seal(&envelope)]
    });
    let said = || group.nodes.values().flat_map(|node| node.orchestrator.culprits()).collect::<Vec<_>>();
    // A coordinator takes the signers whose nonces come first. The machine's load determines after how many messages
    // node 4 is among them with a share that comes before another coordinator's signature.
    let deadline = Instant::now() + PATIENCE;
    for i in 0.. {
        if i >= 24 && !said().is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "nobody was named for {i} messages");
        let request = group.request(SUITE, &format!("lie {i}"));
        let results = group.run_at(&[4, 3, 2, 1], &request).await;
        group.check(SUITE, &format!("lie {i}"), &results);
    }
    for record in said() {
        assert_eq!(record.culprit.party.get(), 4);
        assert_eq!(record.culprit.offence, NodeOffence::Instance(Offence::Protocol(Misbehaviour::InvalidShare)));
    }
}

/// Nonces made in advance are lost in a restart, and signatures go on; a node that makes none signs with the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_forget_all_nonces_and_nobody_minds() {
    let mut group = Group::new(3, 4, &[SUITE], &hasty());
    for i in 0..24 {
        let config = match i {
            7 | 15 => OrchestratorConfig { nonces_per_peer: 0, ..hasty() },
            _ => hasty(),
        };
        if i % 2 == 1 {
            group.start(1 + i % 4, config);
        }
        group.answers(SUITE, &format!("and again {i}")).await;
    }
    assert!(group.nodes.values().all(|node| node.orchestrator.culprits().is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_re_randomised_signature_is_an_instance_of_its_own() {
    let group = Group::new(2, 3, &[SUITE, Suite::Bls04MinPk], &config());
    let public = &group.keys[&SUITE].public;
    let message = Bytes::from_static(b"under which key?");
    let request = |suite: Suite, seed: &Seed| Request {
        key: suite.name().to_owned(),
        operation: KeyRequest::SignRandomized { message: message.clone(), seed: Arc::clone(seed) },
    };
    let seeds = [[1; 32], [2; 32]].map(|bytes: [u8; 32]| Seed::new(Secret::new(bytes.to_vec())));
    let mut signatures = HashSet::new();
    for seed in &seeds {
        for _ in 0..2 {
            for finished in group.run(&request(SUITE, seed)).await {
                let key = randomized_key(public, seed, &finished.proof).unwrap();
                verify_with_key(public, &key, &message, finished.result.expose()).unwrap();
                assert!(public.verify(&message, finished.result.expose(), &[]).is_err());
                signatures.insert(key);
            }
        }
    }
    // Repeated requests get the existing signature; two coordinators at once may make two.
    assert!(signatures.len() >= 2);
    group.answers(SUITE, "under which key?").await;

    let refused = group.node(1).submit(request(Suite::Bls04MinPk, &seeds[0])).await.unwrap_err();
    assert_eq!(refused, SubmitError::Seed(SeedError::Suite(Suite::Bls04MinPk)));
    let short = Seed::new(Secret::new(vec![1; 16]));
    let refused = group.node(1).submit(request(SUITE, &short)).await.unwrap_err();
    assert_eq!(refused, SubmitError::Seed(SeedError::Length(16)));
}
