//! Stores that were copied and put back.

mod burner;
mod ledger;
mod members;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use theta_custody::{CeremonyError, CeremonyState, Custodian, CustodyEffect, CustodyInput, announcement};
use theta_names::{Epoch, NodeId};
use theta_schemes::Suite;
use theta_statements::KeyChange;
use theta_store::{Options, Store, disk::SimulatedDisk};

use crate::net::{Net, name, party, sealing_key, seeded};

const COIN: Suite = Suite::Cks05Ristretto255;

/// Of whose stores this node says that they are set back, and which peer says so if it is its own.
fn rollbacks(net: &Net, node: u16) -> Vec<(u16, Option<u16>)> {
    let told = net.nodes[&node].told.iter().filter_map(|effect| match effect {
        CustodyEffect::RolledBack { node, witness, .. } => Some((node.get(), witness.map(NodeId::get))),
        _ => None,
    });
    told.collect()
}

/// Puts another disk into a node.
fn exchange(net: &mut Net, node: u16, content: Vec<u8>) {
    let roster = net.roster.clone();
    let disk = SimulatedDisk::with_content(content);
    let options = Options::default().with_rng(seeded(99));
    let store = Store::open_on(disk.backend(), &sealing_key(), options).unwrap();
    let state = net.node(node);
    state.custodian = None;
    state.custodian = Some(Custodian::open(Arc::new(store), party(node), roster).unwrap());
    (state.disk, state.told) = (disk, Vec::new());
    net.packets.clear();
}

/// A person trusts a node's disk as it is, as `theta keys trust-store` does, and the node starts again.
pub(crate) fn overrule(net: &mut Net, node: u16) {
    let store = Arc::clone(net.custodian(node).store());
    let next = store.incarnation().opening.generation + 1;
    assert!(!store.write(|tx| tx.trust_opening(next)).unwrap().is_empty());
    drop(store);
    let content = net.node(node).disk.content();
    exchange(net, node, content);
}

#[test]
fn a_node_is_trusted_when_its_peers_have_answered() {
    let mut net = Net::new(3, 4, 1);
    assert!((1..=4).all(|node| !net.custodian(node).is_trusted()));
    net.drain();
    assert!((1..=4).all(|node| net.custodian(node).is_trusted()));
    net.kill(2);
    net.start(2);
    assert!(!net.custodian(2).is_trusted());
    for silent in [3, 4] {
        net.kill(silent);
    }
    net.connect();
    net.drain();
    // Two nodes may be malicious: neither one peer nor two are enough.
    assert!(!net.custodian(2).is_trusted());
    net.start(3);
    net.connect();
    net.drain();
    assert!(!net.custodian(2).is_trusted());
    net.start(4);
    net.connect();
    net.drain();
    assert!(net.custodian(2).is_trusted());
}

/// The attack: a forged greeting claims that the node's store was further than it is.
#[test]
fn one_liar_stops_nobody_and_two_have_an_honest_one_among_them() {
    let mut net = Net::new(2, 4, 5);
    net.drain();
    assert!((1..=4).all(|node| net.custodian(node).is_trusted()));
    let lie = |net: &Net, about: u16| {
        let now = net.custodian(about).store().incarnation();
        let remembered = theta_store::Incarnation { sequence: now.sequence + 1_000, ..now };
        // Format, greeting, the sender's store, what it remembers of the receiver's, no fork.
        let sender = net.custodian(1).store().incarnation();
        Bytes::from([&[1, 3][..], &sender.encode(), &[1], &remembered.encode(), &[0]].concat())
    };
    let greeting = lie(&net, 3);
    for _ in 0..50 {
        net.step(3, CustodyInput::Message { from: party(1), bytes: greeting.clone() });
    }
    assert!(net.custodian(3).is_trusted(), "one of t = 1 liars is not believed");
    assert!(rollbacks(&net, 3).contains(&(3, Some(1))), "but named");
    // A restart does not change that, while the liar goes on.
    net.liars.insert(1, Box::new(move |to, bytes| if to == 3 { vec![greeting.clone()] } else { vec![bytes] }));
    net.kill(3);
    net.start(3);
    net.connect();
    net.until(9, |_| false);
    assert!(net.custodian(3).is_trusted());
    // Two peers, one of which is honest, are believed. (Here the second one lies, too; node 3 cannot know.)
    let again = lie(&net, 3);
    net.step(3, CustodyInput::Message { from: party(2), bytes: again });
    assert!(!net.custodian(3).is_trusted());
}

