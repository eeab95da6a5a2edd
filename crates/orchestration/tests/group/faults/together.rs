//! Results that are checked together when a node has much to do.

use std::sync::{Arc, mpsc};

use theta_authority::KeyRequest;
use theta_orchestration::{OrchestratorConfig, SubmitError};
use theta_schemes::{RequestError, Suite};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    gated::Request,
    group::{Group, PATIENCE, config, eventually},
};

/// Signatures that check themselves, and coins that are as good as the shares behind them: on a group with and one without cofactor.
const SUITES: [Suite; 3] = [Suite::Bls04MinPk, Suite::Cks05Ristretto255, Suite::Cks05Ed448];
const REQUESTS: usize = 12;
/// Node 4 lies about these.
const LIES: [usize; 2] = [3, 8];

/// Nodes with one thread each and without ticks, which would end a batch.
fn one_thread() -> OrchestratorConfig {
    OrchestratorConfig { threads: 1, tick: PATIENCE, ..config() }
}

/// The only thread of node 1 at work, so that what comes to it waits.
struct Busy {
    go: mpsc::Sender<()>,
    work: JoinHandle<bool>,
}

impl Busy {
    /// Returns when the work has begun: what comes from then on waits.
    async fn begin(group: &Group) -> Self {
        let (go, wait) = mpsc::channel();
        let (started, starts) = oneshot::channel();
        let node = Arc::clone(group.node(1));
        let work = async move { node.compute(move |_| started.send(()).is_ok() && wait.recv().is_ok()).await.unwrap() };
        let work = tokio::spawn(work);
        starts.await.unwrap();
        Self { go, work }
    }

    /// Ends it when so many requests wait.
    async fn end_beside(self, group: &Group, requests: usize) {
        eventually("requests that wait", || group.node(1).load().queued == requests).await;
        self.go.send(()).unwrap();
        assert!(self.work.await.unwrap());
    }
}

/// Node 1 is kept busy until everything that it needs waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_results_are_checked_together_and_liars_are_named_all_the_same() {
    for suite in SUITES {
        checked_together(suite).await;
    }
}

async fn checked_together(suite: Suite) {
    let group = Group::new(2, 4, &[suite], &one_thread());
    let busy = Busy::begin(&group).await;
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
    busy.end_beside(&group, REQUESTS).await;
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

/// Ciphers whose headers are checked in one sum, and in one product of pairings.
const CIPHERS: [Suite; 3] = [Suite::Sg02Ristretto255, Suite::Sg02P256, Suite::Bz03Bls12381];

/// Node 1 is kept busy until all requests wait for it: those with a false proof are refused, and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_proofs_of_ciphertexts_are_checked_together_and_false_ones_fail_alone() {
    for suite in CIPHERS {
        let group = Group::new(2, 4, &[suite], &one_thread());
        let busy = Busy::begin(&group).await;
        let mut waiting = Vec::new();
        let requests: Vec<_> = (0..REQUESTS)
            .map(|number| match LIES.contains(&number) {
                true => tampered(&group, suite, &format!("request {number}")),
                false => group.request(suite, &format!("request {number}")),
            })
            .collect();
        // The last two are the same again: one joins the first, and one is refused like it.
        for number in (0..REQUESTS).chain([0, LIES[0]]) {
            let (node, request) = (Arc::clone(group.node(1)), requests[number].clone());
            waiting.push((number, tokio::spawn(async move { node.run(request).await })));
            if waiting.len() <= REQUESTS && !LIES.contains(&number) {
                let results = group.run_at(&[2, 3], &requests[number]).await;
                group.check(suite, &format!("request {number}"), &results);
            }
        }
        busy.end_beside(&group, waiting.len()).await;
        for (number, task) in waiting {
            let ran = tokio::time::timeout(PATIENCE, task).await.expect("an end in time").unwrap();
            match ran {
                Ok((_, finished)) => {
                    assert!(!LIES.contains(&number), "request {number}");
                    group.check(suite, &format!("request {number}"), &[finished.unwrap()]);
                }
                Err(SubmitError::Request(RequestError::InvalidCiphertext)) => {
                    assert!(LIES.contains(&number), "request {number}");
                }
                Err(other) => panic!("request {number}: {other}"),
            }
        }
        let metric = |name: &str| group.metric(1, &format!("theta_{name}_total"));
        let (proofs, checks) = (metric("proofs_checked"), metric("proof_checks"));
        assert!(proofs >= 12.0, "{proofs}");
        assert!(checks <= 6.0, "{proofs} proofs in {checks} checks: they waited for each other");
    }
}

/// A request whose proof is that of another: it is well-formed, and does not hold.
fn tampered(group: &Group, suite: Suite, text: &str) -> Request {
    let KeyRequest::Decapsulate(header) = group.request(suite, text).operation else { panic!("{suite}") };
    let KeyRequest::Decapsulate(other) = group.request(suite, "another").operation else { panic!("{suite}") };
    // f of SG02, and w of BZ03.
    let kept = header.len() - if suite.scheme() == "SG02" { 32 } else { 48 };
    let header = [&header[..kept], &other[kept..]].concat();
    Request { key: suite.name().to_owned(), operation: KeyRequest::Decapsulate(header.into()) }
}

/// A request that is alone begins at once: no tick could wake it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_ciphertext_waits_for_no_other() {
    let slow = OrchestratorConfig { tick: PATIENCE, ..config() };
    for suite in CIPHERS {
        let group = Group::new(2, 4, &[suite], &slow);
        group.answers(suite, "alone").await;
        let refused = group.node(1).run(tampered(&group, suite, "false")).await;
        assert!(matches!(refused, Err(SubmitError::Request(RequestError::InvalidCiphertext))), "{suite}");
        assert!((group.metric(1, "theta_proof_checks_total") - 2.0).abs() < 0.5);
    }
}
