//! Results that are checked together when a node has much to do.

use std::sync::{Arc, mpsc};

use theta_orchestration::OrchestratorConfig;
use theta_schemes::Suite;

use crate::group::{Group, PATIENCE, config};

/// Signatures that check themselves, and coins that are as good as the shares behind them: on a group with and one without cofactor.
const SUITES: [Suite; 3] = [Suite::Bls04MinPk, Suite::Cks05Ristretto255, Suite::Cks05Ed448];
const REQUESTS: usize = 12;
/// Node 4 lies about these.
const LIES: [usize; 2] = [3, 8];

/// Node 1 is kept busy until everything that it needs waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_results_are_checked_together_and_liars_are_named_all_the_same() {
    for suite in SUITES {
        checked_together(suite).await;
    }
}

async fn checked_together(suite: Suite) {
    let group = Group::new(2, 4, &[suite], &OrchestratorConfig { threads: 1, ..config() });
    let (go, wait) = mpsc::channel::<()>();
    let busy = Arc::clone(group.node(1));
    let busy = tokio::spawn(async move { busy.compute(move |_| wait.recv().is_ok()).await.unwrap() });
    let requests: Vec<_> = (0..REQUESTS).map(|number| group.request(suite, &format!("request {number}"))).collect();
    let another = group.request(suite, "another");
    for number in LIES {
        let wrong = group.share_of(suite, 4, &another);
        group.wire.inject(4, 1, group.share_message(&requests[number], wrong)).await;
    }
    let mut waiting = Vec::new();
    for request in &requests {
        let (node, request) = (Arc::clone(group.node(1)), request.clone());
        waiting.push(tokio::spawn(async move { node.run(request).await.unwrap().1.unwrap() }));
    }
    // Nodes 2 and 3 have what they need of each other; by then they have sent their shares to node 1.
    for (number, request) in requests.iter().enumerate() {
        let results = group.run_at(&[2, 3], request).await;
        group.check(suite, &format!("request {number}"), &results);
    }
    go.send(()).unwrap();
    assert!(busy.await.unwrap());
    for (number, task) in waiting.into_iter().enumerate() {
        let finished = tokio::time::timeout(PATIENCE, task).await.expect("a result in time").unwrap();
        group.check(suite, &format!("request {number}"), &[Arc::clone(&finished)]);
        let culprits: Vec<u16> = finished.culprits.iter().map(|culprit| culprit.party.get()).collect();
        let expected: &[u16] = if LIES.contains(&number) { &[4] } else { &[] };
        assert_eq!(culprits, expected, "request {number}");
    }
    let metric = |node, name: &str| group.metric(node, &format!("theta_{name}_total"));
    let (results, checks) = (metric(1, "results_checked"), metric(1, "result_checks"));
    assert!(results >= 12.0, "{results}");
    assert!(checks <= 4.0, "{results} results in {checks} checks: they waited for each other");
}

/// A request that is alone has its result as soon as the share is there that it lacks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_result_waits_for_no_other() {
    // No tick could wake whatever waits.
    let slow = OrchestratorConfig { tick: PATIENCE, ..config() };
    for suite in SUITES {
        let group = Group::new(2, 4, &[suite], &slow);
        group.answers(suite, "alone").await;
        for node in 1..=4 {
            assert!((group.metric(node, "theta_results_checked_total") - 1.0).abs() < 0.5);
        }
    }
}
