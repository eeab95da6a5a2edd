//! The life of keys: made, rotated, renewed, moved, recovered.

use std::sync::Arc;

use theta_custody::{CeremonyError, CeremonyState, CustodyEffect, ResolveError};
use theta_names::{Delivery, Epoch, KeyState, ShareIndex, Version};
use theta_payload::split_ciphertext;
use theta_schemes::keys::SchemeError;
use theta_schemes::{CombineError, Statement, Suite};
use theta_statements::KeyChange;

use crate::net::{Net, name, party};
use crate::use_keys::{check_decryption, check_sharing, check_signature, combine, combine_shares, encrypt};

const BLS: Suite = Suite::Bls04MinPk;
const SG02: Suite = Suite::Sg02Ristretto255;

fn changed(net: &mut Net, node: u16) -> Vec<(String, u32)> {
    let told = std::mem::take(&mut net.node(node).told);
    let changed = told.into_iter().filter_map(|effect| match effect {
        CustodyEffect::KeyChanged { name, version } => Some((name.to_string(), version.get())),
        _ => None,
    });
    changed.collect()
}

#[test]
fn a_key_is_made_by_all_and_serves() {
    let mut net = Net::new(2, 4, 1);
    let id = net.create("zone", BLS, 2, &[3, 1, 4, 2]);
    let entry = net.entry(1, "zone");
    assert_eq!((entry.version, entry.epoch, entry.state), (Version::FIRST, Epoch::FIRST, KeyState::Active));
    assert_eq!(entry.holders.nodes(), [3, 1, 4, 2].map(party));
    // Node 1 has share 2: numbers of nodes are not share indices.
    let index = |number| ShareIndex::try_from(number).unwrap();
    assert_eq!(entry.holders.index_of(party(1)), Some(index(2)));
    assert_eq!(entry.holders.node_of(index(1)), Some(party(3)));
    assert_eq!(entry.expose_share().unwrap().index().get(), 2);
    check_signature(&net, &[1, 2], "zone", &entry.public);
    check_signature(&net, &[4, 3], "zone", &entry.public);
    for node in 1..=4 {
        let CeremonyState::Activated { key_id, certificate } = net.state(node, &id) else { panic!() };
        assert_eq!(key_id, entry.key_id);
        assert!(!certificate.is_empty());
        assert_eq!(net.entry(node, "zone").public, entry.public);
        assert_eq!(changed(&mut net, node), [("zone".to_owned(), 1)]);
    }
}

#[test]
fn every_suite_on_a_curve() {
    let curves = Suite::ALL.into_iter().filter(|suite| suite.group() != "RSA");
    let mut net = Net::new(2, 4, 2);
    let mut count = 0;
    for suite in curves {
        let key = suite.name().replace('_', "-");
        net.create(&key, suite, 2, &[1, 2, 3, 4]);
        let entry = net.entry(2, &key);
        assert_eq!((entry.suite, entry.public.threshold().n()), (suite, 4));
        count += 1;
    }
    assert_eq!(count, net.custodian(1).keys().len());
    assert!(count > 20);
}

#[test]
fn new_versions_sign_and_old_ones_still_decrypt() {
    let mut net = Net::new(2, 4, 3);
    net.create("zone", BLS, 2, &[1, 2, 3, 4]);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let old = net.entry(1, "files");
    let ciphertext = encrypt(&old.public);
    for key in ["zone", "files"] {
        net.run(1..=4, KeyChange::Rotate { key: name(key) });
        assert_eq!((net.entry(1, key).version.get(), net.custodian(1).keys().versions(key).len()), (2, 2));
    }
    let table = Arc::clone(net.custodian(1).keys());
    assert_eq!(table.resolve(&"zone".parse().unwrap(), None).unwrap().version.get(), 2);
    assert!(matches!(table.resolve(&"zone@1".parse().unwrap(), None), Err(ResolveError::Retired { .. })));
    assert_ne!(net.entry(1, "files").key_id, old.key_id);
    // The ciphertext names the version to which it was encrypted.
    let found = table.resolve(&"files".parse().unwrap(), Some(&old.key_id)).unwrap();
    assert_eq!(
        (found.version.get(), found.state, found.qualified_name()),
        (1, KeyState::Retired, "files@1".to_owned())
    );
    assert_eq!(table.resolve(&"files".parse().unwrap(), None).unwrap().version.get(), 2);
    check_decryption(&net, &[2, 4], "files@1", &ciphertext);
}