/// With 2 of 2 and 2 of 3 nodes, all peers are asked if they are no more than k.
#[test]
fn in_small_groups_as_many_are_asked_as_there_are() {
    for (k, n) in [(2, 2), (2, 3), (3, 3), (2, 4), (1, 1), (1, 2), (1, 3)] {
        let mut net = Net::new(k, n, 6);
        net.drain();
        assert!((1..=n).all(|node| net.custodian(node).is_trusted()), "{k} of {n}");
        net.kill(1);
        net.start(1);
        assert_eq!(net.custodian(1).is_trusted(), n == 1, "{k} of {n}: nobody has answered");
        if n > 1 {
            net.kill(n);
            net.connect();
            net.drain();
            // If one peer is away, the others are enough if there are k of them.
            assert_eq!(net.custodian(1).is_trusted(), n >= k + 2, "{k} of {n} without one");
            net.start(n);
            net.connect();
            net.drain();
            assert!(net.custodian(1).is_trusted(), "{k} of {n}");
        }
    }
}

/// Attacks with stores that are set back: a copy is opened until its counters have passed everything that was seen; the
/// original is put back after its copy was seen.
#[test]
fn a_copy_is_not_trusted_after_any_number_of_restarts_until_a_person_says_so() {
    let mut net = Net::new(2, 4, 7);
    net.create("zone", COIN, 2, &[1, 2, 3, 4]);
    net.until(9, |_| false);
    let old = net.node(3).disk.content();
    net.run(1..=4, KeyChange::Refresh { key: name("zone"), version: None });
    net.until(50, |_| false);
    let original = net.node(3).disk.content();
    exchange(&mut net, 3, old);
    for _ in 0..8 {
        // Enough work that the copy has more commits than the original.
        for number in 0..30_u8 {
            net.custodian(3).store().append_audit(vec![number]).unwrap();
        }
        net.connect();
        net.until(50, |_| false);
        assert!(!net.custodian(3).is_trusted());
        for peer in [1, 2, 4] {
            assert!(net.custodian(peer).is_trusted());
        }
        let copy = net.node(3).disk.content();
        exchange(&mut net, 3, copy);
        assert_eq!(net.custodian(3).store().contradictions().unwrap().len(), 3, "it remembers what it was told");
    }
    // The original comes back, and does not know what its copy did meanwhile.
    let copy = net.node(3).disk.content();
    exchange(&mut net, 3, original);
    net.connect();
    net.until(9, |_| false);
    assert!(!net.custodian(3).is_trusted());
    // A person decides for the copy, at this node alone: the node trusts it at once, and its peers follow.
    exchange(&mut net, 3, copy);
    net.connect();
    net.until(9, |_| false);
    overrule(&mut net, 3);
    assert!(net.custodian(3).is_trusted());
    net.connect();
    net.until(50, |_| false);
    assert!(net.custodian(3).is_trusted());
    let confirmed =
        |effect: &CustodyEffect| matches!(effect, CustodyEffect::StoreConfirmed { node } if node.get() == 3);
    assert!([1, 2, 4].iter().all(|peer| net.nodes[peer].told.iter().any(confirmed)));
    net.kill(3);
    net.start(3);
    net.connect();
    net.until(50, |_| false);
    assert!(net.custodian(3).is_trusted() && rollbacks(&net, 3).is_empty(), "{:?}", rollbacks(&net, 3));
}

