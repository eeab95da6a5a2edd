//! Keys in quorum mode: the attribute of the key, who does the work, and how long the others wait.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use theta_names::Delivery;
use theta_orchestration::{HoldError, OrchestratorConfig};
use theta_schemes::Suite;
use theta_statements::KeyChange;
use theta_wire::peer::{Envelope, INSTANCES};

use super::{
    cluster::Cluster,
    members::{Question, ceremony, name, party},
};
use crate::{
    group::{Group, config},
    wire::{open, seal},
};

/// The kinds of messages of one-round protocols.
const SHARE: u32 = 1;
const COMBINED: u32 = 4;
/// Longer than any test: nothing that waits so long happens.
const NEVER: Duration = Duration::from_secs(60 * 60);

fn quorum(suite: Suite, k: u16, holders: &[u16]) -> KeyChange {
    let (key, suite, holders) = (name("key"), suite.into(), holders.to_vec());
    KeyChange::Create { key, suite, delivery: Delivery::Quorum, k, holders }
}

fn is(bytes: &Bytes, kind: u32) -> bool {
    let envelope = open(bytes);
    envelope.stream == INSTANCES && envelope.kind == kind
}

/// Asks these nodes for something new; returns who sent shares.
fn ask(cluster: &mut Cluster, nodes: &[u16], text: &str) -> BTreeSet<u16> {
    let question = Question::new(&cluster.key(nodes[0]), text);
    let before = cluster.log.len();
    let pending: Vec<_> = nodes.iter().map(|node| cluster.submit(*node, &question.request)).collect();
    cluster.until("all have answers", |_| pending.iter().all(|pending| pending.outcome().is_some()));
    pending.iter().for_each(|pending| question.check(&pending.outcome().unwrap().unwrap()));
    // What is still on its way arrives, too.
    (0..400).for_each(|_| cluster.turn());
    let sent = cluster.log[before..].iter().filter(|(_, _, bytes)| is(bytes, SHARE));
    sent.map(|(from, ..)| *from).collect()
}

fn all_have(cluster: &Cluster, nodes: &[u16], delivery: Delivery) {
    assert!(nodes.iter().all(|node| cluster.key(*node).delivery == delivery));
}

#[test]
fn a_key_keeps_its_delivery_whatever_becomes_of_its_shares() {
    let all = [1, 2, 3, 4, 5, 6, 7];
    let mut cluster = Cluster::new(3, 7, 1);
    cluster.hold(&all, quorum(Suite::Bls04MinPk, 3, &all));
    all_have(&cluster, &all, Delivery::Quorum);
    assert_eq!(ask(&mut cluster, &all, "made").len(), 4, "as many as it takes and one more");

    // Node 7 takes over the public part of what was made without it, and recovers its share.
    cluster.cut.insert(7);
    cluster.hold(&all[..6], KeyChange::Refresh { key: name("key"), version: None });
    cluster.cut.clear();
    cluster.until("node 7 follows", |cluster| cluster.key(7).epoch > theta_names::Epoch::FIRST);
    assert!(cluster.key(7).expose_share().is_none());
    all_have(&cluster, &all, Delivery::Quorum);
    cluster.hold(&all, KeyChange::Recover { key: name("key"), version: None, node: 7 });
    cluster.until("node 7 has a share", |cluster| cluster.key(7).has_share());
    assert_eq!(ask(&mut cluster, &all, "refreshed").len(), 4);

    let fewer = [7, 5, 3, 2, 1];
    let reshare = KeyChange::Reshare { key: name("key"), version: None, k: 2, holders: fewer.to_vec() };
    cluster.hold(&all, reshare);
    assert_eq!(ask(&mut cluster, &fewer, "moved").len(), 3);
    cluster.hold(&fewer, KeyChange::Rotate { key: name("key") });
    cluster.kill(3);
    cluster.start(3);
    assert_eq!(cluster.key(3).version.get(), 2);
    all_have(&cluster, &fewer, Delivery::Quorum);
    assert_eq!(ask(&mut cluster, &fewer, "rotated").len(), 3);
    assert!(cluster.ids().iter().all(|id| cluster.engine(*id).culprits().is_empty()));
}

#[test]
fn a_key_that_has_no_quorum_mode_is_not_made() {
    let all = [1, 2, 3, 4];
    let mut cluster = Cluster::new(2, 4, 1);
    for suite in [Suite::EcdsaP256, Suite::FrostEd25519] {
        let refused = cluster.engine(1).hold(ceremony(1, quorum(suite, 2, &all))).unwrap_err();
        assert!(matches!(refused, HoldError::Ceremony(_)), "{refused}");
        assert!(refused.to_string().contains(&format!("{suite} have no quorum mode")), "{refused}");
    }
}

