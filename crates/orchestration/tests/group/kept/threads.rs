//! Threads, custodians and a wire: keys are made, renewed and moved while requests run.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::gated::{Orchestrator, Request};
use prometheus_client::{encoding::text::encode, registry::Registry};
use theta_authority::KeyRequest;
use theta_custody::{CeremonyError, CeremonyReport, CeremonyState, SlotRefusal};
use theta_names::KeyState;
use theta_orchestration::{ChangeKeyError, HoldError, NoCustodian, NotServed, OrchestratorConfig};
use theta_schemes::Suite;
use theta_statements::{CeremonyRequest, KeyChange, StateChange};
use theta_wire::peer::{Envelope, VERSION};

use super::members::{Member, Question, ceremony, create, name};
use crate::{
    group::{Group, PATIENCE, config, eventually},
    wire::{Wire, seal},
};

/// Limits for nodes with custodians.
pub(crate) fn limits() -> OrchestratorConfig {
    OrchestratorConfig {
        custody_tick: Duration::from_millis(20),
        resend_after: Duration::from_millis(100),
        resend_interval: Duration::from_millis(50),
        ..config()
    }
}

/// Follows a ceremony to its end.
pub(crate) async fn end(node: &Orchestrator, id: [u8; 32]) -> CeremonyReport {
    let ends = async {
        loop {
            // The node may not know the ceremony yet, or may have forgotten it.
            if let Some(mut watch) = node.watch_ceremony(id).await
                && let Ok(report) = watch.wait_for(|report| report.state.is_over()).await
            {
                return report.clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ends).await.expect("the ceremony ends")
}

/// Asks these nodes for a ceremony, which has to succeed at all of them; returns its id.
pub(crate) async fn hold(nodes: &[&Arc<Orchestrator>], request: &CeremonyRequest) -> [u8; 32] {
    let id = begin(nodes, request).await;
    for node in nodes {
        let report = end(node, id).await;
        assert!(matches!(report.state, CeremonyState::Activated { .. }), "{report:?}");
    }
    id
}

pub(crate) async fn begin(nodes: &[&Arc<Orchestrator>], request: &CeremonyRequest) -> [u8; 32] {
    let mut ids = Vec::new();
    for node in nodes {
        ids.push(node.hold(request.clone()).await.unwrap().id);
    }
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]));
    ids[0]
}

/// Waits until the group has begun a ceremony, and a node takes part in it.
async fn begun(node: &Arc<Orchestrator>, id: [u8; 32]) {
    let begun = async {
        while !node
            .ceremony(id)
            .await
            .is_some_and(|report| !matches!(report.state, CeremonyState::Running { of: 1, .. }))
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, begun).await.expect("the ceremony begins");
}

/// Asks these nodes at once; returns when all have the right answer.
pub(crate) async fn answers(nodes: &[&Arc<Orchestrator>], text: &str) {
    answers_with(nodes, "key", text).await;
}

/// The same with this key. One of the nodes may have been slower than the others wait for when the key was made, as on a machine that is busy, and
/// has no share then (`spec/ceremonies.md`, A new key): it is not asked.
async fn answers_with(nodes: &[&Arc<Orchestrator>], key: &str, text: &str) {
    let question = Question::new(&nodes[0].keys().get(key).unwrap(), text);
    let able = nodes.iter().filter(|node| node.keys().get(key).is_some_and(|entry| entry.has_share()));
    let able: Vec<_> = able.collect();
    assert!(able.len() + 1 >= nodes.len(), "{} of {} have a share", able.len(), nodes.len());
    let ask = |node: &&Arc<Orchestrator>| {
        let (node, request) = (Arc::clone(node), question.request.clone());
        tokio::spawn(async move { node.run(request).await.unwrap().1.unwrap() })
    };
    for task in able.into_iter().map(ask).collect::<Vec<_>>() {
        question.check(&tokio::time::timeout(PATIENCE, task).await.expect("an answer in time").unwrap());
    }
}

struct Kept {
    wire: Arc<Wire>,
    members: Vec<Member>,
    nodes: BTreeMap<u16, (Arc<Orchestrator>, Registry)>,
}

impl Kept {
    fn new(k: u16, n: u16) -> Self {
        let mut group = Self { wire: Wire::new(n), members: Member::group(k, n), nodes: BTreeMap::new() };
        (1..=n).for_each(|id| group.start(id));
        group
    }

