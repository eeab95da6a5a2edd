//! Keys whose shares change while requests run.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use theta_authority::KeyRequest;
use theta_custody::{KeyEntry, ResolveError};
use theta_names::{Epoch, KeyState, Version};
use theta_orchestration::{InstanceError, InstanceState, Pending, SubmitError};
use theta_schemes::Suite;
use theta_statements::{KeyChange, StateChange};
use theta_wire::peer::{Envelope, VERSION};

use super::{
    cluster::Cluster,
    members::{Question, name, party},
};
use crate::wire::seal;

const SUITES: [Suite; 5] =
    [Suite::Sg02Ristretto255, Suite::Bz03Bls12381, Suite::Bls04MinPk, Suite::FrostEd25519, Suite::Cks05Ristretto255];

fn refresh() -> KeyChange {
    KeyChange::Refresh { key: name("key"), version: None }
}

fn all_ended(pending: &[Pending]) -> bool {
    pending.iter().all(|pending| pending.outcome().is_some())
}

/// Asks these nodes until all have the right answer.
fn answers(cluster: &mut Cluster, nodes: &[u16], text: &str) {
    let question = Question::new(&cluster.key(nodes[0]), text);
    let pending: Vec<_> = nodes.iter().map(|node| cluster.submit(*node, &question.request)).collect();
    cluster.until("all have answers", |_| all_ended(&pending));
    for pending in pending {
        question.check(&pending.outcome().unwrap().unwrap());
    }
}

#[test]
fn nodes_are_not_share_indices() {
    for suite in SUITES {
        // Node 2 is party 5, node 5 party 1; node 3 holds no share.
        let holders = [5, 4, 6, 1, 2];
        let mut cluster = Cluster::with_key(suite, 3, &holders, 6, 1);
        answers(&mut cluster, &holders, "asked of all");
        answers(&mut cluster, &[2, 4, 6], "asked of three");
        let question = Question::new(&cluster.key(1), "who answers");
        let pending: Vec<_> = [2, 5, 6].map(|node| cluster.submit(node, &question.request)).into();
        cluster.until("the three have it", |_| all_ended(&pending));
        let finished = pending[0].outcome().unwrap().unwrap();
        let mut contributors: Vec<u16> = finished.contributors.iter().map(|party| party.get()).collect();
        contributors.sort_unstable();
        assert_eq!(contributors, [2, 5, 6]);
        let refused = cluster.engine(3).submit(question.request).unwrap_err();
        assert!(matches!(&refused, SubmitError::Key(ResolveError::Unknown { .. })), "{refused}");
        assert!(cluster.ids().iter().all(|id| cluster.engine(*id).culprits().is_empty()));
        // Nodes 3 and 4 ask for what was sent in the instance; node 4 holds a share.
        let instance_id = Bytes::copy_from_slice(&pending[0].id().0);
        let bytes = seal(&Envelope { version: VERSION, instance_id, kind: u32::MAX, ..Envelope::default() });
        let before = cluster.log.len();
        for (from, to) in [3, 4].into_iter().flat_map(|from| [2, 5, 6].map(|to| (from, to))) {
            let (from, channel) = (crate::wire::peer(from), theta_names::Channel::Private);
            cluster.engine(to).receive(theta_network::Inbound { from, channel, bytes: bytes.clone() });
        }
        (0..500).for_each(|_| cluster.turn());
        let answered = |(_, to, bytes): &(u16, u16, Bytes)| *to == 4 && crate::wire::open(bytes).stream != 1;
        assert!(cluster.log.iter().skip(before).any(answered));
        // Shares go only to holders, also when others ask.
        assert!(cluster.log.iter().all(|(_, to, bytes)| *to != 3 || crate::wire::open(bytes).stream == 1));
    }
}

#[test]
fn the_silent_and_the_liars_are_named_by_their_nodes() {
    let suite = Suite::Cks05Ristretto255;
    let mut cluster = Cluster::with_key(suite, 3, &[5, 4, 2, 1], 5, 2);
    let question = Question::new(&cluster.key(1), "said by node 5");
    let pending = cluster.submit(1, &question.request);
    let instance_id = Bytes::copy_from_slice(&pending.id().0);
    let payload = Bytes::from_static(b"no share");
    let lie = seal(&Envelope { version: VERSION, instance_id, kind: 1, number: 1, payload, ..Envelope::default() });
    let inbound = |from| theta_network::Inbound {
        from: crate::wire::peer(from),
        channel: theta_names::Channel::Private,
        bytes: lie.clone(),
    };
    // Node 3 holds no share: its messages in an instance are ignored.
    cluster.engine(1).receive(inbound(3));
    assert!(cluster.engine(1).culprits().is_empty());
    cluster.engine(1).receive(inbound(5));
    let record = cluster.engine(1).culprits().pop().unwrap();
    assert_eq!((record.culprit.party, record.culprit.instance), (party(5), pending.id()));
    cluster.until("time runs out", |cluster| {
        cluster.pass(Duration::from_millis(500));
        pending.outcome().is_some()
    });
    let text = pending.outcome().unwrap().unwrap_err().to_string();
    assert!(text.starts_with("1 of 3 shares after 60 s; nothing from nodes 4, 2: are they running?"), "{text}");
    assert!(text.contains("node 5 misbehaved"), "{text}");
}