#[test]
fn refreshed_shares_work_and_do_not_mix_with_old_ones() {
    let mut net = Net::new(2, 4, 4);
    net.create("zone", BLS, 2, &[1, 2, 3, 4]);
    let before: Vec<_> = (1..=4).map(|node| net.entry(node, "zone")).collect();
    for epoch in 1..=3 {
        net.run(1..=4, KeyChange::Refresh { key: name("zone"), version: None });
        assert_eq!(net.entry(3, "zone").epoch, Epoch::new(epoch));
    }
    let after: Vec<_> = (1..=4).map(|node| net.entry(node, "zone")).collect();
    assert_eq!(before[0].public.public_key_bytes(), after[0].public.public_key_bytes());
    assert_ne!(before[0].public, after[0].public);
    check_signature(&net, &[1, 2], "zone", &before[0].public);
    // An old share and a new one do not combine.
    let mixed = [before[0].expose_share().unwrap().as_ref(), after[1].expose_share().unwrap().as_ref()];
    for public in [&before[0].public, &after[0].public] {
        let refused = combine_shares(public, &mixed, Statement::Sign(b"message")).unwrap_err();
        assert!(matches!(refused, SchemeError::FalseShares(_)), "{refused}");
    }
    // The old shares are gone from the store.
    for node in 1..=4 {
        let store = Arc::clone(net.custodian(node).store());
        let zone = "zone".parse().unwrap();
        let epochs: Vec<u32> =
            (0..9).filter(|epoch| store.share(&zone, Version::FIRST, Epoch::new(*epoch)).unwrap().is_some()).collect();
        assert_eq!(epochs, [3], "node {node}");
    }
}

#[test]
fn shares_move_to_others_with_another_k() {
    let mut net = Net::new(2, 7, 5);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let before = net.entry(1, "files");
    let ciphertext = encrypt(&before.public);
    // Nodes 5, 6 and 7 do not hold the key: two of those that do are enough.
    let change = KeyChange::Reshare { key: name("files"), version: None, k: 3, holders: vec![7, 5, 4, 6] };
    let request = net.request(change);
    let id = net.begin([1, 4, 5], &request);
    let over = |net: &Net| (1..=7).all(|node| net.state(node, &id).is_over());
    assert!(net.until(60, over), "{:?}", (1..=7).map(|node| net.state(node, &id)).collect::<Vec<_>>());
    for nodes in [[4, 5, 6], [5, 6, 7]] {
        check_decryption(&net, &nodes, "files", &ciphertext);
    }
    let (header, _) = split_ciphertext(&ciphertext).unwrap();
    let too_few = combine(&net, &[4, 5], "files", Statement::Decapsulate(header)).unwrap_err();
    assert!(matches!(too_few, SchemeError::Combine(CombineError::TooFew { .. })), "{too_few}");
    let after = net.entry(5, "files");
    assert_eq!((after.epoch.get(), after.public.threshold().k(), after.key_id), (1, 3, before.key_id));
    assert_eq!(after.holders.nodes(), [7, 5, 4, 6].map(party));
    for node in 1..=3 {
        assert!(net.entry(node, "files").expose_share().is_none());
        let store = net.custodian(node).store();
        assert!(
            (0..3)
                .map(Epoch::new)
                .all(|epoch| store.share(&"files".parse().unwrap(), Version::FIRST, epoch).unwrap().is_none())
        );
        let refused = net.custodian(node).keys().resolve(&"files".parse().unwrap(), None).unwrap_err();
        assert!(matches!(refused, ResolveError::NotHolder { .. }), "{refused}");
    }
    // The key moves back to a node that gave its share up, from nodes some of which are new.
    net.run(
        [4, 5, 6, 7, 1],
        KeyChange::Reshare { key: name("files"), version: Version::new(1), k: 2, holders: vec![1, 5, 6, 7] },
    );
    check_decryption(&net, &[1, 7], "files", &ciphertext);
}