    fn start(&mut self, id: u16) {
        static SEED: AtomicU64 = AtomicU64::new(1);
        let custodian = self.members[usize::from(id) - 1].custodian(SEED.fetch_add(1, Relaxed));
        let (port, inbound) = self.wire.attach(id);
        let mut registry = Registry::default();
        let node = Orchestrator::start(limits(), custodian, port, inbound, &mut registry).unwrap();
        self.nodes.insert(id, (node, registry));
    }

    /// The node's machine loses power.
    fn kill(&mut self, id: u16) {
        self.wire.detach(id);
        let (node, _) = self.nodes.remove(&id).unwrap();
        node.shutdown();
        drop(node);
        self.members[usize::from(id) - 1].fail_power(7);
    }

    fn node(&self, id: u16) -> &Arc<Orchestrator> {
        &self.nodes[&id].0
    }

    fn all(&self) -> Vec<&Arc<Orchestrator>> {
        self.nodes.values().map(|(node, _)| node).collect()
    }

    fn metrics(&self, id: u16) -> String {
        let mut text = String::new();
        encode(&mut text, &self.nodes[&id].1).unwrap();
        text
    }
}

/// A front end that does not check whether the store is trusted gets the refusal from certification.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_certified_in_a_store_that_nobody_has_confirmed() {
    let mut group = Kept { wire: Wire::new(4), members: Member::group(2, 4), nodes: BTreeMap::new() };
    group.start(1);
    assert!(!group.node(1).is_trusted());
    let request = Request { key: "key".to_owned(), operation: KeyRequest::Sign("for slot 7".into()) };
    let refused = group.node(1).certify_slot(&request, 7).await.unwrap_err();
    assert_eq!(refused, NotServed::Slot(SlotRefusal::Unconfirmed));
    (2..=4).for_each(|id| group.start(id));
    eventually("its store is trusted", || group.node(1).is_trusted()).await;
    let refused = group.node(1).certify_slot(&request, 7).await.unwrap_err();
    assert!(matches!(refused, NotServed::Key(_)), "there is no such key: {refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_made_and_refreshed_under_load_with_a_node_killed_on_the_way() {
    let mut group = Kept::new(2, 4);
    hold(&group.all(), &ceremony(1, create("key", Suite::Sg02Ristretto255, 2, &[4, 2, 3, 1]))).await;
    answers(&group.all(), "all four").await;
    let old = Arc::downgrade(&group.node(1).keys().get("key").unwrap());

    // Nodes 1, 2 and 4 are asked all the time.
    let stop = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..4)
        .map(|task| {
            let nodes: Vec<_> = [1, 2, 4].map(|id| Arc::clone(group.node(id))).into();
            let stop = Arc::clone(&stop);
            tokio::spawn(async move {
                let mut count = 0;
                while !stop.load(Relaxed) {
                    answers(&nodes.iter().collect::<Vec<_>>(), &format!("{task} {count}")).await;
                    count += 1;
                }
                count
            })
        })
        .collect();
    let refresh = ceremony(2, KeyChange::Refresh { key: name("key"), version: None });
    let id = begin(&group.all(), &refresh).await;
    begun(group.node(3), id).await;
    group.kill(3);
    for node in [1, 2, 4] {
        let report = end(group.node(node), id).await;
        assert!(matches!(report.state, CeremonyState::Activated { .. }), "{report:?}");
    }
    // It learns how the ceremony ended in which it took part.
    group.start(3);
    eventually("node 3 has the new shares", || {
        group.node(3).keys().get("key").is_some_and(|key| key.epoch.get() == 1 && key.has_share())
    })
    .await;
    stop.store(true, Relaxed);
    let mut count = 0;
    for task in load {
        count += tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
    }
    assert!(count > 0);
    answers(&group.all(), "all four again").await;
    eventually("the old shares are gone", || old.strong_count() == 0).await;
    assert!(group.all().iter().all(|node| node.culprits().is_empty()));
    let metric = "theta_ceremonies_total{outcome=\"activated\"} 2";
    assert!(group.metrics(1).contains(metric), "{}", group.metrics(1));
    let known = group.node(1).ceremonies().await;
    assert!(known.iter().any(|report| report.id == id && report.aim == "refresh"));
    assert_eq!(group.node(1).ceremony(id).await.unwrap().id, id);
    eventually("peers trust its store", || group.node(3).is_trusted()).await;
    assert_eq!(group.node(3).store_failure(), None);
}