/// A supervisor starts a node again and again whose port is taken: each start opens the store, and none greets anybody.
#[test]
fn a_store_that_has_forgotten_what_its_peers_remember_is_settled_by_a_person() {
    let mut net = Net::new(2, 4, 13);
    net.create("zone", COIN, 2, &[1, 2, 3, 4]);
    net.until(50, |_| false);
    let content = net.node(3).disk.content();
    let disk = SimulatedDisk::with_content(content);
    for start in 0..4_100 {
        drop(Store::open_on(disk.backend(), &sealing_key(), Options::default().with_rng(seeded(start))).unwrap());
    }
    exchange(&mut net, 3, disk.content());
    net.connect();
    net.until(50, |_| false);
    assert!(!net.custodian(3).is_trusted());
    assert!(rollbacks(&net, 3).contains(&(3, Some(1))), "its operator is told");
    assert_eq!(net.custodian(3).store().contradictions().unwrap().len(), 3, "there is something to overrule");
    assert!(rollbacks(&net, 1).contains(&(3, None)));
    overrule(&mut net, 3);
    net.connect();
    net.until(50, |_| false);
    let confirmed =
        |effect: &CustodyEffect| matches!(effect, CustodyEffect::StoreConfirmed { node } if node.get() == 3);
    assert!([1, 2, 4].iter().all(|peer| net.nodes[peer].told.iter().any(confirmed)), "nobody doubts it any more");
    for _ in 0..2 {
        assert!((1..=4).all(|node| net.custodian(node).is_trusted()));
        net.kill(3);
        net.start(3);
        net.connect();
        net.until(50, |_| false);
    }
    net.run(1..=4, KeyChange::Refresh { key: name("zone"), version: None });
}

/// A rollback between two greetings: each decision is announced before its result leaves the node.
#[test]
fn what_was_announced_is_missed_by_a_copy_of_a_moment_before() {
    for restarted in [false, true] {
        let mut net = Net::new(2, 4, 8);
        net.drain();
        let old = net.node(3).disk.content();
        let rule = theta_store::SlotRule { key: "zone".parse().unwrap(), rule: "heights".parse().unwrap() };
        let decided = net.custodian(3).store().decide(rule, 7, [1; 32], theta_names::SlotOrder::Any).unwrap();
        assert_eq!(decided, theta_store::SlotDecision::Allowed);
        // As the node does before its share leaves; no greeting is due.
        let announcement = announcement(&net.custodian(3).store().incarnation());
        for peer in [1, 2, 4] {
            net.step(peer, CustodyInput::Message { from: party(3), bytes: announcement.clone() });
        }
        if restarted {
            // A tick later the peers have recorded it.
            net.tick();
            net.packets.clear();
            for peer in [1, 2, 4] {
                net.kill(peer);
                net.start(peer);
            }
        }
        exchange(&mut net, 3, old);
        net.connect();
        net.until(3, |_| false);
        assert!(!net.custodian(3).is_trusted());
        assert!(rollbacks(&net, 3).iter().any(|(node, _)| *node == 3));
    }
}

