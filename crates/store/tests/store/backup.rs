//! Backup, check, restore.

use std::collections::BTreeMap;

use theta_groups::Secret;
use theta_names::{Delivery, Epoch, KeyState, Purpose, SlotOrder, Version};
use theta_store::{
    BurnError, KeyError, Options, Quarantined, RestoreFloors, Rollback, SealingKey, SlotDecision, SlotRule, Store,
    StoreError, Witness, check_backup, disk::SimulatedDisk, key::USED_REMEMBERED,
};

use crate::{burn_id, create, epoch, key, name, secret, version};

fn other_key() -> SealingKey {
    SealingKey::key(Secret::new([8; 32]))
}

fn rule(text: &str) -> SlotRule {
    SlotRule { key: name("zone"), rule: text.parse().unwrap() }
}

fn decide(store: &Store, text: &str, slot: u64, digest: u8) -> SlotDecision {
    store.decide(rule(text), slot, [digest; 32], SlotOrder::Any).unwrap()
}

fn filled() -> Store {
    let store = create(&SimulatedDisk::default());
    for key in ["zone", "beacon"] {
        store.write(|tx| tx.create_key(&name(key), Purpose::Sign)).unwrap();
        let share = secret(format!("share of {key}").as_bytes());
        store.write(|tx| tx.import_version(&name(key), ("suite", Delivery::All), epoch(4), share)).unwrap();
    }
    store.set_identity(&Secret::new([6; 32])).unwrap();
    let seen = theta_store::Witness::new(Some(store.incarnation()), None);
    store.write(|tx| tx.remember_peer(2, &seen)).unwrap();
    store.burn(burn_id(100, 1)).unwrap();
    for slot in [10, 11, 90] {
        assert_eq!(decide(&store, "serial", slot, 1), SlotDecision::Allowed);
    }
    store.write(|tx| tx.begin_ceremony([1; 32], b"refresh", Secret::new([1; 32]), 0)).unwrap();
    // Enough for more than one chunk.
    for _ in 0..3 {
        store.append_audit(vec![7; 60_000]).unwrap();
    }
    store
}

fn backup(store: &Store) -> Vec<u8> {
    let mut backup = Vec::new();
    store.backup(&mut backup, &other_key()).unwrap();
    backup
}

fn floors() -> RestoreFloors {
    RestoreFloors { burn_day: 90, slots: BTreeMap::from([(rule("serial"), 50)]), other_slots: 1000 }
}

fn restore(backup: &[u8]) -> Result<Store, StoreError> {
    let disk = SimulatedDisk::default();
    Store::restore_on(backup, &other_key(), disk.backend(), &key(), &floors(), Options::default())
}

/// Consents to ceremonies and to changes of a key's state stay used up.
#[test]
fn a_restored_store_knows_what_is_used_up() {
    let store = filled();
    for (state, generation) in [(KeyState::Disabled, 1), (KeyState::Active, 2), (KeyState::Disabled, 3)] {
        assert!(store.write(|tx| tx.change_state(&name("zone"), None, state, generation)).unwrap());
    }
    store.write(|tx| tx.use_up(&[1; 32], 1_795_000_000)).unwrap();
    store.write(|tx| tx.use_up(&[2; 32], 0)).unwrap();
    let restored = restore(&backup(&store)).unwrap();
    assert!(restored.is_used(&[1; 32]).unwrap() && !restored.is_used(&[3; 32]).unwrap());
    // A use is remembered for as long as an approval may be valid; one from before the time was known, for ever.
    let later = 1_795_000_000 + USED_REMEMBERED;
    for (now, known) in [(later - 1, true), (0, true), (later, false)] {
        restored.write(|tx| tx.use_up(&[4; 32], now)).unwrap();
        assert_eq!(restored.is_used(&[1; 32]).unwrap(), known);
        assert!(restored.is_used(&[2; 32]).unwrap() && restored.is_used(&[4; 32]).unwrap());
    }
    let again = restored.write(|tx| tx.change_state(&name("zone"), None, KeyState::Active, 2)).unwrap_err();
    assert!(matches!(again, KeyError::Generation { named: 2, current: 3, .. }), "{again}");
    assert_eq!(restored.key_generation(&name("zone")).unwrap(), 3);
    assert_eq!(restored.key_generation(&name("beacon")).unwrap(), 0);
    let bad =
        restored.write(|tx| tx.change_state(&name("beacon"), Some(version(9)), KeyState::Disabled, 1)).unwrap_err();
    assert!(matches!(bad, KeyError::NoVersion { version: missing, .. } if missing == version(9)), "{bad}");
    // A refused change does not advance the generation.
    assert_eq!(restored.key_generation(&name("beacon")).unwrap(), 0);
}

