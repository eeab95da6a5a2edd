//! Nodes that record used nonces before they sign.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use prometheus_client::registry::Registry;
use theta_orchestration::{Keys, Orchestrator, OrchestratorConfig, StartError};
use theta_schemes::Suite;

use super::{
    cluster::Cluster,
    members::{Member, Question, ceremony, create},
    threads::{answers, hold, limits},
};
use crate::{
    gated,
    group::{Group, config},
    wire::Wire,
};

const SUITE: Suite = Suite::FrostSecp256k1;

/// The day before which a node's store has forgotten burnt ids: not 0 once it has burnt anything.
fn watermark(member: &Member) -> u32 {
    member.custodian(1).store().burn_watermark().unwrap()
}

/// In one round and in two, on threads that do not wait for the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_come_all_the_same() {
    for nonces_per_peer in [8, 0] {
        let members = Member::group(2, 4);
        let wire = Wire::new(4);
        let mut nodes = BTreeMap::new();
        for (id, member) in (1..).zip(&members) {
            let (port, inbound) = wire.attach(id);
            let limits = OrchestratorConfig { nonces_per_peer, burn_nonces: true, ..limits() };
            let custodian = member.custodian(u64::from(id));
            let node = gated::Orchestrator::start(limits, custodian, port, inbound, &mut Registry::default()).unwrap();
            nodes.insert(id, node);
        }
        let all: Vec<_> = nodes.values().collect();
        hold(&all, &ceremony(1, create("key", SUITE, 2, &[1, 2, 3, 4]))).await;
        for number in 0..8 {
            answers(&all, &format!("message {number}")).await;
        }
        assert!(all.iter().all(|node| node.culprits().is_empty()));
        nodes.values().for_each(|node| node.shutdown());
        drop(nodes);
        // Nodes that answer late sign nothing.
        assert!(members.iter().any(|member| watermark(member) > 0), "{nonces_per_peer} made in advance");
    }
}

/// An engine has no other thread for it.
#[test]
fn an_engine_puts_them_on_record_itself() {
    let mut cluster = Cluster::with_limits(2, 2, 1, &OrchestratorConfig { burn_nonces: true, ..config() });
    // It is told the present day.
    cluster.pass(Duration::from_secs(60));
    cluster.hold(&[1, 2], create("key", SUITE, 2, &[1, 2]));
    for number in 0..4 {
        let question = Question::new(&cluster.key(1), &format!("message {number}"));
        let pending = [1, 2].map(|node| cluster.submit(node, &question.request));
        cluster.until("both have it", |_| pending.iter().all(|pending| pending.outcome().is_some()));
        pending.iter().for_each(|pending| question.check(&pending.outcome().unwrap().unwrap()));
    }
    let watermark = |engine: &mut gated::Engine| engine.custodian().unwrap().store().burn_watermark().unwrap();
    assert!([1, 2].into_iter().any(|node| watermark(cluster.engine(node)) > 0));
    assert!([1, 2].into_iter().all(|node| cluster.engine(node).culprits().is_empty()));
}

/// Without a store there is no place for the records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_store_a_node_that_should_does_not_start() {
    let group = Group::new(2, 4, &[SUITE], &config());
    let keys = Keys::Fixed(Arc::clone(group.node(1).keys()));
    let (port, inbound) = Wire::new(4).attach(1);
    let limits = OrchestratorConfig { burn_nonces: true, ..config() };
    let refused = Orchestrator::start(limits, keys, port, inbound, &mut Registry::default()).err().unwrap();
    assert!(matches!(refused, StartError::NoStore), "{refused}");
    assert!(refused.to_string().contains("burn_nonces"));
}
