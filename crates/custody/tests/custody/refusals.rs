//! Refusals of a custodian.

use std::sync::Arc;

use bytes::Bytes;
use theta_custody::{CeremonyError, Custodian, CustodyInput};
use theta_names::{Delivery, Version};
use theta_schemes::Suite;
use theta_statements::{CeremonyRequest, KeyChange};
use theta_store::{Options, Store, disk::SimulatedDisk};

use crate::net::{Net, name, party, roster, sealing_key, seeded};

const SG02: Suite = Suite::Sg02Ristretto255;

fn create(key: &str, suite: Suite, k: u16, holders: &[u16]) -> KeyChange {
    KeyChange::Create { key: name(key), suite: suite.into(), delivery: Delivery::All, k, holders: holders.to_vec() }
}

fn refused(net: &mut Net, node: u16, change: KeyChange) -> CeremonyError {
    let request = net.request(change);
    net.hold(node, &request).unwrap_err()
}

#[test]
fn one_ceremony_of_a_key_at_a_time() {
    let mut net = Net::new(2, 4, 1);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let request = net.request(KeyChange::Refresh { key: name("files"), version: None });
    net.liars.insert(4, Box::new(|_, _| Vec::new()));
    let id = net.ask([1, 2], &request);
    assert!(net.until(60, |net| net.custodian(1).ledger().unwrap().request(&id).is_some()));
    // The same request names the same ceremony.
    assert_eq!(net.hold(1, &request).unwrap().id, id);
    for change in [
        KeyChange::Refresh { key: name("files"), version: Version::new(1) },
        KeyChange::Reshare { key: name("files"), version: None, k: 3, holders: vec![1, 2, 3, 4] },
        KeyChange::Recover { key: name("files"), version: None, node: 3 },
    ] {
        let busy = refused(&mut net, 1, change);
        assert_eq!(busy, CeremonyError::Busy { id, aim: "refresh" });
        assert!(busy.to_string().contains(&hex::encode(id)), "{busy}");
    }
    net.liars.clear();
    // Another key is not affected.
    net.create("other", SG02, 2, &[1, 2, 3, 4]);
    assert!(net.until(40, |net| (1..=4).all(|node| net.epoch(node, "files") == Some(1))));
    // Nor is the same key afterwards; the first request is answered with its result.
    assert!(net.hold(1, &request).unwrap().state.is_over());
    net.run(1..=4, KeyChange::Refresh { key: name("files"), version: Version::new(1) });
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let mut net = Net::new(2, 4, 2);
    net.create("files", SG02, 2, &[1, 2, 3]);
    let refresh = |key: &str, version| KeyChange::Refresh { key: name(key), version };
    for (node, change, words) in [
        (1, create("files", SG02, 2, &[1, 2]), "choose another name"),
        (1, create("rsa", Suite::Sh00PssSha256, 2, &[1, 2]), "take a trusted dealer"),
        (1, create("new", SG02, 3, &[1, 2]), "at most as many as there are holders"),
        (1, create("new", SG02, 0, &[1, 2]), "at least 1 share"),
        (1, create("new", SG02, 1, &[]), "at most as many as there are holders"),
        (1, create("new", SG02, 2, &[1, 2, 2]), "listed twice"),
        (1, create("new", SG02, 2, &[1, 9]), "no node 9"),
        (1, refresh("none", None), "known ones are: files"),
        (1, refresh("files", Version::new(2)), "no key files@2"),
        (1, KeyChange::Rotate { key: name("none") }, "no key none"),
        (1, KeyChange::Recover { key: name("files"), version: None, node: 1 }, "nothing is to be recovered"),
        (1, KeyChange::Recover { key: name("files"), version: None, node: 4 }, "no holder"),
    ] {
        let error = refused(&mut net, node, change.clone()).to_string();
        assert!(error.contains(words), "{change:?}: {error}");
    }
    // None of them was begun.
    assert!(net.custodian(1).reports().iter().all(|report| report.state.is_over()));
}

#[test]
fn without_an_identity_there_are_no_ceremonies() {
    let disk = SimulatedDisk::default();
    let store = Store::create_on(disk.backend(), &sealing_key(), Options::default().with_rng(seeded(1))).unwrap();
    let mut without = Custodian::open(Arc::new(store), party(1), roster(2, 4)).unwrap();
    let request = CeremonyRequest { nonce: [1; 32], change: create("new", SG02, 2, &[1, 2, 3]) };
    assert_eq!(without.hold(request.clone(), Vec::new(), &mut Vec::new()), Err(CeremonyError::NoIdentity));
    // No ceremony begins with nodes that have no identity in the group file.
    let mut net = Net::new(2, 4, 3);
    net.roster.members.retain(|member| member.node() != party(3));
    net.kill(1);
    net.start(1);
    assert_eq!(net.hold(1, &request), Err(CeremonyError::NoCeremonyKey(party(3))));
    // An identity that is not in the group file is refused at the start.
    let mut other = roster(2, 4);
    other.members.rotate_left(1);
    let store = Arc::clone(net.custodian(1).store());
    net.node(1).custodian = None;
    let members = other.members.iter().map(|member| {
        let mut bytes = member.encode();
        bytes[..2].copy_from_slice(&(member.node().get() % 4 + 1).to_be_bytes());
        theta_ceremonies::CeremonyMember::decode(&bytes).unwrap()
    });
    other.members = members.collect();
    assert!(Custodian::open(store, party(1), other).unwrap_err().to_string().contains("another ceremony key"));
}