/// A disk that is full for a while keeps a node from what happens meanwhile, and from nothing afterwards.
#[test]
fn a_full_disk_is_recovered_from_without_a_restart() {
    for changes in [0, 1, 2, 5, 9] {
        let mut net = Net::new(2, 4, 9);
        net.create("zone", COIN, 2, &[1, 2, 3, 4]);
        net.until(9, |_| false);
        net.node(3).disk.fill_after(changes);
        let request = net.request(KeyChange::Refresh { key: name("zone"), version: None });
        for node in [1, 2, 4] {
            net.hold(node, &request).unwrap();
        }
        let failed =
            |net: &Net| net.nodes[&3].told.iter().any(|effect| matches!(effect, CustodyEffect::StoreFailed(_)));
        assert!(net.until(60, failed), "after {changes} changes");
        assert!(!net.custodian(3).is_trusted());
        let refused = net.hold(3, &request).unwrap_err();
        assert!(matches!(refused, CeremonyError::StoreFailed(_)), "it takes nothing on: {refused}");
        assert!(net.until(60, |net| [1, 2, 4].iter().all(|node| net.epoch(*node, "zone") == Some(1))));
        net.node(3).disk.make_room();
        let recovered =
            |net: &Net| net.nodes[&3].told.iter().any(|effect| matches!(effect, CustodyEffect::StoreRecovered));
        assert!(net.until(12, recovered), "after {changes} changes");
        let knows = |net: &Net| net.custodian(3).keys().get("zone").is_some_and(|entry| entry.epoch == Epoch::new(1));
        assert!(net.until(200, knows), "after {changes} changes");
        // If the disk was full before the node's secret for the ceremony was stored, nobody dealt to it.
        if net.epoch(3, "zone").is_none() {
            net.recovers(3, "zone", 1);
        }
        assert!(net.until(40, |net| net.custodian(3).is_trusted()));
    }
}

#[test]
fn an_old_copy_is_noticed_by_its_peers_and_by_itself() {
    let mut net = Net::new(2, 4, 2);
    net.create("zone", COIN, 2, &[1, 2, 3, 4]);
    net.until(9, |_| false);
    let old = net.node(3).disk.content();
    net.run(1..=4, KeyChange::Refresh { key: name("zone"), version: None });
    net.until(50, |_| false);
    // The peers remember it across their own restarts.
    for peer in [1, 2, 4] {
        net.kill(peer);
        net.start(peer);
    }
    exchange(&mut net, 3, old);
    net.connect();
    net.until(9, |_| false);
    assert!(!net.custodian(3).is_trusted());
    assert!(rollbacks(&net, 3).iter().any(|(node, _)| *node == 3), "{:?}", rollbacks(&net, 3));
    for peer in [1, 2, 4] {
        let told = rollbacks(&net, peer);
        assert!(told.iter().all(|told| *told == (3, None)) && told.len() <= 1, "{told:?}");
    }
    assert!([1, 2, 4].iter().any(|peer| !rollbacks(&net, *peer).is_empty()));
    // The node still follows the key to its new epoch: that does not depend on trust in its store.
    assert!(net.until(40, |net| net.entry(3, "zone").epoch == Epoch::new(1)));
    // It has no share, since it may have forgotten its statements in the ceremony that dealt it.
    assert!(net.entry(3, "zone").expose_share().is_none());
    // A person confirms the store.
    overrule(&mut net, 3);
    assert!(net.custodian(3).is_trusted());
    net.connect();
    net.until(9, |_| false);
    assert!((1..=4).all(|node| net.custodian(node).is_trusted()));
}

/// Where all holders are needed, one whose store was lost would hold a ceremony up until patience ends it.
#[test]
fn what_waits_for_a_store_that_nobody_confirms_is_refused_and_runs_when_it_is_settled() {
    let mut net = Net::new(3, 7, 11);
    net.create("zone", COIN, 3, &[1, 2, 3, 4, 5]);
    net.lose_everything(3);
    let recover = net.request(KeyChange::Recover { key: name("zone"), version: None, node: 3 });
    let id = net.ask([1, 2, 4, 5], &recover);
    assert!(net.until(60, |net| (1..=5).all(|node| net.state(node, &id) == CeremonyState::Recovered)));
    let rotate = net.request(KeyChange::Rotate { key: name("zone") });
    for node in [1, 2, 4, 5] {
        let refused = net.hold(node, &rotate).unwrap_err();
        let words = refused.to_string();
        assert!(matches!(refused, CeremonyError::Unconfirmed { left: 4, needed: 5, .. }), "node {node}: {words}");
        assert!(words.contains("remember of them: 3;") && words.contains("theta keys trust-store --help"), "{words}");
    }
    overrule(&mut net, 3);
    net.connect();
    net.until(9, |_| false);
    net.run(1..=5, KeyChange::Rotate { key: name("zone") });
    assert!((1..=5).all(|node| net.entry(node, "zone").version.get() == 2 && net.entry(node, "zone").has_share()));
}

