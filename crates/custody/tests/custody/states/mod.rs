//! Disabling, enabling, destroying; and consents that were used before.

mod consents;

use std::sync::Arc;

use theta_custody::{CeremonyError, CeremonyState, ChangeError, CustodyEffect, ResolveError};
use theta_names::{Epoch, KeyState, Version};
use theta_schemes::Suite;
use theta_statements::{KeyChange, StateChange};
use theta_store::KeyError;

use crate::net::{Net, name};
use crate::use_keys::{check_decryption, encrypt};

const SG02: Suite = Suite::Sg02Ristretto255;

fn change(net: &mut Net, node: u16, version: Option<u32>, state: KeyState) -> Result<Vec<u32>, ChangeError> {
    let mut effects = Vec::new();
    let generation = net.custodian(node).keys().get("files").map_or(0, |entry| entry.generation) + 1;
    let change = StateChange { key: name("files"), version: version.and_then(Version::new), state, generation };
    net.node(node).custodian.as_mut().unwrap().change(&change, &mut effects)?;
    let versions = effects.into_iter().filter_map(|effect| match effect {
        CustodyEffect::KeyChanged { version, .. } => Some(version.get()),
        _ => None,
    });
    Ok(versions.collect())
}

#[test]
fn a_disabled_key_serves_again_when_it_is_enabled() {
    let mut net = Net::new(2, 4, 1);
    net.create("files", SG02, 2, &[1, 2, 3, 4]);
    net.run(1..=4, KeyChange::Rotate { key: name("files") });
    let table = Arc::clone(net.custodian(1).keys());
    let generation = table.generation();
    assert_eq!(change(&mut net, 1, None, KeyState::Disabled).unwrap(), [1, 2]);
    assert!(table.generation() > generation);
    let refused = table.resolve(&"files".parse().unwrap(), None).unwrap_err();
    assert!(matches!(&refused, ResolveError::Disabled(key) if key == "files"), "{refused}");
    // The state survives a restart.
    net.kill(1);
    net.start(1);
    let refused = net.custodian(1).keys().resolve(&"files@1".parse().unwrap(), None).unwrap_err();
    assert!(matches!(refused, ResolveError::Disabled(_)), "{refused}");
    assert_eq!(change(&mut net, 1, None, KeyState::Active).unwrap(), [1, 2]);
    assert_eq!(net.custodian(1).keys().resolve(&"files".parse().unwrap(), None).unwrap().version.get(), 2);
    assert_eq!(change(&mut net, 1, Some(1), KeyState::Disabled).unwrap(), [1]);
    // An enabled older version decrypts what was encrypted to it, and is not active, since a newer one is.
    assert_eq!(change(&mut net, 1, Some(1), KeyState::Active).unwrap(), [1]);
    assert_eq!(net.entry(1, "files@1").state, KeyState::Retired);
    assert!(net.custodian(1).keys().resolve(&"files@1".parse().unwrap(), None).is_ok());
    assert!(change(&mut net, 1, Some(1), KeyState::Active).unwrap().is_empty(), "it is so already");
    assert_eq!(change(&mut net, 1, Some(1), KeyState::Disabled).unwrap(), [1]);
    let refused = change(&mut net, 1, Some(1), KeyState::Pending).unwrap_err();
    assert!(matches!(refused, ChangeError::Key(KeyError::Transition { .. })), "{refused}");
    let refused = change(&mut net, 1, Some(7), KeyState::Disabled).unwrap_err();
    assert!(matches!(refused, ChangeError::Key(KeyError::NoVersion { .. })), "{refused}");
    // A disabled key may be renewed: a suspected theft may be why it is disabled.
    net.connect();
    net.run(1..=4, KeyChange::Refresh { key: name("files"), version: Version::new(1) });
    assert_eq!(net.entry(1, "files@1").state, KeyState::Disabled);
    assert_eq!(net.entry(1, "files@1").epoch, Epoch::new(1));
}

#[test]
fn of_a_destroyed_key_nothing_is_left_that_a_share_follows_from() {
    let mut net = Net::new(2, 4, 2);
    let made = net.create("files", SG02, 2, &[1, 2, 3, 4]);
    let ciphertext = encrypt(&net.entry(2, "files").public);
    let request = net.request(KeyChange::Refresh { key: name("files"), version: None });
    let id = net.begin([1, 2, 3], &request);
    assert!(!net.custodian(1).store().ceremony_inputs(&made).unwrap().is_empty());
    assert_eq!(change(&mut net, 1, None, KeyState::Destroyed).unwrap(), [1]);
    let CeremonyState::Failed(why) = net.state(1, &id) else { panic!("{:?}", net.state(1, &id)) };
    assert!(why.contains("destroyed"));
    net.until(60, |_| false);
    let store = net.custodian(1).store();
    assert!(
        (0..3)
            .map(Epoch::new)
            .all(|epoch| store.share(&"files".parse().unwrap(), Version::FIRST, epoch).unwrap().is_none())
    );
    for id in [made, id] {
        assert!(store.ceremony_inputs(&id).unwrap().is_empty());
    }
    let refused = net.custodian(1).keys().resolve(&"files".parse().unwrap(), None).unwrap_err();
    assert!(matches!(refused, ResolveError::Destroyed(_)), "{refused}");
    // The other three nodes are enough to go on; the node that destroyed the key takes no part.
    assert!(net.until(60, |net| [2, 3, 4].iter().all(|node| net.epoch(*node, "files") == Some(1))));
    check_decryption(&net, &[2, 4], "files", &ciphertext);
    assert_eq!(net.epoch(1, "files"), None);
    let again = KeyChange::Create { key: name("files"), suite: SG02.into(), k: 2, holders: vec![1, 2, 3, 4] };
    let again = net.request(again);
    assert_eq!(net.hold(1, &again), Err(CeremonyError::Exists(name("files"))));
}

/// The remains of an epoch's ceremony are removed when the next epoch is used, since the old share follows from them.
#[test]
fn the_remains_of_old_epochs_go_with_their_shares() {
    let mut net = Net::new(2, 4, 3);
    let mut ids = vec![net.create("files", SG02, 2, &[1, 2, 3, 4])];
    for _ in 0..3 {
        ids.push(net.run(1..=4, KeyChange::Refresh { key: name("files"), version: None }));
    }
    for node in 1..=4 {
        let store = net.custodian(node).store();
        let left: Vec<bool> = ids.iter().map(|id| !store.ceremony_inputs(id).unwrap().is_empty()).collect();
        assert_eq!(left, [false, false, false, true], "node {node}");
        // Their reports are kept.
        assert!(ids.iter().all(|id| net.state(node, id).is_over()));
    }
}
