//! The life of keys.

use theta_names::{Delivery, Epoch, KeyName, KeyState, Purpose, Version};
use theta_store::{EpochRecord, KeyError, Store, disk::SimulatedDisk};

use crate::{create, epoch, name, open, secret, version};

fn with_key(purpose: Purpose) -> (Store, KeyName) {
    let store = create(&SimulatedDisk::default());
    let key = name("zone.example");
    store.write(|transaction| transaction.create_key(&key, purpose)).unwrap();
    (store, key)
}

fn share(store: &Store, key: &KeyName, number: u32, epoch: u32) -> Option<Vec<u8>> {
    store.share(key, version(number), Epoch::new(epoch)).unwrap().map(|share| share.expose().clone())
}

#[test]
fn a_key_becomes_active_by_its_certificate_only() {
    let (store, key) = with_key(Purpose::Sign);
    let begun =
        store.write(|tx| tx.begin_version(&key, ("frost-ed25519", Delivery::All), epoch(1), secret(b"share"))).unwrap();
    assert_eq!(begun, Version::FIRST);
    let record = store.key(&key).unwrap().unwrap();
    let begun = record.version(version(1)).unwrap();
    assert_eq!(begun.state, KeyState::Pending);
    assert!(!record.serves(begun) && record.primary().is_none());
    let early = store.write(|tx| tx.set_version_state(&key, version(1), KeyState::Active)).unwrap_err();
    assert!(matches!(early, KeyError::Transition { from: KeyState::Pending, .. }), "{early}");
    let other = store.write(|tx| tx.certify(&key, version(1), Epoch::new(2), b"certificate")).unwrap_err();
    assert!(matches!(other, KeyError::NotPending { epoch, .. } if epoch == Epoch::new(2)), "{other}");
    store.write(|tx| tx.certify(&key, version(1), Epoch::new(1), b"certificate")).unwrap();
    let record = store.key(&key).unwrap().unwrap();
    assert_eq!(record.primary().unwrap().serving.as_ref().unwrap().certificate, b"certificate");
    assert!(record.serves(record.version(version(1)).unwrap()));
}

#[test]
fn numbers_of_versions_may_be_left_out_but_not_given_twice() {
    let (store, key) = with_key(Purpose::Sign);
    let begin = |number| {
        store.write(|tx| {
            tx.begin_numbered_version(&key, version(number), ("suite", Delivery::All), epoch(1), secret(b"share"))
        })
    };
    begin(4).unwrap();
    let twice = begin(4).unwrap_err();
    assert!(matches!(twice, KeyError::KnownVersion { version: known, .. } if known == version(4)), "{twice}");
    assert_eq!(store.key(&key).unwrap().unwrap().next_version(), version(5));
    assert_eq!(store.write(|tx| tx.begin_version(&key, ("suite", Delivery::All), epoch(1), None)).unwrap(), version(5));
}

/// A node that lost its store gets back first what the others send first.
#[test]
fn an_older_version_that_comes_later_takes_its_place_and_does_not_sign() {
    let (store, key) = with_key(Purpose::Sign);
    for number in [3, 1, 2] {
        let number = version(number);
        store
            .write(|tx| {
                tx.begin_numbered_version(&key, number, ("suite", Delivery::All), epoch(1), secret(b"share"))?;
                tx.certify(&key, number, Epoch::new(1), b"certificate")
            })
            .unwrap();
    }
    let record = store.key(&key).unwrap().unwrap();
    let states: Vec<_> = record.versions().iter().map(|it| (it.version, it.state)).collect();
    let (retired, active) = (KeyState::Retired, KeyState::Active);
    assert_eq!(states, [(version(1), retired), (version(2), retired), (version(3), active)]);
    assert_eq!(record.primary().unwrap().version, version(3));
    assert_eq!(record.next_version(), version(4));
}

