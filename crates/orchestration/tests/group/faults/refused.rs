//! Requests whose contents one node's agent refuses, and who takes part in them.

use theta_orchestration::{CulpritRecord, NodeOffence};
use theta_schemes::Suite;

use crate::group::{Group, config, eventually};

/// Two whose shares are sent at once, and one with a coordinator.
const SUITES: [Suite; 3] = [Suite::Bls04MinPk, Suite::FrostEd25519, Suite::Sg02Ristretto255];

fn named(group: &Group, node: u16) -> Vec<(u16, NodeOffence)> {
    let named = |record: CulpritRecord| (record.culprit.party.get(), record.culprit.offence);
    group.node(node).culprits().into_iter().map(named).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_part_in_what_an_agent_refuses_is_named_once() {
    for suite in SUITES {
        let group = Group::new(2, 3, &[suite], &config());
        let (early, late) = (group.request(suite, "early"), group.request(suite, "late"));
        // Node 1's part comes before node 2's agent has decided, and after it.
        group.node(1).submit(early.clone()).await.unwrap();
        eventually("it is there", || group.metric(2, "theta_backlog_messages") > 0.0).await;
        group.node(2).refuse(&early).await;
        eventually("node 1 is named", || named(&group, 2) == [(1, NodeOffence::Consent)]).await;
        group.node(2).refuse(&late).await;
        group.node(1).submit(late.clone()).await.unwrap();
        eventually("node 1 is named again", || named(&group, 2).len() == 2).await;
        let ids = [&early, &late].map(|request| group.id(request));
        assert_eq!(group.node(2).culprits().iter().map(|record| record.culprit.instance).collect::<Vec<_>>(), ids);

        // Another part of the same request, and the agent's next refusal of it, have nobody named again; and node 2 may change its mind.
        group.node(2).refuse(&early).await;
        let results = group.run_at(&[1, 2], &early).await;
        group.check(suite, "early", &results);
        assert_eq!(named(&group, 2), [(1, NodeOffence::Consent), (1, NodeOffence::Consent)], "{suite}");
        assert!(named(&group, 1).is_empty() && named(&group, 3).is_empty(), "{suite}");
    }
}

/// What this node allowed once, others take part in with its consent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_named_for_what_was_allowed_before() {
    let group = Group::new(2, 3, &SUITES, &config());
    for suite in SUITES {
        let request = group.request(suite, "allowed");
        group.check(suite, "allowed", &group.run(&request).await);
        group.node(2).refuse(&request).await;
        // The others ask once more for what they know.
        group.check(suite, "allowed", &group.run_at(&[1, 3], &request).await);
    }
    for node in 1..=3 {
        assert_eq!(named(&group, node), [], "node {node}");
    }
}
