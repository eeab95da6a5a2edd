//! A key with a threshold above the group's: its own k says how many of its holders have to consent to a ceremony.

use theta_custody::CeremonyState;
use theta_schemes::{Delivery, Suite};
use theta_statements::KeyChange;

use crate::net::{Net, name};
use crate::use_keys::{check_coin, check_decryption, encrypt};

const SG02: Suite = Suite::Sg02Ristretto255;
const COIN: Suite = Suite::Cks05Ristretto255;

/// A group in which one node may be malicious, with a key of which three holders may be.
fn group_with_a_vault(seed: u64) -> Net {
    let mut net = Net::new(2, 5, seed);
    net.create("vault", SG02, 4, &[1, 2, 3, 4, 5]);
    net
}

fn change(what: &str) -> KeyChange {
    let (key, version) = (name("vault"), None);
    match what {
        "reshare" => KeyChange::Reshare { key, version, k: 2, holders: vec![1, 2] },
        "refresh" => KeyChange::Refresh { key, version },
        "recover" => KeyChange::Recover { key, version, node: 5 },
        _ => KeyChange::Rotate { key },
    }
}

/// In a group with k = 2, two nodes reshare a key of 4 of 5 to themselves alone, or begin another ceremony for it.
#[test]
fn a_group_s_k_nodes_get_no_key_of_a_greater_k() {
    for (seed, what) in (1..).zip(["reshare", "refresh", "recover", "rotate"]) {
        let mut net = group_with_a_vault(seed);
        let ciphertext = encrypt(&net.entry(1, "vault").public);
        if what == "recover" {
            net.kill(5);
            net.lose_everything(5);
            net.connect();
        }
        let request = net.request(change(what));
        let id = net.ask([1, 2], &request);
        net.until(300, |_| false);
        for node in 3..=5 {
            assert!(net.custodian(node).report(&id).is_none(), "node {node} was talked into it: {what}");
        }
        for node in [1, 2] {
            let state = net.state(node, &id);
            assert!(matches!(state, CeremonyState::Running { .. } | CeremonyState::Failed(_)), "{what}: {state:?}");
        }
        for node in 1..=4 {
            assert_eq!(net.epoch(node, "vault"), Some(0), "{what}");
        }
        check_decryption(&net, &[1, 2, 3, 4], "vault", &ciphertext);
    }
}

/// As many holders as the key's k bring in the others, since one of them is honest.
#[test]
fn its_own_k_holders_bring_in_the_others() {
    for (seed, what) in (11..).zip(["refresh", "recover", "rotate"]) {
        let mut net = group_with_a_vault(seed);
        if what == "recover" {
            net.kill(5);
            net.lose_everything(5);
            net.connect();
        }
        let request = net.request(change(what));
        let id = net.ask([1, 2, 3], &request);
        net.until(60, |_| false);
        assert!([4, 5].iter().all(|node| net.custodian(*node).report(&id).is_none()), "three are not four: {what}");
        net.ask([4], &request);
        assert!(net.until(60, |net| (1..=5).all(|node| net.state(node, &id).is_over())), "{what}");
        assert!((1..=5).all(|node| net.epoch(node, "vault") == Some(u32::from(what == "refresh"))), "{what}");
    }
}

/// Nodes without a share are not counted: a holder and a future holder claim that a key of 2 of 3 is to be moved.
#[test]
fn who_holds_no_share_is_not_counted() {
    let mut net = Net::new(2, 6, 21);
    net.create("vault", SG02, 2, &[1, 2, 3]);
    let to = KeyChange::Reshare { key: name("vault"), version: None, k: 2, holders: vec![1, 4, 5, 6] };
    let request = net.request(to);
    let id = net.ask([1], &request);
    for _ in 0..20 {
        // Node 4 repeats node 1's messages as its own.
        let of_one = net.packets.iter().filter(|(from, to, _)| *from == 1 && *to != 4);
        let copied: Vec<_> = of_one.map(|(_, to, bytes)| (4, *to, bytes.clone())).collect();
        net.packets.extend(copied);
        net.drain();
        net.tick();
    }
    net.drain();
    assert!([2, 3, 5, 6].iter().all(|node| net.custodian(*node).report(&id).is_none()));
    net.ask([2], &request);
    assert!(net.until(60, |net| (1..=6).all(|node| net.state(node, &id).is_over())));
    assert_eq!((net.epoch(5, "vault"), net.epoch(2, "vault")), (Some(1), None));
}

/// A new key of 4 of 5 is not made because two nodes claim it.
#[test]
fn a_new_key_takes_as_many_as_its_k() {
    let mut net = Net::new(2, 5, 41);
    let request = net.request(KeyChange::Create {
        key: name("dice"),
        suite: COIN.into(),
        delivery: Delivery::All,
        k: 4,
        holders: vec![1, 2, 3, 4, 5],
    });
    let id = net.ask([1, 2, 3], &request);
    assert!(!net.until(60, |net| [4, 5].iter().any(|node| net.custodian(*node).report(&id).is_some())));
    net.ask([4], &request);
    assert!(net.until(60, |net| (1..=5).all(|node| net.state(node, &id).is_over())));
    check_coin(&net, &[1, 3, 4, 5], "dice");
}