/// In a group whose quorum is everybody, the ledger stands still as well.
#[test]
fn a_group_that_needs_everybody_says_whose_machine_it_waits_for() {
    let mut net = Net::new(3, 5, 12);
    net.create("zone", COIN, 3, &[1, 2, 3, 4, 5]);
    net.lose_everything(3);
    net.connect();
    net.until(3, |_| false);
    let recover = net.request(KeyChange::Recover { key: name("zone"), version: None, node: 3 });
    let refused = net.hold(1, &recover).unwrap_err().to_string();
    assert!(refused.contains("remember of them: 3;") && refused.contains("theta group warrant --help"), "{refused}");
}

#[test]
fn nobody_honest_is_suspected() {
    let mut net = Net::new(2, 4, 3);
    net.create("zone", COIN, 2, &[1, 2, 3, 4]);
    for round in 0..6_u16 {
        let node = 1 + round % 4;
        net.kill(node);
        net.start(node);
        net.connect();
        net.until(10, |_| false);
        net.run(1..=4, KeyChange::Refresh { key: name("zone"), version: None });
    }
    for node in 1..=4 {
        assert!(rollbacks(&net, node).is_empty(), "{:?}", rollbacks(&net, node));
        assert!(net.custodian(node).is_trusted());
    }
}

/// A copy from the middle of a ceremony does not have all that its node has said there since. The node says nothing until its peers have told
/// it so, and then goes on as one that has forgotten: it names nobody, nobody names it, and it ends without a share of its own.
#[test]
fn a_copy_from_the_middle_of_a_ceremony_says_nothing_there() {
    for seed in 20..24 {
        let mut net = Net::new(2, 5, seed);
        net.create("zone", COIN, 2, &[1, 2, 3, 4, 5]);
        let request = net.request(KeyChange::Refresh { key: name("zone"), version: None });
        let id = net.begin(1..=5, &request);
        let old = net.node(3).disk.content();
        let sequence = |net: &Net| net.custodian(3).store().incarnation().sequence;
        let copied = sequence(&net);
        while sequence(&net) < copied + 3 {
            net.turn();
        }
        net.connect();
        net.packets.retain(|(from, ..)| *from == 3);
        net.drain();
        assert!((1..=5).all(|node| !net.state(node, &id).is_over()), "seed {seed}: it was over too early");

        let said = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&said);
        let in_a_ceremony = |bytes: &Bytes| matches!(bytes[1], 1 | 2);
        net.liars.insert(
            3,
            Box::new(move |_, bytes| {
                count.fetch_add(usize::from(in_a_ceremony(&bytes)), Ordering::Relaxed);
                vec![bytes]
            }),
        );
        exchange(&mut net, 3, old);
        // Time passes for it, and it hears what the others say in the ceremony.
        for later in 1..20 {
            net.step(3, CustodyInput::Tick(net.now + later));
            net.packets.retain(|(_, to, bytes)| *to != 3 || in_a_ceremony(bytes));
            net.drain();
        }
        assert_eq!(said.load(Ordering::Relaxed), 0, "seed {seed}");
        net.connect();
        assert!(net.until(400, |net| (1..=5).all(|node| net.state(node, &id).is_over())), "seed {seed}");
        assert!(said.load(Ordering::Relaxed) > 0, "seed {seed}: it asks how the ceremony ends");
        for node in 1..=5 {
            assert!(net.custodian(node).report(&id).is_none_or(|report| report.evidence.is_empty()), "seed {seed}");
            assert_eq!(net.entry(node, "zone").has_share(), node != 3, "seed {seed}, node {node}");
            assert_eq!(net.entry(node, "zone").epoch.get(), 1, "seed {seed}, node {node}");
        }
    }
}