/// It has the shares of then, so it keeps away from whoever had cheated by then.
#[test]
fn a_restored_store_knows_who_is_in_quarantine() {
    let store = filled();
    let holders = [1_u16, 9].map(|number| theta_names::ShareIndex::try_from(number).unwrap());
    let found = Quarantined { holders: holders.to_vec(), phase: "a check".to_owned(), culprit: Some(holders[1]) };
    assert!(store.write(|tx| tx.quarantine(&name("zone"), version(1), Epoch::new(4), &found)).unwrap());
    let restored = restore(&backup(&store)).unwrap();
    assert_eq!(restored.quarantined(&name("zone"), version(1), Epoch::new(4)).unwrap(), [found]);
    assert!(restored.quarantined(&name("beacon"), version(1), Epoch::new(4)).unwrap().is_empty());
}

#[test]
fn a_restored_store_has_the_keys_and_repeats_nothing() {
    let store = filled();
    let backup = backup(&store);
    // What happens after the backup is not in it.
    store.burn(burn_id(100, 2)).unwrap();
    assert_eq!(decide(&store, "serial", 45, 1), SlotDecision::Allowed);
    assert_eq!(decide(&store, "votes", 900, 1), SlotDecision::Allowed);
    let restored = restore(&backup).unwrap();
    assert_eq!(restored.keys().unwrap(), store.keys().unwrap());
    assert_eq!(restored.share(&name("zone"), version(1), Epoch::new(4)).unwrap().unwrap().expose(), b"share of zone");
    assert_eq!(restored.identity().unwrap().unwrap().expose(), &[6; 32]);
    // What was seen of peers is left out: it is outdated.
    assert_eq!((store.seen_of_peers().unwrap().len(), restored.seen_of_peers().unwrap().len()), (1, 0));
    assert_ne!(restored.id(), store.id());
    assert_eq!(restored.restored_from().unwrap(), Some(store.id()));
    // The backup has ids of day 100, so all of that day is refused, whatever floor the person named.
    for id in [1, 2, 3] {
        let refused = restored.burn(burn_id(100, id)).unwrap_err();
        assert!(matches!(refused, BurnError::BelowWatermark { watermark: 101, .. }), "{refused}");
    }
    restored.burn(burn_id(101, 4)).unwrap();
    for slot in [10, 45, 50] {
        assert_eq!(decide(&restored, "serial", slot, 2), SlotDecision::Below { mark: 50 });
    }
    assert_eq!(decide(&restored, "serial", 90, 2), SlotDecision::Conflict { previous: [1; 32] });
    assert_eq!(decide(&restored, "serial", 51, 2), SlotDecision::Allowed);
    // A rule that the backup does not have.
    assert_eq!(decide(&restored, "votes", 900, 2), SlotDecision::Below { mark: 1000 });
    assert_eq!(decide(&restored, "votes", 1001, 2), SlotDecision::Allowed);
    assert!(restored.ceremonies().unwrap().is_empty());
    assert_eq!(restored.check_audit().unwrap().unwrap(), store.check_audit().unwrap().unwrap());
    let mut witness = Witness::new(Some(store.incarnation()), None);
    assert!(matches!(witness.observe(&restored.incarnation()), Err(Rollback::OtherStore { .. })));
}

#[test]
fn a_pruned_log_is_backed_up_as_it_is() {
    let store = filled();
    assert_eq!(store.write(|tx| tx.prune_audit(2)).unwrap(), 2);
    let backup = backup(&store);
    let report = check_backup(&*backup, &other_key(), &mut |_, _, _, _| true).unwrap();
    assert_eq!(report.audit_records, 3);
    let restored = restore(&backup).unwrap();
    assert_eq!(restored.audit_start().unwrap(), store.audit_start().unwrap());
    assert_eq!(restored.check_audit().unwrap().unwrap().len(), 3);
}