/// Requests at all nodes at all times, during three changes of epoch.
#[test]
fn requests_under_load_end_well_at_all_nodes_while_the_epoch_changes() {
    for (seed, suite) in (10..).zip(SUITES.into_iter().chain(SUITES)) {
        let mut cluster = Cluster::with_key(suite, 3, &[2, 1, 4, 3], 4, seed);
        let old = Arc::downgrade(&cluster.key(1));
        let (mut questions, mut waiting) = (Vec::new(), Vec::new());
        let mut epochs = vec![cluster.key(1).public.clone()];
        for epoch in 1..=3 {
            let id = cluster.begin(&[1, 2, 3, 4], refresh());
            let mut turns = 0;
            cluster.until("the refresh ends", |cluster| {
                turns += 1;
                if turns % 8 == 1 && questions.len() < 10 * usize::try_from(epoch).unwrap() {
                    let key = cluster.key(1);
                    questions.push(Question::new(&key, &format!("{epoch} {turns}")));
                    waiting.extend((1..=4).map(|node| (questions.len() - 1, node)));
                }
                // Every node is asked for everything, at some time.
                if turns % 2 == 0 && !waiting.is_empty() {
                    let place = cluster.below(waiting.len());
                    let (question, node) = waiting.swap_remove(place);
                    let pending = cluster.submit(node, &questions[question].request);
                    ASKED.with_borrow_mut(|asked| asked.push((question, node, pending)));
                }
                (1..=4).all(|node| cluster.is_done(node, &id))
            });
            assert!((1..=4).all(|node| cluster.key(node).epoch == Epoch::new(epoch)));
            epochs.push(cluster.key(1).public.clone());
        }
        for (question, node) in waiting {
            let pending = cluster.submit(node, &questions[question].request);
            ASKED.with_borrow_mut(|asked| asked.push((question, node, pending)));
        }
        let asked = ASKED.take();
        assert!(asked.len() >= 4 * 9, "{} requests", asked.len());
        cluster.until("all end", |_| asked.iter().all(|(_, _, pending)| pending.outcome().is_some()));
        for (question, node, pending) in &asked {
            questions[*question].check_under(&pending.outcome().unwrap().unwrap(), &epochs);
            // The id that was returned at first is still known.
            let state = cluster.engine(*node).status(pending.id()).unwrap().state;
            assert!(matches!(state, InstanceState::Finished(_)), "{state:?}");
        }
        assert!(cluster.ids().iter().all(|id| cluster.engine(*id).culprits().is_empty()));
        assert_eq!(old.strong_count(), 0, "the shares of epoch 0 are still in memory");
        answers(&mut cluster, &[1, 2, 3, 4], "and after it");
    }
}

