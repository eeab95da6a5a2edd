//! Nodes that lose power during a ceremony.

use theta_custody::{CeremonyState, CustodyEffect};
use theta_names::{Epoch, Version};
use theta_rounds::simulator::below;
use theta_schemes::Suite;
use theta_statements::KeyChange;

use crate::net::{Net, name};
use crate::use_keys::{check_decryption, encrypt};

/// A group with a key.
fn with_key() -> Net {
    let mut net = Net::new(2, 4, 1);
    net.create("zone", Suite::Sg02Ristretto255, 2, &[1, 2, 3, 4]);
    net.drain();
    net
}

/// The same group, about to refresh the key.
fn about_to_refresh(net: &Net, seed: u64) -> (Net, [u8; 32]) {
    let mut net = net.copy(seed);
    net.drain();
    let request = net.request(KeyChange::Refresh { key: name("zone"), version: None });
    let id = net.begin(1..=4, &request);
    (net, id)
}

fn all_over(net: &Net, id: &[u8; 32]) -> bool {
    net.up().len() == 4 && (1..=4).all(|node| net.state(node, id).is_over())
}

/// Checks that all have the same key with shares that work. One node may have been away when shares were dealt, and
/// recovers its share.
fn check_alike(net: &mut Net, id: &[u8; 32], when: &str) {
    let first = net.entry(1, "zone");
    for node in 1..=4 {
        let CeremonyState::Activated { .. } = net.state(node, id) else {
            panic!("{when}: node {node}: {:?}", net.state(node, id));
        };
        let entry = net.entry(node, "zone");
        assert_eq!((entry.epoch.get(), &entry.public), (1, &first.public), "{when}: node {node}");
        let store = net.custodian(node).store();
        let old = store.share(&"zone".parse().unwrap(), Version::FIRST, Epoch::FIRST).unwrap();
        assert!(old.is_none(), "{when}: node {node}");
    }
    let without: Vec<u16> = (1..=4).filter(|node| net.entry(*node, "zone").expose_share().is_none()).collect();
    assert!(without.len() <= 1, "{when}: {without:?} were left out");
    without.iter().for_each(|node| net.recovers(*node, "zone", 1));
    let ciphertext = encrypt(&first.public);
    check_decryption(net, &[2, 3], "zone", &ciphertext);
    check_decryption(net, &[4, 1], "zone", &ciphertext);
}

/// Runs the ceremony once for each entry of the journal after which node 2 can be killed.
#[test]
fn a_node_may_die_after_every_entry_of_its_journal() {
    let journalled = |net: &Net| net.custodian(2).store().incarnation().sequence;
    let group = with_key();
    let (mut undisturbed, id) = about_to_refresh(&group, 1);
    let before = journalled(&undisturbed);
    while !all_over(&undisturbed, &id) {
        undisturbed.turn();
    }
    check_alike(&mut undisturbed, &id, "undisturbed");
    let entries = journalled(&undisturbed) - before;
    assert!(entries > 8, "{entries} entries");
    for dies_after in 0..=entries {
        let (mut net, id) = about_to_refresh(&group, 1);
        let before = journalled(&net);
        while journalled(&net) < before + dies_after && !all_over(&net, &id) {
            net.turn();
        }
        net.kill(2);
        if dies_after % 3 == 0 {
            // It is killed before its messages are sent.
            net.packets.retain(|(from, ..)| *from != 2);
        }
        // The others finish before it is back, or do not.
        if dies_after % 2 == 0 {
            net.until(3, |_| false);
        }
        net.start(2);
        assert!(net.until(60, |net| all_over(net, &id)), "died after {dies_after}");
        check_alike(&mut net, &id, &format!("died after {dies_after}"));
    }
}

/// The power fails during a commit: the node reports that its store failed, and nothing else.
#[test]
fn the_power_may_fail_in_the_middle_of_a_commit() {
    let group = with_key();
    for seed in 0..24 {
        let (mut net, id) = about_to_refresh(&group, seed);
        let until_failure = 1 + below(&mut net.rng, 40) + seed * 12;
        net.node(2).disk.fail_after(until_failure);
        let mut turns = 0;
        let failed =
            |net: &mut Net| net.node(2).told.iter().any(|effect| matches!(effect, CustodyEffect::StoreFailed(_)));
        while !failed(&mut net) && turns < 400 {
            net.turn();
            turns += 1;
        }
        net.kill(2);
        net.node(2).told.clear();
        net.start(2);
        assert!(net.until(60, |net| all_over(net, &id)), "power failed after {until_failure} operations");
        check_alike(&mut net, &id, &format!("power failed after {until_failure} operations"));
    }
}

/// All nodes are killed again and again.
#[test]
fn everybody_may_die_many_times() {
    let group = with_key();
    let mut all_deaths = 0;
    for seed in 10..14 {
        let (mut net, id) = about_to_refresh(&group, seed);
        let mut deaths = 0;
        while !all_over(&net, &id) {
            net.turn();
            if deaths < 10 && below(&mut net.rng, 4) == 0 {
                let unlucky = 1 + u16::try_from(below(&mut net.rng, 4)).unwrap();
                net.kill(unlucky);
                net.start(unlucky);
                deaths += 1;
            }
        }
        all_deaths += deaths;
        check_alike(&mut net, &id, &format!("seed {seed}"));
    }
    assert!(all_deaths > 12, "{all_deaths}");
}

/// The result of a ceremony and its report survive a restart.
#[test]
fn what_ended_is_remembered() {
    let (mut net, id) = about_to_refresh(&with_key(), 20);
    assert!(net.until(60, |net| all_over(net, &id)));
    let report = net.custodian(3).report(&id).unwrap();
    net.kill(3);
    net.start(3);
    assert_eq!(net.custodian(3).report(&id), Some(report));
    check_alike(&mut net, &id, "after a restart");
}