/// Two nodes are asked late, and one never: the others do not wait for them, nor they for the others.
#[test]
fn nodes_that_are_asked_late_or_never_are_as_good_as_before() {
    let all = [1, 2, 3, 4, 5, 6, 7];
    for seed in 1..9 {
        let mut cluster = Cluster::new(3, 7, seed);
        cluster.hold(&all, quorum(Suite::Sg02Ristretto255, 3, &all));
        let question = Question::new(&cluster.key(1), "whenever");
        let early: Vec<_> = [4, 2, 6, 1].map(|node| cluster.submit(node, &question.request)).into();
        cluster.until("those that were asked have it", |_| early.iter().all(|pending| pending.outcome().is_some()));
        let late: Vec<_> = [3, 5].map(|node| cluster.submit(node, &question.request)).into();
        cluster.until("the late have it", |_| late.iter().all(|pending| pending.outcome().is_some()));
        for pending in early.iter().chain(&late) {
            question.check(&pending.outcome().unwrap().unwrap());
        }
        assert!(cluster.log.iter().all(|(from, _, bytes)| *from != 7 || !is(bytes, SHARE)), "nobody asked node 7");
        assert!(cluster.ids().iter().all(|id| cluster.engine(*id).culprits().is_empty()));
    }
}

const SUITES: [Suite; 6] = [
    Suite::Sg02Ristretto255,
    Suite::Bls04MinSig,
    Suite::Cks05Ristretto255,
    Suite::Sh00Pkcs1Sha256,
    Suite::Cks05Bls04MinSig,
    Suite::Cks05Ed25519,
];

/// Whether whoever is told a result learns whose shares are in it: a coin that proves itself by its shares has them.
fn says_who(suite: Suite) -> bool {
    [Suite::Cks05Ristretto255, Suite::Cks05Ed25519].contains(&suite)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn makers_make_and_the_others_are_told() {
    let limits = OrchestratorConfig { hedge_after: NEVER, resend_after: NEVER, ..config() };
    let group = Group::in_quorum_mode(3, 7, &SUITES, &limits);
    let makers = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&makers);
    group.wire.tamper(move |from, _, bytes| {
        if is(&bytes, SHARE) {
            seen.lock().unwrap().insert(from);
        }
        vec![bytes]
    });
    for suite in SUITES {
        for text in ["one", "another"] {
            makers.lock().unwrap().clear();
            let results = group.run(&group.request(suite, text)).await;
            group.check(suite, text, &results);
            assert_eq!(makers.lock().unwrap().len(), 4, "{suite}");
            let told = results.iter().filter(|finished| finished.contributors.is_empty()).count();
            let knows = results.iter().filter(|finished| finished.contributors.len() == 3).count();
            assert_eq!(told + knows, 7);
            let expected = if says_who(suite) { 0..=0 } else { 5..=6 };
            assert!(expected.contains(&told), "{suite}: {told} were told, {knows} combined");
        }
    }
}

/// Ticks by themselves come once an hour here, and so would the usual questions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn combiners_that_tell_nobody_cost_the_others_a_short_wait() {
    let limits = OrchestratorConfig { tick: NEVER, resend_after: NEVER, ..config() };
    let group = Group::in_quorum_mode(3, 7, &SUITES[..3], &limits);
    group.wire.tamper(|_, _, bytes| if is(&bytes, COMBINED) { Vec::new() } else { vec![bytes] });
    for suite in &SUITES[..3] {
        for text in ["one", "another"] {
            let results = group.run(&group.request(*suite, text)).await;
            group.check(*suite, text, &results);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_combiner_that_lies_is_named_and_stops_nobody() {
    for suite in &SUITES[..3] {
        let group = Group::in_quorum_mode(3, 7, &[*suite], &config());
        // The first that tells a combined value lies, and the other one tells none.
        let liar = Arc::new(Mutex::new(None));
        let first = Arc::clone(&liar);
        group.wire.tamper(move |from, _, bytes| {
            if !is(&bytes, COMBINED) {
                return vec![bytes];
            }
            if *first.lock().unwrap().get_or_insert(from) != from {
                return Vec::new();
            }
            let envelope = open(&bytes);
            let payload = envelope.payload.iter().rev().copied().collect();
            vec![seal(&Envelope { payload, ..envelope })]
        });
        let results = group.run(&group.request(*suite, "a lie")).await;
        group.check(*suite, "a lie", &results);
        let liar = party(liar.lock().unwrap().unwrap());
        let named: Vec<_> = results.iter().flat_map(|finished| &finished.culprits).collect();
        assert!(!named.is_empty());
        for culprit in named {
            assert_eq!(culprit.party, liar);
            assert_eq!(culprit.offence.to_string(), "combined value fails verification");
        }
    }
}

/// Messages take longer than latencies tell: after some requests nobody does the work of those who were drawn any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waited_in_vain_waits_longer_the_next_time() {
    let suite = SUITES[1];
    let group = Group::in_quorum_mode(3, 7, &[suite], &config());
    group.wire.delay(Duration::from_millis(40));
    let hedges = || (1..=7).map(|node| group.metric(node, "theta_hedges_total")).sum::<f64>();
    let mut before = Vec::new();
    for number in 0..24 {
        let text = format!("request {number}");
        let results = group.run(&group.request(suite, &text)).await;
        group.check(suite, &text, &results);
        before.push(hedges());
    }
    let (first, last) = (before[3], before[23] - before[19]);
    assert!(first > 0.0, "a message takes 40 ms, and nobody knows");
    assert!(last < first / 2.0, "{first} in the first four requests, {last} in the last four: {before:?}");
}