#[test]
fn each_share_has_a_holder_of_its_own() {
    let (store, key) = with_key(Purpose::Sign);
    for holders in [vec![], vec![1, 2], vec![1, 2, 3, 4], vec![1, 2, 2], vec![0, 1, 2]] {
        let odd = EpochRecord { holders, ..epoch(1) };
        let error = store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), odd, None)).unwrap_err();
        assert!(matches!(error, KeyError::Holders { n: 3 }), "{error}");
    }
}

#[test]
fn rotation_leaves_the_old_version_to_verify_or_decrypt() {
    for (purpose, old_serves) in [(Purpose::Sign, false), (Purpose::Coin, false), (Purpose::Decrypt, true)] {
        let (store, key) = with_key(purpose);
        store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(1), secret(b"one"))).unwrap();
        store.write(|tx| tx.begin_version(&key, ("suite", Delivery::All), epoch(1), secret(b"two"))).unwrap();
        // Until the new version is certified, the old one stays primary.
        assert_eq!(store.key(&key).unwrap().unwrap().primary().unwrap().version, version(1));
        store.write(|tx| tx.certify(&key, version(2), Epoch::new(1), b"certificate")).unwrap();
        let record = store.key(&key).unwrap().unwrap();
        assert_eq!(record.primary().unwrap().version, version(2));
        let old = record.version(version(1)).unwrap();
        assert_eq!((old.state, record.serves(old)), (KeyState::Retired, old_serves));
        assert_eq!(share(&store, &key, 1, 1).unwrap(), b"one");
        // The old version may be disabled and enabled, but never signs again.
        store.write(|tx| tx.set_version_state(&key, version(1), KeyState::Disabled)).unwrap();
        let back = store.write(|tx| tx.set_version_state(&key, version(1), KeyState::Active)).unwrap_err();
        assert!(matches!(back, KeyError::Transition { superseded: true, .. }), "{back}");
        store.write(|tx| tx.set_version_state(&key, version(1), KeyState::Retired)).unwrap();
    }
}

/// A regression: enabling such a version was refused in whatever state it was, so it could not be restored.
#[test]
fn an_older_version_is_enabled_whatever_state_it_is_in() {
    let (store, key) = with_key(Purpose::Decrypt);
    for share in [b"one", b"two"] {
        store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(1), secret(share))).unwrap();
    }
    let state = |number| store.key(&key).unwrap().unwrap().version(version(number)).unwrap().state;
    let change = |number: Option<u32>, state, generation| {
        store.write(|tx| tx.change_state(&key, number.map(version), state, generation))
    };
    for (disabled, generation) in [(true, 1), (false, 3)] {
        if disabled {
            assert!(change(Some(1), KeyState::Disabled, generation).unwrap());
        }
        assert!(change(Some(1), KeyState::Active, generation + 1).unwrap());
        assert_eq!((state(1), state(2)), (KeyState::Retired, KeyState::Active));
    }
    change(Some(2), KeyState::Disabled, 5).unwrap();
    change(Some(2), KeyState::Active, 6).unwrap();
    assert_eq!(state(2), KeyState::Active);
}

#[test]
fn what_is_destroyed_may_be_destroyed_again() {
    let (store, key) = with_key(Purpose::Sign);
    store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(1), secret(b"one"))).unwrap();
    let change = |number: Option<u32>, state, generation| {
        store.write(|tx| tx.change_state(&key, number.map(version), state, generation))
    };
    assert!(change(None, KeyState::Destroyed, 7).unwrap());
    for generation in [1, 7, 8, 2, u64::MAX] {
        for number in [None, Some(1)] {
            change(number, KeyState::Destroyed, generation).unwrap();
        }
    }
    assert!(matches!(change(None, KeyState::Active, 9), Err(KeyError::Transition { .. })));
    assert!(matches!(change(None, KeyState::Active, 3), Err(KeyError::Generation { .. })));
}

