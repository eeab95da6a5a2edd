//! Nodes that were absent.

mod overload;
mod thresholds;

use theta_custody::{CeremonyState, CustodyEffect};
use theta_schemes::{Delivery, Suite};
use theta_statements::{CancelRequest, KeyChange};

use crate::net::{Net, name};
use crate::use_keys::{check_coin, check_decryption, encrypt};

const SG02: Suite = Suite::Sg02Ristretto255;
const COIN: Suite = Suite::Cks05Ristretto255;

/// Nodes that no client asked learn of a ceremony from nodes that were asked.
#[test]
fn who_was_not_asked_joins_when_enough_have_it() {
    let mut net = Net::new(2, 4, 1);
    let change = KeyChange::Create {
        key: name("zone"),
        suite: COIN.into(),
        delivery: Delivery::All,
        k: 2,
        holders: vec![1, 2, 3, 4],
    };
    let request = net.request(change);
    // One node alone brings nobody in.
    let id = net.ask([1], &request);
    assert!(!net.until(20, |net| (2..=4).any(|node| net.custodian(node).report(&id).is_some())));
    net.ask([3], &request);
    assert!(net.until(40, |net| (1..=4).all(|node| net.state(node, &id).is_over())));
    check_coin(&net, &[2, 4], "zone");
}

#[test]
fn who_was_down_for_the_whole_ceremony_catches_up() {
    let mut net = Net::new(2, 4, 2);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let ciphertext = encrypt(&net.entry(1, "files").public);
    net.kill(4);
    let id = net.run(1..=3, KeyChange::Refresh { key: name("files"), version: None });
    // The others no longer have what is needed to run it, but keep what is needed to answer.
    for node in 1..=3 {
        net.kill(node);
        net.start(node);
    }
    net.start(4);
    assert_eq!(net.epoch(4, "files"), Some(0));
    net.connect();
    net.recovers(4, "files", 1);
    assert!(matches!(net.state(4, &id), CeremonyState::Activated { .. }));
    check_decryption(&net, &[4, 2], "files", &ciphertext);
}

#[test]
fn who_missed_several_ceremonies_joins_the_last() {
    let mut net = Net::new(2, 4, 3);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let ciphertext = encrypt(&net.entry(1, "files").public);
    net.kill(2);
    for _ in 0..6 {
        net.run([1, 3, 4], KeyChange::Refresh { key: name("files"), version: None });
    }
    net.create("new", COIN, 2, &[1, 3, 4]);
    net.start(2);
    net.connect();
    net.recovers(2, "files", 6);
    check_decryption(&net, &[2, 1], "files", &ciphertext);
    // It does not hold the other key, and does not know it.
    assert!(net.custodian(2).keys().get("new").is_none());
}

/// A node that was made a holder while it was down.
#[test]
fn a_new_holder_may_come_late() {
    let mut net = Net::new(2, 5, 4);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let ciphertext = encrypt(&net.entry(1, "files").public);
    net.kill(5);
    let change = KeyChange::Reshare { key: name("files"), version: None, k: 2, holders: vec![2, 3, 4, 5] };
    net.run(1..=4, change);
    net.start(5);
    net.connect();
    net.recovers(5, "files", 1);
    check_decryption(&net, &[5, 3], "files", &ciphertext);
}

/// Too few are asked: after a while the node says so, and another ceremony of the key may run.
#[test]
fn what_too_few_are_asked_for_is_given_up() {
    let mut net = Net::new(2, 4, 5);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let request = net.request(KeyChange::Refresh { key: name("files"), version: None });
    let id = net.ask([1], &request);
    assert!(net.until(1000, |net| net.state(1, &id).is_over()));
    let CeremonyState::Failed(why) = net.state(1, &id) else { panic!() };
    assert!(why.contains("too few nodes") && why.contains("theta keys cancel"), "{why}");
    // The report names the request, so that a client can take it back.
    assert_eq!(net.custodian(1).report(&id).unwrap().request, Some(request.clone()));
    assert_eq!(net.cancel(1, &CancelRequest { request }).unwrap().state, CeremonyState::Cancelled);
    assert_eq!(net.epoch(1, "files"), Some(0));
    net.run(1..=4, KeyChange::Refresh { key: name("files"), version: None });
}

/// A node that was asked too early, and gave its request up, takes part when enough are asked.
#[test]
fn who_was_asked_too_early_takes_part_later() {
    let mut net = Net::new(2, 4, 6);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let ciphertext = encrypt(&net.entry(1, "files").public);
    let request = net.request(KeyChange::Refresh { key: name("files"), version: None });
    let id = net.ask([1], &request);
    assert!(net.until(1000, |net| net.state(1, &id).is_over()));
    net.ask([2, 3, 4], &request);
    assert!(net.until(60, |net| (2..=4).all(|node| net.epoch(node, "files") == Some(1))));
    assert!(matches!(net.state(1, &id), CeremonyState::Activated { .. }));
    check_decryption(&net, &[1, 4], "files", &ciphertext);
}

/// Nodes that stay away are listed as silent, without evidence.
#[test]
fn silence_is_told() {
    let mut net = Net::new(2, 4, 7);
    net.kill(3);
    let request = net.request(KeyChange::Create {
        key: name("other"),
        suite: COIN.into(),
        delivery: Delivery::All,
        k: 2,
        holders: vec![1, 2, 3, 4],
    });
    let id = net.ask([1, 2, 4], &request);
    let over = |net: &Net| [1, 2, 4].iter().all(|node| net.state(*node, &id).is_over());
    assert!(net.until(40, over));
    for node in [1, 2, 4] {
        let report = net.custodian(node).report(&id).unwrap();
        assert!(report.silent.contains(&3) && report.evidence.is_empty(), "{report:?}");
        let blamed = |effect: &CustodyEffect| matches!(effect, CustodyEffect::Culprit { .. });
        assert!(!net.nodes[&node].told.iter().any(blamed));
    }
}