#[test]
fn a_lost_share_is_found_again() {
    let mut net = Net::new(2, 4, 6);
    net.create("zone", BLS, 2, &[4, 3, 2, 1]);
    net.run(1..=4, KeyChange::Refresh { key: name("zone"), version: None });
    let share = net.entry(3, "zone").expose_share().cloned().unwrap();
    let bytes = share.to_bytes();
    net.lose_everything(3);
    assert!(net.custodian(3).keys().is_empty());
    let change = KeyChange::Recover { key: name("zone"), version: None, node: 3 };
    let request = net.request(change);
    let id = net.ask([1, 2, 4], &request);
    let over = |net: &Net| (1..=4).all(|node| net.state(node, &id) == CeremonyState::Recovered);
    assert!(net.until(60, over), "{:?}", (1..=4).map(|node| net.state(node, &id)).collect::<Vec<_>>());
    let entry = net.entry(3, "zone");
    assert_eq!((entry.epoch, entry.version), (Epoch::new(1), Version::FIRST));
    assert_eq!(entry.expose_share().unwrap().to_bytes().expose(), bytes.expose());
    check_signature(&net, &[3, 1], "zone", &entry.public);
    // No share is lost any more.
    let again = net.request(KeyChange::Recover { key: name("zone"), version: None, node: 3 });
    assert_eq!(net.hold(3, &again), Err(CeremonyError::HasShare(party(3))));
}

/// Keys of ECDSA are shared like all others, whatever their holders compute with them: every ceremony serves them, and leaves them what they are.
#[test]
fn an_ecdsa_key_is_made_renewed_moved_recovered_and_rotated() {
    for delivery in Delivery::ALL.into_iter().filter(|delivery| *delivery != Delivery::Quorum) {
        a_life_of_an_ecdsa_key(delivery);
    }
}

fn a_life_of_an_ecdsa_key(delivery: Delivery) {
    let mut net = Net::new(2, 6, 7);
    net.create_for(delivery, "wallet", Suite::EcdsaSecp256k1, 2, &[1, 2, 3]);
    let public = net.entry(1, "wallet").public.clone();
    for nodes in [[1, 2], [3, 1]] {
        check_sharing(&net, &nodes, "wallet", &public);
    }
    net.run(1..=3, KeyChange::Refresh { key: name("wallet"), version: None });
    check_sharing(&net, &[2, 3], "wallet", &public);
    let moved = KeyChange::Reshare { key: name("wallet"), version: None, k: 3, holders: vec![6, 5, 4, 2, 1] };
    net.run(1..=6, moved);
    check_sharing(&net, &[1, 5, 6], "wallet", &public);
    net.run([1, 2, 4, 5, 6], KeyChange::Rotate { key: name("wallet") });
    let next = net.entry(4, "wallet");
    assert_eq!((next.version.get(), next.public.threshold().k()), (2, 3));
    assert_ne!(next.key_id, *public.key_id());
    check_sharing(&net, &[1, 2, 6], "wallet", &next.public);
    net.lose_everything(5);
    let recover = net.request(KeyChange::Recover { key: name("wallet"), version: None, node: 5 });
    let id = net.ask([1, 2, 4, 6], &recover);
    let over = |net: &Net| (1..=6).all(|node| net.state(node, &id) == CeremonyState::Recovered);
    assert!(net.until(60, over), "{:?}", (1..=6).map(|node| net.state(node, &id)).collect::<Vec<_>>());
    check_sharing(&net, &[5, 2, 4], "wallet", &next.public);
    for node in [1, 2, 4, 5, 6] {
        assert_eq!(net.entry(node, "wallet").delivery, delivery, "node {node}");
    }
}
