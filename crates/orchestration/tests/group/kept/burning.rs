//! Nodes that record used nonces before they sign.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use prometheus_client::registry::Registry;
use theta_custody::KeyEntry;
use theta_orchestration::{Keys, Orchestrator, OrchestratorConfig, StartError};
use theta_protocols::{Served, Used, ecdsa::Ask};
use theta_rounds::PartyId;
use theta_schemes::Suite;
use theta_wire::peer::INSTANCES;

use super::{
    cluster::Cluster,
    members::{Member, Question, ceremony, create},
    threads::{answers, hold, limits},
};
use crate::{
    gated,
    group::{Group, config},
    wire::{Wire, open},
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

/// How many presignatures a stock should have.
const LEVEL: usize = 6;
/// The kind of a share of a presignature, which begins with its name.
const SHARE: u32 = 1;
const NAME: usize = 32;

/// Three nodes whose stocks of presignatures are full; each call makes the same ones.
fn stocked(burn_nonces: bool) -> Cluster {
    let limits = OrchestratorConfig { nonces_per_peer: LEVEL, burn_nonces, ..config() };
    let mut cluster = Cluster::with_limits(2, 3, 23, &limits);
    cluster.pass(Duration::from_secs(60));
    cluster.hold(&[1, 2, 3], create("key", Suite::EcdsaP256, 2, &[1, 2, 3]));
    let is_full = |cluster: &Cluster, id| cluster.key(id).stock.presignatures_ready() >= LEVEL;
    cluster.until("stocks are full", |cluster| [1, 2, 3].into_iter().all(|id| is_full(cluster, id)));
    cluster
}

/// Takes out all presignatures of a node, whoever owns them, each owner's oldest first.
fn take_all(entry: &KeyEntry) -> Vec<Used> {
    let mut all = Vec::new();
    for index in entry.public.threshold().indices() {
        let (owner, without) = (PartyId::of_share(index), BTreeSet::new());
        let draw = || Ask::Draw { owner, without: without.clone(), waits: false, place: None };
        while let Served::Used(used) = entry.stock.presignatures(draw()) {
            all.push(used);
        }
    }
    all
}

/// The requests for which each node has sent a share of each presignature.
fn shown(cluster: &Cluster) -> BTreeMap<(u16, Vec<u8>), BTreeSet<Vec<u8>>> {
    let mut shown: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (from, _, bytes) in &cluster.log {
        let it = open(bytes);
        if it.stream == INSTANCES && it.kind == SHARE {
            shown.entry((*from, it.payload[..NAME].to_vec())).or_default().insert(it.instance_id.to_vec());
        }
    }
    shown
}

fn sign_all(cluster: &mut Cluster, what: &str) {
    for number in 0..4 {
        let question = Question::new(&cluster.key(1), &format!("{what} {number}"));
        let pending = [1, 2, 3].map(|node| cluster.submit(node, &question.request));
        cluster.until("all have it", |_| pending.iter().all(|pending| pending.outcome().is_some()));
        pending.iter().for_each(|pending| question.check(&pending.outcome().unwrap().unwrap()));
    }
}

/// The memory of all nodes is set back to when their stocks were full, while their disks go on: presignatures that have signed are there again. With the
/// record of a node's store none of them signs another message, and signatures come all the same. Without it they do.
#[test]
fn presignatures_that_come_back_with_a_memory_sign_no_more() {
    for burn_nonces in [true, false] {
        let (mut cluster, image) = (stocked(burn_nonces), stocked(burn_nonces));
        sign_all(&mut cluster, "before");
        let before: BTreeSet<Vec<u8>> = shown(&cluster).into_keys().map(|(_, name)| name).collect();
        let mut came_back = 0;
        for id in [1, 2, 3] {
            let (now, then) = (cluster.key(id), image.key(id));
            drop(take_all(&now));
            let restored = take_all(&then);
            came_back += restored.iter().filter(|used| before.contains(&used.name())).count();
            let day = restored.iter().map(Used::day).min().unwrap();
            let presignatures = restored.into_iter().filter_map(|used| match used {
                Used::Presignature(used) => Some(used.presignature),
                Used::Nonces(_) => None,
            });
            let keep = Ask::Keep { presignatures: presignatures.collect(), most: usize::MAX, day, made: None };
            assert!(matches!(now.stock.presignatures(keep), Served::Done));
        }
        assert!(!before.is_empty() && came_back > 3, "{came_back} of {}", before.len());
        sign_all(&mut cluster, "after");
        let twice = shown(&cluster).into_values().filter(|requests| requests.len() > 1).count();
        assert_eq!(twice == 0, burn_nonces, "{twice} shares of presignatures that had signed");
        assert!(cluster.ids().into_iter().all(|id| cluster.engine(id).culprits().is_empty()));
    }
}