#[test]
fn a_key_that_is_removed_leaves_its_name_and_not_its_past() {
    let (store, key) = with_key(Purpose::Sign);
    store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(1), secret(b"one"))).unwrap();
    store.write(|tx| tx.change_state(&key, None, KeyState::Disabled, 4)).unwrap();
    let removed = store.write(|tx| tx.remove_key(&key)).unwrap();
    assert_eq!((removed.name.clone(), removed.versions().len()), (key.clone(), 1));
    assert!(store.key(&key).unwrap().is_none() && store.share(&key, version(1), Epoch::new(1)).unwrap().is_none());
    assert!(matches!(store.write(|tx| tx.remove_key(&key)), Err(KeyError::Unknown(_))));
    // The name is free, and old changes of state are refused for the new key.
    store.write(|tx| tx.create_key(&key, Purpose::Sign)).unwrap();
    store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(1), secret(b"new"))).unwrap();
    assert_eq!(store.key_generation(&key).unwrap(), 4);
    let old = store.write(|tx| tx.change_state(&key, None, KeyState::Active, 3)).unwrap_err();
    assert!(matches!(old, KeyError::Generation { current: 4, .. }), "{old}");
}

#[test]
fn the_old_share_serves_until_the_new_epoch_is_certified() {
    let (store, key) = with_key(Purpose::Sign);
    store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(1), secret(b"old"))).unwrap();
    store.write(|tx| tx.stage_epoch(&key, version(1), epoch(2), secret(b"new"))).unwrap();
    let record = store.key(&key).unwrap().unwrap();
    assert_eq!(record.primary().unwrap().serving, Some(epoch(1)));
    assert_eq!(share(&store, &key, 1, 1).unwrap(), b"old");
    store.write(|tx| tx.certify(&key, version(1), Epoch::new(2), b"certificate")).unwrap();
    let record = store.key(&key).unwrap().unwrap();
    let serving = record.primary().unwrap().serving.clone().unwrap();
    assert_eq!((serving.number, record.primary().unwrap().pending.clone()), (Epoch::new(2), None));
    assert_eq!((share(&store, &key, 1, 1), share(&store, &key, 1, 2).unwrap()), (None, b"new".to_vec()));
}

#[test]
fn an_older_epoch_never_replaces_a_newer_one() {
    let (store, key) = with_key(Purpose::Sign);
    store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(5), secret(b"five"))).unwrap();
    for old in [4, 5] {
        let error = store.write(|tx| tx.stage_epoch(&key, version(1), epoch(old), secret(b"old"))).unwrap_err();
        assert!(matches!(error, KeyError::OldEpoch { newer, .. } if newer == Epoch::new(5)), "{error}");
    }
    store.write(|tx| tx.stage_epoch(&key, version(1), epoch(7), secret(b"seven"))).unwrap();
    for old in [6, 7] {
        let error = store.write(|tx| tx.stage_epoch(&key, version(1), epoch(old), secret(b"old"))).unwrap_err();
        assert!(matches!(error, KeyError::OldEpoch { newer, .. } if newer == Epoch::new(7)), "{error}");
    }
    store.write(|tx| tx.stage_epoch(&key, version(1), epoch(8), secret(b"eight"))).unwrap();
    assert_eq!(share(&store, &key, 1, 7), None);
    assert_eq!(share(&store, &key, 1, 5).unwrap(), b"five");
    assert!(store.key(&key).unwrap().unwrap().primary().is_some());
}