thread_local! {
    /// The requests, the nodes that got them, and their results.
    static ASKED: std::cell::RefCell<Vec<(usize, u16, Pending)>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Three of four have their answers under the old epoch. The fourth, asked before the change, has none yet.
#[test]
fn those_who_have_finished_help_one_that_has_not_under_the_next_epoch() {
    for suite in SUITES {
        let mut cluster = Cluster::with_key(suite, 3, &[1, 2, 3, 4], 4, 4);
        let question = Question::new(&cluster.key(1), "not yet");
        cluster.cut.insert(4);
        let late = cluster.submit(4, &question.request);
        let early: Vec<_> = (1..=3).map(|node| cluster.submit(node, &question.request)).collect();
        cluster.until("three have it", |_| all_ended(&early));
        let mut watch = cluster.engine(4).watch(late.id()).unwrap();
        cluster.until("nothing is left of it", |cluster| {
            cluster.pass(Duration::from_millis(10));
            (1..=3).all(|node| cluster.engine(node).load().running == 0)
        });
        // The shares of epoch 0 are gone before node 4 receives anything.
        let id = cluster.begin(&[1, 2, 3, 4], refresh());
        cluster.cut.clear();
        cluster.until("the refresh ends", |cluster| (1..=4).all(|node| cluster.is_done(node, &id)));
        cluster.until("node 4 has it too", |_| late.outcome().is_some());
        question.check_under(&late.outcome().unwrap().unwrap(), [&cluster.key(4).public]);
        assert!(matches!(watch.borrow_and_update().state, InstanceState::Finished(_)));
        let status = cluster.engine(4).status(late.id()).unwrap();
        assert!(matches!(status.state, InstanceState::Finished(_)));
        // Repeated requests get the existing result, except for a coin, whose proof would not hold any more.
        let again: Vec<_> = (1..=3).map(|node| cluster.submit(node, &question.request)).collect();
        cluster.until("all have it again", |_| all_ended(&again));
        let (first, again) = (early[0].outcome().unwrap().unwrap(), again[0].outcome().unwrap().unwrap());
        assert_eq!(Arc::ptr_eq(&first, &again), suite != Suite::Cks05Ristretto255);
        assert_eq!(first.result.expose(), again.result.expose());
        question.check_under(&again, [&cluster.key(1).public]);
    }
}

#[test]
fn shares_that_are_gone_are_gone_from_memory() {
    for suite in SUITES {
        let mut cluster = Cluster::with_key(suite, 2, &[1, 2, 3, 4], 4, 5);
        let old: Vec<(Weak<KeyEntry>, Weak<_>)> = (1..=4)
            .map(|node| cluster.key(node))
            .map(|key| (Arc::downgrade(&key), Arc::downgrade(key.expose_share().unwrap())))
            .collect();
        answers(&mut cluster, &[1, 2, 3, 4], "answered before");
        // One instance that runs and never ends, and one that has run out of time.
        let expired = Question::new(&cluster.key(1), "expired");
        let pending = cluster.submit(1, &expired.request);
        cluster.until("time runs out", |cluster| {
            cluster.pass(Duration::from_millis(500));
            pending.outcome().is_some()
        });
        let running = Question::new(&cluster.key(1), "running");
        let running = cluster.submit(2, &running.request);
        cluster.hold(&[1, 2, 3, 4], refresh());
        assert!(running.outcome().is_none());
        for (entry, share) in &old {
            assert_eq!((entry.strong_count(), share.strong_count()), (0, 0), "{suite}");
        }
    }
}

#[test]
fn shares_move_to_other_nodes_under_load() {
    for suite in SUITES {
        let mut cluster = Cluster::with_key(suite, 2, &[1, 2, 3], 6, 6);
        let question = Question::new(&cluster.key(1), "moved");
        let running = cluster.submit(1, &question.request);
        let holders = vec![6, 3, 5, 4];
        let change = KeyChange::Reshare { key: name("key"), version: None, k: 3, holders };
        // Nodes that do not know the key join when others have the ceremony.
        let id = cluster.begin(&[1, 2, 3], change);
        cluster.until("the shares are moved", |cluster| (1..=6).all(|node| cluster.is_done(node, &id)));
        // Node 1 has no share to go on with.
        let refused = running.outcome().unwrap().unwrap_err();
        assert!(matches!(&refused, InstanceError::Key(ResolveError::NotHolder { .. })), "{refused}");
        assert!(refused.to_string().contains("6, 3, 5, 4"), "{refused}");
        assert!(cluster.key(1).expose_share().is_none());
        answers(&mut cluster, &[3, 4, 5, 6], "three of four now");
        assert_eq!(cluster.key(4).public.public_key_bytes(), cluster.key(1).public.public_key_bytes());
    }
}

#[test]
fn a_key_that_is_rotated_or_disabled_ends_its_requests() {
    let mut cluster = Cluster::with_key(Suite::Bls04MinPk, 2, &[1, 2, 3, 4], 4, 7);
    let old = cluster.key(1);
    let question = Question::new(&old, "which version?");
    let pending: Vec<_> = [1, 2].map(|node| cluster.submit(node, &question.request)).into();
    cluster.cut.extend([1, 2]);
    let late: Vec<_> = [3, 4].map(|node| cluster.submit(node, &question.request)).into();
    cluster.until("two have it", |_| all_ended(&late));
    let lone = Question::new(&old, "alone");
    let lone = cluster.submit(1, &lone.request);
    cluster.cut.clear();
    cluster.hold(&[1, 2, 3, 4], KeyChange::Rotate { key: name("key") });
    let new = cluster.key(1);
    assert_eq!((new.version.get(), old.version.get()), (2, 1));
    cluster.until("the others have it", |_| all_ended(&pending));
    let KeyRequest::Sign(message) = &question.request.operation else { panic!() };
    let under = |key: &KeyEntry, result: &[u8]| key.public.verify(message, result, &[]).is_ok();
    for late in &late {
        assert!(under(&old, late.outcome().unwrap().unwrap().result.expose()));
    }
    // The policies were asked when the name meant version 1: nothing is signed with version 2 for those requests.
    let rotated_out = |ended: InstanceError| assert!(matches!(ended, InstanceError::Key(ResolveError::Retired { .. })));
    for pending in &pending {
        match pending.outcome().unwrap() {
            Ok(finished) => assert!(under(&old, finished.result.expose()) && !under(&new, finished.result.expose())),
            Err(ended) => rotated_out(ended),
        }
    }
    rotated_out(lone.outcome().unwrap().unwrap_err());
    // Nor when a node that was asked anew sends messages of it: the others were not asked.
    let again = cluster.submit(3, &question.request);
    cluster.until("nobody joins", |cluster| {
        cluster.pass(Duration::from_millis(500));
        again.outcome().is_some()
    });
    assert!(matches!(again.outcome().unwrap(), Err(InstanceError::Expired(_))));
    // A repeated request is answered under the new version, if enough nodes are asked.
    answers(&mut cluster, &[1, 2, 3, 4], "asked again");
    let lone = Question::new(&new, "alone");
    let lone = cluster.submit(1, &lone.request);
    let change =
        StateChange { key: name("key"), version: None, state: KeyState::Disabled, generation: 1, not_before: 0 };
    cluster.engine(1).change_key(&change).unwrap();
    let ended = lone.outcome().unwrap().unwrap_err();
    assert!(matches!(&ended, InstanceError::Key(ResolveError::Disabled(_))), "{ended}");
    let refused = cluster.engine(1).submit(question.request).unwrap_err();
    assert!(refused.to_string().contains("enable it"), "{refused}");
    let enable = StateChange { state: KeyState::Active, ..change };
    for node in [2, 3] {
        cluster.engine(node).change_key(&enable).unwrap();
    }
    cluster.until("it is enabled", |cluster| cluster.key(1).state == KeyState::Active);
    answers(&mut cluster, &[1, 2, 3, 4], "enabled again");
}

#[test]
fn old_ciphertexts_are_decrypted_by_the_version_that_they_name() {
    let mut cluster = Cluster::with_key(Suite::Sg02Ristretto255, 2, &[1, 2, 3, 4], 4, 8);
    let question = Question::new(&cluster.key(1), "years ago");
    cluster.hold(&[1, 2, 3, 4], KeyChange::Rotate { key: name("key") });
    cluster.hold(&[1, 2, 3, 4], KeyChange::Refresh { key: name("key"), version: Version::new(1) });
    let pending: Vec<_> = (1..=4).map(|node| cluster.submit(node, &question.request)).collect();
    cluster.until("all have it", |_| all_ended(&pending));
    question.check(&pending[3].outcome().unwrap().unwrap());
    answers(&mut cluster, &[1, 2, 3, 4], "today");
}

#[test]
fn a_node_without_power_comes_back_to_the_new_epoch() {
    for seed in 20..24 {
        let mut cluster = Cluster::with_key(Suite::Sg02Ristretto255, 2, &[1, 2, 3, 4], 4, seed);
        let id = cluster.begin(&[1, 2, 3, 4], refresh());
        let turns = cluster.below(120);
        (0..turns).for_each(|_| cluster.turn());
        cluster.kill(2);
        let question = Question::new(&cluster.key(1), "meanwhile");
        let pending: Vec<_> = [1, 3, 4].map(|node| cluster.submit(node, &question.request)).into();
        cluster.until("three have it", |_| all_ended(&pending));
        cluster.start(2);
        cluster.until("the refresh ends", |cluster| (1..=4).all(|node| cluster.is_done(node, &id)));
        assert!((1..=4).all(|node| cluster.key(node).epoch == Epoch::new(1)));
        if cluster.key(2).expose_share().is_none() {
            // It was away when shares were dealt.
            let id = cluster.begin(&[1, 2, 3, 4], KeyChange::Recover { key: name("key"), version: None, node: 2 });
            cluster.until("its share is found", |cluster| cluster.is_done(2, &id) && cluster.key(2).has_share());
        }
        answers(&mut cluster, &[1, 2, 3, 4], "all together");
        assert!(cluster.metric(1, "theta_ceremonies_total{outcome=\"activated\"}") >= 2.0);
    }
}

#[test]
fn ceremonies_replay_from_their_seeds() {
    let run = || {
        let mut cluster = Cluster::with_key(Suite::FrostEd25519, 2, &[3, 2, 1], 3, 9);
        let question = Question::new(&cluster.key(1), "the same");
        (1..=3).for_each(|node| drop(cluster.submit(node, &question.request)));
        cluster.hold(&[1, 2, 3], refresh());
        (0..200).for_each(|_| cluster.turn());
        cluster.log
    };
    let (first, second) = (run(), run());
    assert!(first.len() > 50, "{}", first.len());
    assert!(first == second);
}