#[test]
fn strangers_and_unknown_ceremonies_take_no_room_and_no_answer() {
    let mut net = Net::new(2, 4, 4);
    net.drain();
    let message = |id: u8, part: u8| Bytes::from([&[1, part][..], &[id; 32], &[0; 100]].concat());
    let custodian = net.node(1).custodian.as_mut().unwrap();
    let sequence = custodian.store().incarnation().sequence;
    for number in 0..2000_u16 {
        let id = u8::try_from(number % 251).unwrap();
        for from in [1, 2, 5, 77] {
            let bytes = message(id, 1 + u8::try_from(number % 2).unwrap());
            let effects = custodian.handle(CustodyInput::Message { from: party(from), bytes });
            assert!(effects.is_empty(), "{effects:?}");
        }
    }
    // Nothing is written to the store.
    assert_eq!(custodian.store().incarnation().sequence, sequence);
    net.packets.clear();
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
}

/// Whoever asks, by whatever tool: nodes refuse to make or move a key whose holders could not multiply.
#[test]
fn without_an_honest_majority_no_ecdsa_key_is_made_or_moved() {
    let mut net = Net::new(2, 5, 5);
    net.create("wallet", Suite::EcdsaSecp256k1, 2, &[1, 2, 3]);
    let reshare =
        |k, holders: &[u16]| KeyChange::Reshare { key: name("wallet"), version: None, k, holders: holders.to_vec() };
    for (change, words) in [
        (create("new", Suite::EcdsaP256, 1, &[1, 2, 3]), "ecdsa-p256 cannot be 1 of 3"),
        (create("new", Suite::EcdsaP256, 2, &[1, 2]), "take 3 holders for k = 2"),
        (create("new", Suite::EcdsaP256, 3, &[1, 2, 3, 4]), "with 4 holders take k = 2, or take 5 holders for k = 3"),
        (reshare(3, &[1, 2, 3, 4]), "ecdsa-secp256k1 cannot be 3 of 4"),
        (reshare(2, &[4, 5]), "ecdsa-secp256k1 cannot be 2 of 2"),
        (reshare(1, &[1, 2, 3, 4, 5]), "with 5 holders take k from 2 to 3"),
    ] {
        for node in 1..=5 {
            let error = refused(&mut net, node, change.clone());
            assert!(matches!(error, CeremonyError::UnfitThreshold(_)), "{error}");
            assert!(error.to_string().contains(words), "{change:?}: {error}");
        }
    }
    assert!(net.custodian(1).reports().iter().all(|report| report.state.is_over()));
    net.run(1..=5, reshare(3, &[1, 2, 3, 4, 5]));
}

/// Passive security is for keys with whose shares holders compute, takes as many of them as active security, and stays when the key moves.
#[test]
fn passive_security_takes_a_suite_and_holders_that_can_have_it() {
    let mut net = Net::new(2, 5, 6);
    let create = |suite: Suite, delivery, k, holders: &[u16]| KeyChange::Create {
        key: name("vault"),
        suite: suite.into(),
        delivery,
        k,
        holders: holders.to_vec(),
    };
    for (change, words) in [
        (create(Suite::EcdsaP256, Delivery::Passive, 2, &[1, 2]), "take 3 holders for k = 2"),
        (create(Suite::EcdsaP256, Delivery::PassiveDishonestMajority, 1, &[1, 2]), "with 2 holders take k = 2"),
        (create(Suite::FrostEd25519, Delivery::Passive, 2, &[1, 2, 3]), "have no passive security"),
        (create(SG02, Delivery::PassiveDishonestMajority, 2, &[1, 2, 3]), "have no passive security"),
    ] {
        for node in 1..=5 {
            let error = refused(&mut net, node, change.clone());
            assert!(error.to_string().contains(words), "{change:?}: {error}");
        }
    }
    net.run(1..=3, create(Suite::EcdsaP256, Delivery::Passive, 2, &[1, 2, 3]));
    assert!((1..=3).all(|node| net.entry(node, "vault").delivery == Delivery::Passive));
    let reshare =
        |k, holders: &[u16]| KeyChange::Reshare { key: name("vault"), version: None, k, holders: holders.to_vec() };
    let error = refused(&mut net, 1, reshare(2, &[1, 2]));
    assert!(error.to_string().contains("take 3 holders for k = 2"), "{error}");
    net.run(1..=5, reshare(3, &[1, 2, 3, 4, 5]));
    assert!((1..=5).all(|node| net.entry(node, "vault").delivery == Delivery::Passive));
}
