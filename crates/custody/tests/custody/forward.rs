//! What a thief can do with stolen stores: the attack on a refresh with an identity from before it and a disk from
//! after it, and stores that keep nothing of ceremonies that have ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use theta_custody::{CeremonyState, Custodian, CustodyEffect, CustodyInput, To};
use theta_names::Epoch;
use theta_schemes::Suite;
use theta_statements::KeyChange;
use theta_store::{Options, Store, disk::SimulatedDisk};

use crate::net::{Net, name, party, sealing_key, secret_of, seeded};
use crate::use_keys::check_coin;

const COIN: Suite = Suite::Cks05Ristretto255;

/// A custodian that the thief runs, on a disk of its own.
fn thief(net: &Net, node: u16, disk: &SimulatedDisk) -> Custodian {
    let options = Options::default().with_rng(seeded(99 + u64::from(node)));
    let store = Store::open_on(disk.backend(), &sealing_key(), options).unwrap();
    Custodian::open(Arc::new(store), party(node), net.roster.clone()).unwrap()
}

/// Lets stolen nodes talk to each other only; `recorded` is delivered first.
fn talk(nodes: &mut [(u16, Custodian)], recorded: &[(u16, u16, Bytes)], ticks: u64) {
    let mut packets: Vec<(u16, u16, Bytes)> = recorded.to_vec();
    let numbers: Vec<u16> = nodes.iter().map(|(number, _)| *number).collect();
    for tick in 0..ticks {
        for (number, custodian) in nodes.iter_mut() {
            let mut inputs = vec![CustodyInput::Tick(1_795_000_000 + tick)];
            if tick == 0 {
                inputs =
                    numbers.iter().filter(|n| **n != *number).map(|n| CustodyInput::Connected(party(*n))).collect();
            }
            for input in inputs {
                send(*number, &numbers, custodian.handle(input), &mut packets);
            }
        }
        while let Some((from, to, bytes)) = packets.pop() {
            let Some((_, custodian)) = nodes.iter_mut().find(|(number, _)| *number == to) else { continue };
            let said = custodian.handle(CustodyInput::Message { from: party(from), bytes });
            send(to, &numbers, said, &mut packets);
        }
    }
}

fn send(from: u16, all: &[u16], effects: Vec<CustodyEffect>, packets: &mut Vec<(u16, u16, Bytes)>) {
    for effect in effects {
        if let CustodyEffect::Send { to, bytes } = effect {
            match to {
                To::One(to) => packets.push((from, to.get(), bytes)),
                To::All => packets.extend(all.iter().filter(|to| **to != from).map(|to| (from, *to, bytes.clone()))),
            }
        }
    }
}

/// A disk with an identity and nothing else.
fn only_identity(node: u16) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let store = Store::create_on(disk.backend(), &sealing_key(), Options::default().with_rng(seeded(7))).unwrap();
    store.set_identity(&secret_of(node)).unwrap();
    disk
}

/// The thief has node 1's identity from before a refresh, all messages of the refresh, and node 2's disk from after it.
/// That made two shares of the newest epoch while ceremonies could be replayed from the identity.
#[test]
fn an_identity_from_before_and_a_disk_from_after_give_one_share() {
    let mut net = Net::new(2, 4, 41);
    net.create("zone", COIN, 2, &[1, 2, 3, 4]);
    let before = net.node(1).disk.content();
    let request = net.request(KeyChange::Refresh { key: name("zone"), version: None });
    let id = net.ask(1..=4, &request);
    let mut recorded = BTreeSet::new();
    while !(1..=4).all(|node| net.state(node, &id).is_over()) {
        recorded.extend(net.packets.iter().filter(|(_, to, _)| *to == 1).cloned());
        net.turn();
    }
    net.drain();
    let recorded: Vec<_> = recorded.into_iter().collect();
    let after = net.node(2).disk.content();
    for disk in [only_identity(1), SimulatedDisk::with_content(before)] {
        let stolen = SimulatedDisk::with_content(after.clone());
        let mut nodes = vec![(2, thief(&net, 2, &stolen)), (1, thief(&net, 1, &disk))];
        talk(&mut nodes, &recorded, 60);
        let entry = nodes[1].1.keys().get("zone").unwrap();
        // It learns the public part, and no share.
        assert_eq!(entry.epoch, Epoch::new(1));
        assert!(entry.expose_share().is_none(), "the thief has node 1's share of the newest epoch");
        assert!(nodes[0].1.keys().get("zone").unwrap().has_share());
    }
    check_coin(&net, &[1, 3], "zone");
}

/// No store has the secret of an ended ceremony, and the secrets of two ceremonies of one node are independent.
#[test]
fn the_secret_of_a_ceremony_goes_with_it() {
    let mut net = Net::new(2, 4, 42);
    net.create("zone", COIN, 2, &[1, 2, 3, 4]);
    let request = net.request(KeyChange::Refresh { key: name("zone"), version: None });
    let id = net.begin(1..=4, &request);
    let seed = |net: &Net, node: u16| {
        let ceremony = net.custodian(node).store().ceremony(&id).unwrap().unwrap();
        ceremony.seed.map(|seed| *seed.expose())
    };
    let seeds: Vec<_> = (1..=4).map(|node| seed(&net, node).unwrap()).collect();
    assert!((1..4).all(|other| seeds[0] != seeds[other]));
    assert!(net.until(60, |net| (1..=4).all(|node| net.state(node, &id).is_over())));
    assert!((1..=4).all(|node| seed(&net, node).is_none()));
    // The secret of a ceremony of which nothing comes is removed, too.
    net.create("pair", COIN, 2, &[1, 2]);
    let request = net.request(KeyChange::Refresh { key: name("pair"), version: None });
    let id = net.begin(1..=4, &request);
    let seed = |net: &Net| net.custodian(1).store().ceremony(&id).unwrap().unwrap().seed.is_some();
    assert!(seed(&net) && !net.state(1, &id).is_over());
    net.kill(2);
    assert!(net.until(1000, |net| [1, 3, 4].iter().all(|node| net.state(*node, &id) == CeremonyState::Aborted)));
    assert!(!seed(&net));
    // Who was away hears of it, and the key can be renewed.
    net.start(2);
    net.connect();
    assert!(net.until(60, |net| net.state(2, &id) == CeremonyState::Aborted));
    net.run([1, 2], KeyChange::Refresh { key: name("pair"), version: None });
}
