//! Nodes that misbehave, and the consequences for them.
//!
//! In most tests node 1 is asked last, when the culprit's message already waits, so that the false share is certain to
//! be among the first k and must be detected.

mod refused;
mod together;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::gated::Request;
use bytes::Bytes;
use theta_orchestration::{Finished, OrchestratorConfig};
use theta_schemes::Suite;
use theta_wire::peer::Envelope;

use crate::{
    group::{Group, PATIENCE, config, eventually},
    wire::{open, seal},
};

/// Lets node 4 send `payloads` to node 1 ahead of everyone, then asks all honest nodes. Returns node 1's result.
async fn result_despite(group: &Group, request: &Request, payloads: Vec<Bytes>) -> Arc<Finished> {
    let count = payloads.len();
    // The load is updated at intervals: it must not be from an instance before this one.
    eventually("nothing waits", || group.node(1).load().backlog == 0).await;
    for payload in payloads {
        group.wire.inject(4, 1, group.share_message(request, payload)).await;
    }
    eventually("node 4's messages wait", || group.node(1).load().backlog == count).await;
    let results = group.run_at(&[1, 2, 3], request).await;
    assert!(results.iter().all(|finished| finished.result.expose() == results[0].result.expose()));
    Arc::clone(&results[0])
}

/// Checks that node 4 was named wherever it should be.
fn assert_caught(group: &Group, request: &Request, finished: &Finished, misbehaviour: &str, name: &str) {
    assert_eq!(finished.culprits.len(), 1, "{:?}", finished.culprits);
    let culprit = &finished.culprits[0];
    assert_eq!((culprit.party.get(), culprit.instance), (4, group.id(request)));
    assert!(culprit.offence.to_string().contains(misbehaviour), "{}", culprit.offence);
    assert!(!finished.contributors.contains(&culprit.party));
    assert_eq!(group.node(1).culprits().last().unwrap().culprit, *culprit);
    let metric = format!("theta_culprits_total{{node=\"4\",misbehaviour=\"{name}\"}}");
    assert!(group.metric(1, &metric) >= 1.0, "{}", group.metrics(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_share_is_found_and_named_in_every_suite() {
    let one_round: Vec<Suite> =
        Suite::ALL.into_iter().filter(|suite| !["FROST", "ECDSA"].contains(&suite.scheme())).collect();
    let group = Group::of_four(&one_round);
    for suite in one_round {
        let (request, other) = (group.request(suite, "asked"), group.request(suite, "another"));
        let wrong = group.share_of(suite, 4, &other);
        let finished = result_despite(&group, &request, vec![wrong]).await;
        group.check(suite, "asked", &[Arc::clone(&finished)]);
        assert_caught(&group, &request, &finished, "share fails verification", "invalid_share");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_for_a_share_is_named() {
    let suite = Suite::Sg02Ristretto255;
    let group = Group::of_four(&[suite]);
    for (i, garbage) in [&b""[..], &[0xff; 7], &[0xff; 128], &[0; 96]].into_iter().enumerate() {
        let request = group.request(suite, &format!("garbage {i}"));
        let finished = result_despite(&group, &request, vec![Bytes::from_static(garbage)]).await;
        assert_eq!(finished.culprits.len(), 1, "{garbage:?}");
        assert_eq!(finished.culprits[0].party.get(), 4);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_of_another_instance_is_a_wrong_share() {
    let suite = Suite::Sg02Ristretto255;
    let group = Group::of_four(&[suite]);
    let (first, second) = (group.request(suite, "first"), group.request(suite, "second"));
    let share = group.share_of(suite, 4, &first);
    let finished = result_despite(&group, &first, vec![share.clone()]).await;
    assert_eq!(finished.culprits, []);
    assert!(finished.contributors.iter().any(|party| party.get() == 4));
    let finished = result_despite(&group, &second, vec![share]).await;
    assert_caught(&group, &second, &finished, "share fails verification", "invalid_share");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn someone_elses_share_is_a_wrong_share() {
    let suite = Suite::Bls04MinPk;
    let group = Group::of_four(&[suite]);
    let request = group.request(suite, "stolen");
    let share = group.share_of(suite, 3, &request);
    let finished = result_despite(&group, &request, vec![share]).await;
    assert_caught(&group, &request, &finished, "share fails verification", "invalid_share");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exact_repetition_is_nothing() {
    let suite = Suite::Cks05Ristretto255;
    let group = Group::new(3, 4, &[suite], &config());
    let request = group.request(suite, "again");
    let share = group.share_of(suite, 4, &request);
    let finished = result_despite(&group, &request, vec![share.clone(), share]).await;
    assert_eq!(finished.culprits, []);
    assert!(group.node(1).culprits().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_different_shares_are_equivocation() {
    let suite = Suite::Cks05Ristretto255;
    let group = Group::new(3, 4, &[suite], &config());
    let request = group.request(suite, "twice");
    // Both are valid, since shares are randomised. Sending two different ones is the offence.
    let shares = vec![group.share_of(suite, 4, &request), group.share_of(suite, 4, &request)];
    let finished = result_despite(&group, &request, shares).await;
    assert_caught(&group, &request, &finished, "two different messages", "equivocation");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_does_not_exist_is_named() {
    let suite = Suite::Cks05Ristretto255;
    let group = Group::of_four(&[suite]);
    let request = group.request(suite, "slot");
    let good = open(&group.share_message(&request, Bytes::from_static(b"x")));
    group.wire.inject(4, 1, seal(&Envelope { kind: 9, ..good })).await;
    eventually("the message waits", || group.node(1).load().backlog == 1).await;
    let results = group.run_at(&[1, 2, 3], &request).await;
    assert_caught(&group, &request, &results[0], "slot that does not exist", "unknown_slot");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_envelope_hurt_only_their_sender() {
    let suite = Suite::Cks05Ristretto255;
    let group = Group::of_four(&[suite]);
    let good = open(&group.share_message(&group.request(suite, "x"), Bytes::from_static(b"x")));
    let short = Envelope { instance_id: Bytes::from_static(b"short"), ..good.clone() };
    for bytes in [
        Bytes::from_static(b"GET / HTTP/1.1"),
        Bytes::from_static(&[0xff; 1_000]),
        Bytes::new(),
        seal(&short),
        seal(&Envelope { version: 1, ..good.clone() }),
        seal(&Envelope { stream: 2, ..good.clone() }),
        seal(&Envelope { number: u32::MAX, ..good.clone() }),
        seal(&Envelope { kind: 1 << 16, ..good }),
    ] {
        group.wire.inject(4, 1, bytes).await;
    }
    eventually("all are seen", || group.node(1).culprits().len() == 8).await;
    assert!(group.node(1).culprits().iter().all(|record| record.culprit.party.get() == 4));
    let metric = |name| group.metric(1, &format!("theta_culprits_total{{node=\"4\",misbehaviour=\"{name}\"}}"));
    assert!((metric("malformed_envelope") - 6.0).abs() < 0.1);
    assert!((metric("protocol_version") - 2.0).abs() < 0.1);
    group.answers(suite, "still here").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_answer_while_one_lies_all_the_time() {
    // Node 4 flips a bit in the group element of every share that it sends. Any 2 of the other 3 suffice.
    let suite = Suite::Sg02Ristretto255;
    let group = Group::of_four(&[suite]);
    let flips = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&flips);
    group.wire.tamper(move |from, _, bytes| {
        let mut envelope = open(&bytes);
        if from != 4 || envelope.payload.is_empty() {
            return vec![bytes];
        }
        let mut payload = envelope.payload.to_vec();
        let place = counter.fetch_add(1, Relaxed) % 32;
        payload[place] ^= 1 << (place % 8);
        envelope.payload = payload.into();
        vec![seal(&envelope)]
    });
    for i in 0..40 {
        let request = group.request(suite, &format!("lie {i}"));
        let results = group.run_at(&[4, 3, 2, 1], &request).await;
        group.check(suite, "", &results);
        // Node 4's own result from the honest shares is right, too.
        for honest in &results[1..] {
            assert!(honest.contributors.iter().all(|party| party.get() != 4), "{honest:?}");
            assert!(honest.culprits.iter().all(|culprit| culprit.party.get() == 4));
        }
    }
    assert!(flips.load(Relaxed) >= 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_down_is_not_missed() {
    let mut group = Group::of_four(&[Suite::Sg02Bls12381, Suite::Bls04MinSig]);
    group.stop(2);
    group.answers(Suite::Sg02Bls12381, "three are left").await;
    group.stop(4);
    group.answers(Suite::Bls04MinSig, "two are left").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_messages_are_asked_for() {
    // Any 3 of 3; the wire loses every share once.
    let suite = Suite::Cks05Ristretto255;
    let config = OrchestratorConfig {
        resend_after: Duration::from_millis(30),
        resend_interval: Duration::from_millis(20),
        ..config()
    };
    let group = Group::new(3, 3, &[suite], &config);
    let seen = std::sync::Mutex::new(std::collections::HashSet::new());
    group.wire.tamper(move |from, to, bytes| {
        let lost = crate::wire::is_share(&bytes) && seen.lock().unwrap().insert((from, to, bytes.clone()));
        if lost { Vec::new() } else { vec![bytes] }
    });
    for i in 0..5 {
        group.answers(suite, &format!("lost {i}")).await;
    }
    assert!(group.nodes.values().all(|node| node.orchestrator.culprits().is_empty()));
}

/// Shares come without proofs here. Node 1 gets the false one first and nothing else, since the others have finished.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_have_finished_prove_their_shares_to_one_that_was_lied_to() {
    let suite = Suite::Sh00Pkcs1Sha256;
    let group = Group::of_four(&[suite]);
    let (request, other) = (group.request(suite, "asked"), group.request(suite, "another"));
    group.wire.tamper(|_, to, bytes| if to == 1 { Vec::new() } else { vec![bytes] });
    group.check(suite, "asked", &group.run_at(&[2, 3], &request).await);
    group.wire.restore();
    let wrong = group.share_of(suite, 4, &other);
    group.wire.inject(4, 1, group.share_message(&request, wrong)).await;
    eventually("node 4's message waits", || group.node(1).load().backlog == 1).await;
    let results = group.run_at(&[1], &request).await;
    group.check(suite, "asked", &results);
    assert_caught(&group, &request, &results[0], "share fails verification", "invalid_share");
    assert!(group.node(2).culprits().is_empty() && group.node(3).culprits().is_empty());
}

/// Node 2 is asked last: the share that completes its result and node 1's request for proofs both wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_proofs_that_waited_behind_the_last_share_is_answered() {
    let suite = Suite::Sh00Pkcs1Sha256;
    let limits = OrchestratorConfig { resend_after: Duration::from_secs(600), ..config() };
    let group = Group::new(2, 4, &[suite], &limits);
    let (request, other) = (group.request(suite, "asked"), group.request(suite, "another"));
    let wrong = group.share_of(suite, 4, &other);
    group.wire.inject(4, 1, group.share_message(&request, wrong)).await;
    eventually("node 4's message waits", || group.node(1).load().backlog == 1).await;
    let id = group.node(1).submit(request.clone()).await.unwrap();
    eventually("node 1's share and request wait", || group.node(2).load().backlog == 2).await;
    let results = group.run_at(&[2], &request).await;
    group.check(suite, "asked", &results);
    let finished = tokio::time::timeout(PATIENCE, group.node(1).outcome(id)).await.unwrap().unwrap();
    assert_caught(&group, &request, &finished, "share fails verification", "invalid_share");
}

/// The same, but the wire loses node 1's request, so that nobody can answer it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_request_for_proofs_is_repeated() {
    let suite = Suite::Sh00Pkcs1Sha256;
    let limits = OrchestratorConfig { resend_after: Duration::from_millis(30), ..config() };
    let group = Group::new(2, 4, &[suite], &limits);
    let (request, other) = (group.request(suite, "asked"), group.request(suite, "another"));
    let lost = AtomicUsize::new(0);
    group.wire.tamper(move |from, _, bytes| {
        let asks = from == 1 && open(&bytes).kind == 2;
        if asks && lost.fetch_add(1, Relaxed) < 3 { Vec::new() } else { vec![bytes] }
    });
    let wrong = group.share_of(suite, 4, &other);
    group.wire.inject(4, 1, group.share_message(&request, wrong)).await;
    eventually("node 4's message waits", || group.node(1).load().backlog == 1).await;
    let results = group.run_at(&[2, 1], &request).await;
    group.check(suite, "asked", &results);
    assert_caught(&group, &request, &results[1], "share fails verification", "invalid_share");
    assert!(group.metric(1, "theta_reminders_total") >= 1.0);
}
