//! Stores that were copied and put back.

use std::sync::Arc;

use theta_custody::{Custodian, CustodyEffect, KeyChange};
use theta_schemes::Suite;
use theta_store::{Options, Store, disk::SimulatedDisk};

use crate::net::{Net, name, party, sealing_key, seeded};

const COIN: Suite = Suite::Cks05Ristretto255;

fn rollbacks(net: &Net, node: u16) -> Vec<(u16, String)> {
    let told = net.nodes[&node].told.iter().filter_map(|effect| match effect {
        CustodyEffect::RolledBack { node, text } => Some((node.get(), text.clone())),
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
    // One peer is not enough where two may do what they like.
    assert!(!net.custodian(2).is_trusted());
    net.start(3);
    net.connect();
    net.drain();
    assert!(net.custodian(2).is_trusted());
}

#[test]
fn an_old_copy_is_noticed_by_its_peers_and_by_itself() {
    let mut net = Net::new(2, 4, 2);
    net.create("zone", COIN, 2, &[1, 2, 3, 4]);
    net.until(9, |_| false);
    let old = net.node(3).disk.content();
    net.run(1..=4, KeyChange::Refresh { key: name("zone"), version: 0 });
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
        assert!(told.iter().all(|(node, _)| *node == 3) && told.len() <= 1, "{told:?}");
    }
    assert!([1, 2, 4].iter().any(|peer| !rollbacks(&net, *peer).is_empty()));
    // It still catches up with the key, since what it holds for others is not in question.
    assert!(net.until(40, |net| net.entry(3, "zone").epoch == 1));
    // Without a share: it may have forgotten what it said when that was dealt.
    assert!(net.entry(3, "zone").share.is_none());
    // Until a person says that it is meant.
    for node in 1..=4 {
        net.node(node).custodian.as_mut().unwrap().confirm_store(party(3)).unwrap();
    }
    net.until(9, |_| false);
    assert!(net.custodian(3).is_trusted());
    assert!((1..=4).all(|node| net.custodian(node).is_trusted()));
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
        net.run(1..=4, KeyChange::Refresh { key: name("zone"), version: 0 });
    }
    for node in 1..=4 {
        assert!(rollbacks(&net, node).is_empty(), "{:?}", rollbacks(&net, node));
        assert!(net.custodian(node).is_trusted());
    }
}