#[test]
fn floors_survive_a_second_backup() {
    let restored = restore(&backup(&filled())).unwrap();
    let low = RestoreFloors { burn_day: 0, slots: BTreeMap::new(), other_slots: 0 };
    let disk = SimulatedDisk::default();
    let backup = backup(&restored);
    let again =
        Store::restore_on(backup.as_slice(), &other_key(), disk.backend(), &key(), &low, Options::default()).unwrap();
    assert_eq!(again.burn_watermark().unwrap(), 101);
    assert_eq!(decide(&again, "votes", 1000, 2), SlotDecision::Below { mark: 1000 });
    assert!(matches!(decide(&again, "serial", 50, 2), SlotDecision::Below { mark } if mark >= 50));
}

#[test]
fn a_backup_is_checked_against_the_public_data() {
    let store = filled();
    let backup = backup(&store);
    let report = check_backup(backup.as_slice(), &other_key(), &mut |key, version, epoch, share| {
        assert_eq!((version.version, epoch.number), (Version::FIRST, Epoch::new(4)));
        key.name.as_str() != "beacon" && share.expose() == b"share of zone"
    })
    .unwrap();
    assert_eq!(report.origin.store_id, store.id());
    assert_eq!((report.keys, report.shares, report.audit_records), (store.keys().unwrap(), 2, 3));
    assert_eq!(report.unfit, [(name("beacon"), version(1), Epoch::new(4))]);
    let wrong = check_backup(backup.as_slice(), &key(), &mut |_, _, _, _| true);
    assert!(matches!(wrong, Err(StoreError::WrongKey(_))));
}

#[test]
fn a_damaged_backup_is_refused_at_every_place() {
    let store = create(&SimulatedDisk::default());
    store.write(|tx| tx.create_key(&name("zone"), Purpose::Sign)).unwrap();
    let backup = backup(&store);
    let check = |bytes: &[u8]| check_backup(bytes, &other_key(), &mut |_, _, _, _| true).map(drop);
    check(&backup).unwrap();
    for place in 0..backup.len() {
        let mut changed = backup.clone();
        changed[place] ^= 0x10;
        assert!(check(&changed).is_err(), "byte {place}");
        assert!(check(&backup[..place]).is_err(), "length {place}");
    }
    let longer = [backup.as_slice(), &[0]].concat();
    assert!(matches!(check(&longer), Err(StoreError::Backup(_))));
}

#[test]
fn chunks_cannot_be_moved_or_left_out() {
    let store = filled();
    let backup = backup(&store);
    // The head's length follows 12 bytes of magic.
    let mut at = 14 + usize::from(u16::from_be_bytes([backup[12], backup[13]]));
    let mut chunks = Vec::new();
    while at < backup.len() {
        let head = u32::from_be_bytes(backup[at..at + 4].try_into().unwrap());
        let end = at + 4 + usize::try_from(head & 0x7fff_ffff).unwrap();
        chunks.push(at..end);
        at = end;
    }
    assert!(chunks.len() >= 3);
    let start = &backup[..chunks[0].start];
    for order in [vec![1, 0, 2], vec![0, 2], vec![0, 1], vec![0, 0, 1, 2], vec![2]] {
        let mut bytes = start.to_vec();
        order.iter().for_each(|chunk: &usize| bytes.extend_from_slice(&backup[chunks[*chunk].clone()]));
        if order.len() < 3 || order != [0, 1, 2] {
            assert!(matches!(restore(&bytes).map(drop), Err(StoreError::Backup(_))), "{order:?}");
        }
    }
}

#[test]
fn a_restore_that_fails_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("restored.store");
    let backup = backup(&filled());
    let cut = &backup[..backup.len() - 1];
    let refused = Store::restore(cut, &other_key(), &path, &key(), &floors()).map(drop);
    assert!(matches!(refused, Err(StoreError::Backup(_))), "{refused:?}");
    assert!(!path.exists());
    drop(Store::restore(backup.as_slice(), &other_key(), &path, &key(), &floors()).unwrap());
    let again = Store::restore(backup.as_slice(), &other_key(), &path, &key(), &floors()).unwrap_err();
    assert!(matches!(again, StoreError::Exists(_)));
    assert_eq!(Store::open(&path, &key()).unwrap().keys().unwrap().len(), 2);
}