/// A member that is slower than the others wait for has no share of the key (`spec/ceremonies.md`, A new key): on a machine that is busy it may be
/// this one. Then another key is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_nobody_asked_joins_a_ceremony_that_enough_others_hold() {
    let group = Kept::new(2, 4);
    for attempt in 1..=8 {
        let key = format!("key{attempt}");
        let request = ceremony(attempt, create(&key, Suite::Bls04MinPk, 2, &[1, 2, 3, 4]));
        let id = hold(&[group.node(1), group.node(2), group.node(3)], &request).await;
        let report = end(group.node(4), id).await;
        assert!(matches!(report.state, CeremonyState::Activated { .. }), "{report:?}");
        let entry = || group.node(4).keys().get(&key);
        eventually("the fourth has the key", || entry().is_some()).await;
        if entry().is_some_and(|entry| entry.has_share()) {
            return answers_with(&group.all(), &key, "the fourth too").await;
        }
    }
    panic!("the fourth was too late each time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_change_and_questions_are_answered() {
    let group = Kept::new(2, 3);
    hold(&group.all(), &ceremony(1, create("key", Suite::Bls04MinPk, 2, &[1, 2, 3]))).await;
    let node = group.node(1);
    let change =
        StateChange { key: name("key"), version: None, state: KeyState::Disabled, generation: 1, not_before: 0 };
    node.change_key(change.clone()).await.unwrap();
    let question = Question::new(&node.keys().get("key").unwrap(), "disabled");
    let refused = node.submit(question.request).await.unwrap_err().to_string();
    assert_eq!(refused, "key key is disabled: enable it to use it again");
    let unknown = node.change_key(StateChange { key: name("nokey"), ..change.clone() }).await.unwrap_err();
    assert!(matches!(unknown, ChangeKeyError::Change(_)), "{unknown}");
    // The others have not stopped; the group's decision to go on ends what it did not decide.
    let enable = StateChange { state: KeyState::Active, ..change.clone() };
    for other in [2, 3] {
        group.node(other).change_key(enable.clone()).await.unwrap();
    }
    while node.keys().get("key").unwrap().state != KeyState::Active {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    answers(&group.all(), "enabled").await;
    let again = node.hold(ceremony(2, create("key", Suite::Bls04MinPk, 2, &[1, 2, 3]))).await.unwrap_err();
    assert!(matches!(again, HoldError::Ceremony(CeremonyError::Exists(_))), "{again}");
    assert!(node.ceremony([9; 32]).await.is_none());
    assert!(node.watch_ceremony([9; 32]).await.is_none());

    let fixed = Group::of_four(&[Suite::Bls04MinPk]);
    let refused = fixed.node(1).hold(ceremony(1, KeyChange::Rotate { key: name("key") })).await.unwrap_err();
    assert!(matches!(refused, HoldError::NoCustodian(NoCustodian::Fixed)), "{refused}");
    let refused = fixed.node(1).change_key(change).await.unwrap_err();
    assert!(matches!(refused, ChangeKeyError::NoCustodian(NoCustodian::Fixed)), "{refused}");
    assert!(fixed.node(1).ceremonies().await.is_empty() && fixed.node(1).is_trusted());
    node.shutdown();
    let gone = node.hold(ceremony(3, KeyChange::Rotate { key: name("key") })).await.unwrap_err();
    assert!(matches!(gone, HoldError::NoCustodian(NoCustodian::ShuttingDown)), "{gone}");
}

/// Floods and garbage in the custodians' stream delay neither requests nor ceremonies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_among_custodians_hurts_nobody() {
    let group = Kept::new(2, 4);
    hold(&group.all(), &ceremony(1, create("key", Suite::Cks05Ristretto255, 2, &[1, 2, 3, 4]))).await;
    let noise = |byte: u8, len| {
        let payload = vec![byte; len].into();
        seal(&Envelope { version: VERSION, stream: 1, payload, ..Envelope::default() })
    };
    for i in 0..2_000_u16 {
        let len = usize::from(i % 300);
        group.wire.inject(4, 1, noise(i.to_le_bytes()[0], len)).await;
    }
    answers(&[group.node(1), group.node(2), group.node(3)], "through the noise").await;
    let refresh = ceremony(2, KeyChange::Refresh { key: name("key"), version: None });
    hold(&[group.node(1), group.node(2), group.node(3)], &refresh).await;
    answers(&[group.node(1), group.node(2), group.node(3)], "and after it").await;
}
