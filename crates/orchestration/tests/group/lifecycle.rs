//! Time passes, nodes come and go, clients go away.

use std::{sync::Arc, time::Duration};

use theta_orchestration::{InstanceError, InstanceState, OrchestratorConfig, SubmitError};
use theta_schemes::Suite;

use crate::{
    group::{Group, PATIENCE, config, eventually},
    wire::is_share,
};

const SUITE: Suite = Suite::Sg02Ristretto255;

fn hasty() -> OrchestratorConfig {
    OrchestratorConfig {
        resend_after: Duration::from_millis(30),
        resend_interval: Duration::from_millis(20),
        ..config()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_runs_out_of_time_says_what_was_missing() {
    let limits = OrchestratorConfig { instance_ttl: Duration::from_secs(1), ..config() };
    let mut group = Group::new(4, 7, &[SUITE], &limits);
    for down in [4, 6] {
        group.stop(down);
    }
    let request = group.request(SUITE, "too few");
    for id in [3, 5, 7] {
        group.wire.detach(id);
    }
    group.node(2).submit(request.clone()).await.unwrap();
    let (id, outcome) = group.node(1).run(request.clone()).await.unwrap();
    let text = "2 of 4 shares after 1 s; nothing from nodes 3, 4, 5, 6, 7: are they running? see theta status";
    assert_eq!(outcome.unwrap_err(), InstanceError::Expired(text.to_owned()));
    let snapshot = group.node(1).status(id).await.unwrap();
    assert_eq!((snapshot.shares, snapshot.needed), (2, 4));
    assert!(matches!(snapshot.state, InstanceState::Failed(said) if said == text));
    assert!(
        group.metric(1, &format!("theta_instances_finished_total{{scheme=\"{SUITE}\",result=\"expired\"}}")) >= 1.0
    );
    assert_eq!(group.node(1).load().running, 0);
}

/// The CPU threads of a node without work sleep until there is some, and know what time it is then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_work_gets_no_ticks() {
    let limits = OrchestratorConfig {
        instance_ttl: Duration::from_secs(1),
        results_age: Duration::from_secs(12),
        backlog_age: Duration::from_secs(5),
        ..config()
    };
    let group = Group::new(2, 4, &[SUITE], &limits);
    let ticks = || group.metric(1, "theta_ticks_total");
    let rest = async || {
        // Between two looks: on a busy machine the last ticks may take their time.
        let mut before = ticks();
        for _ in 0..1_000 {
            tokio::time::sleep(Duration::from_millis(150)).await;
            if core::mem::replace(&mut before, ticks()) == ticks() {
                return;
            }
        }
        panic!("it never rests");
    };
    rest().await;
    group.answers(SUITE, "work").await;
    rest().await;
    assert_eq!(group.node(1).load().results, 1, "it is kept while the node rests");
    let before = ticks();
    eventually("too old", || group.node(1).load().results == 0).await;
    assert!(ticks() - before < 20.0, "one is enough for a result that is too old");
    // A share whose request never comes is dropped as ever.
    let never = group.request(SUITE, "never");
    group.wire.inject(2, 1, group.share_message(&never, group.share_of(SUITE, 2, &never))).await;
    eventually("it waits", || group.node(1).load().backlog == 1).await;
    eventually("it was dropped", || group.node(1).load().backlog == 0).await;
    rest().await;
    // What begins after a rest has all its time.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let begin = tokio::time::Instant::now();
    let (_, outcome) = group.node(1).run(group.request(SUITE, "alone")).await.unwrap();
    assert!(outcome.unwrap_err().to_string().starts_with("1 of 2 shares after 1 s;"));
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_request_goes_on_when_it_is_sent_again() {
    let limits = OrchestratorConfig { instance_ttl: Duration::from_millis(150), ..hasty() };
    let group = Group::new(3, 4, &[SUITE], &limits);
    let request = group.request(SUITE, "again");
    // No other node is asked: the instance expires at node 1, and once more.
    for _ in 0..2 {
        let (_, outcome) = group.node(1).run(request.clone()).await.unwrap();
        let text = outcome.unwrap_err().to_string();
        assert!(text.starts_with("1 of 3 shares after 150 ms; nothing from nodes 2, 3, 4:"), "{text}");
    }
    // Then all nodes are asked until they have the result: some instances may expire before the others come.
    for id in 1..=4 {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let mut done = true;
            for other in 1..=4 {
                group.node(other).submit(request.clone()).await.unwrap();
            }
            if group.node(id).run(request.clone()).await.unwrap().1.is_err() {
                done = false;
            }
            if done {
                break;
            }
            assert!(tokio::time::Instant::now() < deadline);
        }
    }
    // Nobody took the second attempt of an honest node for equivocation.
    assert!(group.nodes.values().all(|node| node.orchestrator.culprits().is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_node_gets_the_result_that_the_others_have() {
    let mut group = Group::new(3, 4, &[SUITE], &hasty());
    let request = group.request(SUITE, "before the crash");
    let before = group.run(&request).await;
    for _ in 0..3 {
        group.start(2, hasty());
        // Only node 2 is asked: the others have finished and would not send their shares by themselves.
        let after = group.run_at(&[2], &request).await;
        assert_eq!(after[0].result.expose(), before[0].result.expose());
        assert_eq!(after[0].contributors.len(), 3);
    }
    assert!(group.nodes.values().all(|node| node.orchestrator.culprits().is_empty()));
    assert!(group.metric(1, "theta_resends_answered_total") >= 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_restarts_while_an_instance_runs_is_not_an_equivocator() {
    let mut group = Group::new(3, 4, &[SUITE], &hasty());
    let request = group.request(SUITE, "mid-flight");
    let id = group.node(1).submit(request.clone()).await.unwrap();
    let mut watch = group.node(1).watch(id).await.unwrap();
    for _ in 0..3 {
        // It makes its share anew each time; each reaches node 1 and must be the same to the byte.
        group.start(2, hasty());
        group.node(2).submit(request.clone()).await.unwrap();
        tokio::time::timeout(PATIENCE, watch.wait_for(|snapshot| snapshot.shares == 2)).await.unwrap().unwrap();
    }
    let results = group.run_at(&[1, 2, 3], &request).await;
    group.check(SUITE, "mid-flight", &results);
    assert!(results.iter().all(|finished| finished.culprits.is_empty()), "{results:?}");
    assert!(group.nodes.values().all(|node| node.orchestrator.culprits().is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_twice_when_all_goes_well() {
    let limits = OrchestratorConfig { resend_after: Duration::from_secs(30), ..config() };
    let group = Group::new(3, 4, &[SUITE], &limits);
    let shares = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&shares);
    group.wire.tamper(move |from, to, bytes| {
        log.lock().unwrap().push((from, to, is_share(&bytes)));
        vec![bytes]
    });
    for i in 0..20 {
        group.answers(SUITE, &format!("quiet {i}")).await;
    }
    group.wire.restore();
    let mut sent = shares.lock().unwrap().clone();
    assert!(sent.iter().all(|(_, _, share)| *share));
    assert_eq!(sent.len(), 20 * 4 * 3);
    sent.sort_unstable();
    sent.dedup();
    assert_eq!(sent.len(), 4 * 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_answer_a_noisy_asker_at_a_bounded_rate() {
    let limits = OrchestratorConfig { resend_interval: Duration::from_secs(3_600), ..config() };
    let group = Group::new(2, 4, &[SUITE], &limits);
    let request = group.request(SUITE, "asked for");
    group.run(&request).await;
    let instance_id = bytes::Bytes::copy_from_slice(&group.id(&request).0);
    let ask = theta_wire::peer::Envelope {
        version: theta_wire::peer::VERSION,
        instance_id,
        kind: u32::MAX,
        ..Default::default()
    };
    for _ in 0..1_000 {
        group.wire.inject(4, 1, crate::wire::seal(&ask)).await;
        group.wire.inject(3, 1, crate::wire::seal(&ask)).await;
    }
    eventually("both are answered", || group.metric(1, "theta_resends_answered_total") >= 2.0).await;
    // Once this one has been processed, all before it have been, too.
    group.node(1).outcome(group.id(&request)).await.unwrap();
    assert!(group.metric(1, "theta_resends_answered_total") <= 2.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_go_away_cost_nothing() {
    let group = Group::of_four(&[SUITE]);
    let request = group.request(SUITE, "who cares");
    let id = group.node(1).submit(request.clone()).await.unwrap();
    for _ in 0..200 {
        let gone = tokio::time::timeout(Duration::from_micros(50), group.node(1).outcome(id)).await;
        assert!(gone.is_err(), "nobody else was asked");
        let gone = tokio::time::timeout(Duration::from_micros(50), group.node(1).run(request.clone())).await;
        assert!(gone.is_err());
    }
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let node = Arc::clone(group.node(1));
        waiting.push(tokio::spawn(async move { node.outcome(id).await.unwrap() }));
    }
    let results = group.run(&request).await;
    for task in waiting {
        assert!(Arc::ptr_eq(&task.await.unwrap(), &results[0]));
    }
    assert_eq!(group.node(1).load().running, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_are_told_when_the_node_stops() {
    let group = Group::of_four(&[SUITE]);
    let request = group.request(SUITE, "never");
    let id = group.node(1).submit(request.clone()).await.unwrap();
    let node = Arc::clone(group.node(1));
    let waiting = tokio::spawn(async move { node.outcome(id).await });
    tokio::task::yield_now().await;
    group.node(1).shutdown();
    assert_eq!(
        tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap_err(),
        InstanceError::ShuttingDown
    );
    assert_eq!(group.node(1).submit(request).await.unwrap_err(), SubmitError::ShuttingDown);
    assert_eq!(group.node(1).outcome(id).await.unwrap_err(), InstanceError::ShuttingDown);
    assert!(group.node(1).status(id).await.is_none());
    group.node(1).shutdown();
}