#[test]
fn destruction_leaves_a_tombstone_and_no_share() {
    let (store, key) = with_key(Purpose::Sign);
    store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(1), secret(b"one"))).unwrap();
    store.write(|tx| tx.stage_epoch(&key, version(1), epoch(2), secret(b"two"))).unwrap();
    store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(1), secret(b"three"))).unwrap();
    store.write(|tx| tx.set_version_state(&key, version(1), KeyState::Destroyed)).unwrap();
    assert_eq!((share(&store, &key, 1, 1), share(&store, &key, 1, 2)), (None, None));
    assert_eq!(share(&store, &key, 2, 1).unwrap(), b"three");
    store.write(|tx| tx.set_key_state(&key, KeyState::Destroyed)).unwrap();
    assert_eq!(share(&store, &key, 2, 1), None);
    let record = store.key(&key).unwrap().unwrap();
    assert_eq!(record.state, KeyState::Destroyed);
    assert!(record.versions().iter().all(|version| version.state == KeyState::Destroyed && version.serving.is_some()));
    for refused in [
        store.write(|tx| tx.create_key(&key, Purpose::Sign)).unwrap_err(),
        store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(9), None)).unwrap_err(),
        store.write(|tx| tx.stage_epoch(&key, version(1), epoch(9), None)).unwrap_err(),
        store.write(|tx| tx.recover_share(&key, version(1), Epoch::new(1), secret(b"one").unwrap())).unwrap_err(),
        store.write(|tx| tx.set_key_state(&key, KeyState::Active)).unwrap_err(),
        store.write(|tx| tx.set_version_state(&key, version(1), KeyState::Active)).unwrap_err(),
    ] {
        assert!(!matches!(refused, KeyError::Store(_) | KeyError::Bug), "{refused}");
    }
}

#[test]
fn a_lost_share_comes_back_but_none_is_overwritten() {
    let (store, key) = with_key(Purpose::Decrypt);
    store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(3), None)).unwrap();
    assert_eq!(share(&store, &key, 1, 3), None);
    let other = store.write(|tx| tx.recover_share(&key, version(1), Epoch::new(2), secret(b"x").unwrap())).unwrap_err();
    assert!(matches!(other, KeyError::NoEpoch { epoch, .. } if epoch == Epoch::new(2)), "{other}");
    store.write(|tx| tx.recover_share(&key, version(1), Epoch::new(3), secret(b"back").unwrap())).unwrap();
    let twice =
        store.write(|tx| tx.recover_share(&key, version(1), Epoch::new(3), secret(b"evil").unwrap())).unwrap_err();
    assert!(matches!(twice, KeyError::HasShare { .. }), "{twice}");
    assert_eq!(share(&store, &key, 1, 3).unwrap(), b"back");
}

#[test]
fn a_change_that_fails_leaves_nothing() {
    let (store, key) = with_key(Purpose::Sign);
    let before = (store.key(&key).unwrap(), store.incarnation());
    let failed = store.write(|tx| {
        tx.import_version(&key, ("suite", Delivery::All), epoch(1), secret(b"one"))?;
        tx.create_key(&key, Purpose::Sign)
    });
    assert!(matches!(failed, Err(KeyError::Exists(_))));
    let odd = EpochRecord { k: 4, n: 3, ..epoch(1) };
    assert!(matches!(
        store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), odd, None)),
        Err(KeyError::Threshold { k: 4, n: 3 })
    ));
    let long = secret(&vec![1; 70_000]);
    assert!(matches!(
        store.write(|tx| tx.import_version(&key, ("suite", Delivery::All), epoch(1), long)),
        Err(KeyError::TooLong { .. })
    ));
    assert_eq!((store.key(&key).unwrap(), store.incarnation()), before);
    assert_eq!(share(&store, &key, 1, 1), None);
}

#[test]
fn keys_are_listed_by_name_and_survive_reopening() {
    let disk = SimulatedDisk::default();
    let store = create(&disk);
    for key in ["b", "a.b", "a"] {
        store.write(|tx| tx.create_key(&name(key), Purpose::Coin)).unwrap();
        store
            .write(|tx| tx.import_version(&name(key), ("suite", Delivery::All), epoch(1), secret(key.as_bytes())))
            .unwrap();
    }
    // Shares of a key are kept apart from those of a key whose name begins alike.
    store.write(|tx| tx.set_key_state(&name("a"), KeyState::Destroyed)).unwrap();
    let keys = store.keys().unwrap();
    drop(store);
    let store = open(&disk);
    assert_eq!(store.keys().unwrap(), keys);
    assert_eq!(keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["a", "a.b", "b"]);
    assert_eq!(share(&store, &name("a.b"), 1, 1).unwrap(), b"a.b");
}
