//! Nothing grows without a bound.

use std::{sync::Arc, time::Duration};

use crate::gated::Orchestrator;
use bytes::Bytes;
use theta_orchestration::{ComputeError, InstanceError, Keys, OrchestratorConfig, StartError, SubmitError};
use theta_schemes::Suite;
use theta_wire::peer::{Envelope, VERSION};

use crate::{
    group::{Group, PATIENCE, config, eventually},
    wire::{Wire, seal},
};

const SUITE: Suite = Suite::Cks05Ristretto255;

fn junk(number: u64) -> Bytes {
    let mut id = [0; 32];
    // The first bytes select the thread, so junk is spread as honest ids are.
    id[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let payload = Bytes::from_static(&[7; 100]);
    seal(&Envelope {
        version: VERSION,
        instance_id: Bytes::copy_from_slice(&id),
        kind: 1,
        number: 1,
        payload,
        ..Envelope::default()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_requests_is_refused_and_the_node_recovers() {
    const LIMIT: usize = 50;
    let limits = OrchestratorConfig { max_instances: LIMIT, instance_ttl: Duration::from_secs(5), ..config() };
    let group = Group::new(2, 4, &[SUITE], &limits);
    // Only node 1 is asked, so nothing finishes.
    let mut taken = 0;
    let mut refused = 0;
    for i in 0..4 * LIMIT {
        match group.node(1).submit(group.request(SUITE, &format!("flood {i}"))).await {
            Ok(_) => taken += 1,
            Err(SubmitError::Overloaded(limit)) => {
                assert_eq!(limit, "running instances");
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
        assert!(group.node(1).load().running <= LIMIT);
    }
    assert!(taken >= LIMIT && refused > 0, "{taken} taken, {refused} refused");
    assert!(group.metric(1, "theta_overloaded_total{limit=\"running\"}") >= 1.0);
    eventually("they expire", || group.node(1).load().running == 0).await;
    group.answers(SUITE, "after the flood").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_runs_can_be_joined_at_the_limit() {
    let limits = OrchestratorConfig { max_instances: 1, ..config() };
    let group = Group::new(2, 4, &[SUITE], &limits);
    let request = group.request(SUITE, "only one");
    let id = group.node(1).submit(request.clone()).await.unwrap();
    let error = group.node(1).submit(group.request(SUITE, "one more")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "this node is at its limit of running instances: try again later or ask another node"
    );
    assert_eq!(group.node(1).submit(request).await.unwrap(), id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_of_requests_are_bounded() {
    let limits = OrchestratorConfig { max_statement_bytes: 1_000, ..config() };
    let group = Group::new(2, 4, &[Suite::Bls04MinPk], &limits);
    let ask = |letter: &str, len| group.request(Suite::Bls04MinPk, &letter.repeat(len));
    group.node(1).submit(ask("a", 900)).await.unwrap();
    let error = group.node(1).submit(ask("b", 101)).await.unwrap_err();
    assert_eq!(error, SubmitError::Overloaded("memory for requests"));
    group.node(1).submit(ask("c", 100)).await.unwrap();
    group.run_at(&[2], &ask("a", 900)).await;
    group.node(1).outcome(group.id(&ask("a", 900))).await.unwrap();
    group.node(1).submit(ask("b", 101)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_junk_messages_neither_fill_memory_nor_evict_the_honest() {
    const LIMIT: usize = 1_000;
    let limits = OrchestratorConfig {
        backlog_messages_per_peer: LIMIT,
        backlog_age: Duration::from_secs(120),
        // Otherwise node 2's share would come twice.
        resend_after: Duration::from_secs(600),
        ..config()
    };
    let group = Group::new(2, 4, &[SUITE], &limits);
    let request = group.request(SUITE, "honest and early");
    group.node(2).submit(request.clone()).await.unwrap();
    eventually("the honest share waits", || group.node(1).load().backlog == 1).await;
    for number in 0..100_000 {
        group.wire.inject(4, 1, junk(number)).await;
    }
    // Messages for which the node has no time wait in their sender's own room, which is bounded, too.
    let dropped = || group.metric(1, "theta_backlog_dropped_total") + group.metric(1, "theta_mail_dropped_total");
    eventually("the rest is dropped", || dropped() + 1_001.0 > 100_000.0).await;
    assert_eq!(group.node(1).load().backlog, LIMIT + 1);
    let results = group.run_at(&[1], &request).await;
    assert_eq!(results[0].contributors.iter().map(|party| party.get()).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn junk_leaves_by_age() {
    let limits = OrchestratorConfig { backlog_age: Duration::from_millis(100), ..config() };
    let group = Group::new(2, 4, &[SUITE], &limits);
    for number in 0..500 {
        group.wire.inject(4, 1, junk(number)).await;
    }
    eventually("all is dropped", || (group.metric(1, "theta_backlog_dropped_total") - 500.0).abs() < 0.1).await;
    eventually("the backlog is empty", || group.node(1).load().backlog == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_leave_by_number() {
    let limits = OrchestratorConfig { results_count: 10, backlog_messages_per_peer: 100, ..config() };
    let group = Group::new(2, 4, &[SUITE], &limits);
    let mut ids = Vec::new();
    for i in 0..60 {
        let request = group.request(SUITE, &format!("result {i}"));
        ids.push(group.id(&request));
        group.run(&request).await;
        assert!(group.node(1).load().results <= 10);
    }
    let unknown = group.node(1).outcome(ids[0]).await.unwrap_err();
    assert_eq!(unknown, InstanceError::Unknown(ids[0]));
    assert!(unknown.to_string().contains("send the request again"));
    assert!(group.node(1).status(ids[0]).await.is_none());
    assert!(group.node(1).watch(ids[0]).await.is_none());
    group.node(1).outcome(ids[59]).await.unwrap();
    // The result can be had again.
    group.answers(SUITE, "result 0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_leave_by_bytes() {
    let limits = OrchestratorConfig { results_bytes: 20_000, ..config() };
    let group = Group::new(2, 4, &[SUITE], &limits);
    for i in 0..60 {
        group.run(&group.request(SUITE, &format!("result {i}"))).await;
    }
    let kept = group.node(1).load().results;
    assert!((2..40).contains(&kept), "{kept}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_leave_by_age() {
    let limits = OrchestratorConfig { results_age: Duration::from_millis(200), ..config() };
    let group = Group::new(2, 4, &[SUITE], &limits);
    let request = group.request(SUITE, "short-lived");
    let finished = group.run(&request).await;
    let id = group.id(&request);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while group.node(1).status(id).await.is_some() {
        assert!(tokio::time::Instant::now() < deadline, "it never leaves");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(group.node(1).outcome(id).await.unwrap_err(), InstanceError::Unknown(id));
    eventually("it is gone", || group.node(1).load().results == 0).await;
    // Code that still holds it can read it.
    assert!(!finished[0].result.expose().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_shares_leave_nothing_behind() {
    // Where results are checked together, shares that come during the check are not late: they are kept unread.
    let suite = Suite::Cks05Ed25519;
    let group = Group::of_four(&[suite]);
    for i in 0..50 {
        group.run(&group.request(suite, &format!("late {i}"))).await;
    }
    let stage = format!("theta_stage_seconds_count{{stage=\"combining\",scheme=\"{suite}\"}}");
    eventually("two of three shares are late", || group.metric(1, "theta_messages_late_total") >= 99.0).await;
    assert!((group.metric(1, &stage) - 50.0).abs() < 0.1);
    assert_eq!(group.node(1).load().backlog, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn computations_run_on_cpu_threads_and_are_bounded() {
    let limits = OrchestratorConfig { max_computations: 3, ..config() };
    let group = Group::new(2, 4, &[SUITE], &limits);
    let node = group.node(1);
    let name = node.compute(|_| std::thread::current().name().unwrap().to_owned()).await.unwrap();
    assert!(name.starts_with("theta-cpu-"), "{name}");
    let gate = Arc::new(std::sync::Barrier::new(3));
    let mut held = Vec::new();
    for _ in 0..2 {
        let (node, gate) = (Arc::clone(node), Arc::clone(&gate));
        held.push(tokio::spawn(async move { node.compute(move |_| gate.wait().is_leader()).await }));
    }
    eventually("both run", || node.load().computations == 2).await;
    let (third, waiting) = (Arc::clone(node), Arc::clone(node));
    let third = tokio::spawn(async move { third.compute(|rng| rng.next_u64()).await });
    eventually("the third waits", || waiting.load().computations == 3).await;
    assert_eq!(node.compute(|_| ()).await.unwrap_err(), ComputeError::Overloaded("computations"));
    tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
    for task in held {
        task.await.unwrap().unwrap();
    }
    third.await.unwrap().unwrap();
    assert_eq!(node.compute(|_| panic!("on purpose")).await.unwrap_err(), ComputeError::Panicked);
    eventually("all permits are back", || node.load().computations == 0).await;
    group.answers(SUITE, "the threads live on").await;
}

#[tokio::test]
async fn an_orchestrator_refuses_what_cannot_work() {
    let group = Group::of_four(&[SUITE]);
    let wire = Wire::new(4);
    let mut registry = prometheus_client::registry::Registry::default();
    let (port, inbound) = wire.attach(1);
    let wrong = Orchestrator::start(config(), group.key_store(3), port, inbound, &mut registry).unwrap_err();
    assert!(matches!(wrong, StartError::WrongNode { keys: 3, local: 1 }), "{wrong}");
    let (port, inbound) = wire.attach(1);
    let limits = OrchestratorConfig { inbox: 0, ..config() };
    let wrong = Orchestrator::start(limits, group.key_store(1), port, inbound, &mut registry).unwrap_err();
    assert_eq!(wrong.to_string(), "inbox is 0: it must be from 1 to 1000000");
    let (port, inbound) = wire.attach(1);
    let keyless =
        Orchestrator::start(config(), Keys::from(theta_custody::KeyTable::default()), port, inbound, &mut registry)
            .unwrap();
    let error = keyless.submit(group.request(SUITE, "x")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("there is no key \"{SUITE}\" here; the known ones are: none"));
}
