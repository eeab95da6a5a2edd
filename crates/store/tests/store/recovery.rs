//! Disks that fail for a while: the store recovers in place, and loses nothing that it answered.

use theta_store::{BurnError, Store, StoreError, disk::SimulatedDisk};

use crate::{burn_id, key, rng, seeded};

fn open(disk: &SimulatedDisk, seed: u64) -> Store {
    Store::open_on(disk.backend(), &key(), seeded(seed)).unwrap()
}

/// Checks that burnt ids stay burnt, after the failure and after a power failure on top of it.
fn check(disk: &SimulatedDisk, store: Store, burnt: &[u64]) {
    assert!(burnt.iter().all(|id| matches!(store.burn(burn_id(1, *id)), Err(BurnError::AlreadyBurnt))));
    store.burn(burn_id(1, 1_000_000)).unwrap();
    disk.fail_power(&mut rng(9));
    drop(store);
    let store = open(disk, 99);
    assert!(burnt.iter().all(|id| matches!(store.burn(burn_id(1, *id)), Err(BurnError::AlreadyBurnt))));
    assert!(matches!(store.burn(burn_id(1, 1_000_000)), Err(BurnError::AlreadyBurnt)));
}

#[test]
fn a_full_disk_is_recovered_from_when_there_is_room_again() {
    for changes in 0..40 {
        let disk = SimulatedDisk::default();
        let store = Store::create_on(disk.backend(), &key(), seeded(changes)).unwrap();
        store.burn(burn_id(1, 0)).unwrap();
        let before = store.incarnation();
        disk.fill_after(changes);
        let (mut burnt, mut next) = (vec![0], 1);
        while store.burn(burn_id(1, next)).is_ok() {
            burnt.push(next);
            next += 1;
        }
        assert!(store.has_failed());
        // While there is no room, the store says so for every request, however often it tries.
        for _ in 0..3 {
            assert!(store.recover().is_err() || store.burn(burn_id(1, next)).is_err(), "after {changes} changes");
            assert!(store.append_audit(b"refused".to_vec()).is_err());
        }
        disk.make_room();
        store.recover().unwrap();
        assert!(!store.has_failed());
        let now = store.incarnation();
        assert_eq!((now.store_id, now.opening), (before.store_id, before.opening), "it is the same opening");
        assert!(now.sequence >= before.sequence + next - 1);
        // A burn that failed may have happened or not; its id is used once in either case.
        let again = store.burn(burn_id(1, next));
        assert!(matches!(again, Ok(_) | Err(BurnError::AlreadyBurnt)));
        burnt.push(next);
        check(&disk, store, &burnt);
    }
}

/// A disk that fails to sync loses what the system still shows: everything shown is written again before it is trusted.
#[test]
fn what_a_failed_sync_lost_is_written_again() {
    for good in 0..12 {
        let disk = SimulatedDisk::default();
        let store = Store::create_on(disk.backend(), &key(), seeded(good)).unwrap();
        for id in 0..good {
            store.burn(burn_id(1, id)).unwrap();
        }
        disk.fail_syncs(true);
        assert!(store.burn(burn_id(1, good)).is_err());
        assert!(store.recover().is_err(), "it does not sync yet");
        disk.fail_syncs(false);
        store.recover().unwrap();
        let burnt: Vec<u64> = (0..good).collect();
        check(&disk, store, &burnt);
    }
}

#[test]
fn a_store_without_a_failure_is_left_alone() {
    let disk = SimulatedDisk::default();
    let store = Store::create_on(disk.backend(), &key(), seeded(1)).unwrap();
    let (operations, before) = (disk.operations(), store.incarnation());
    store.recover().unwrap();
    assert_eq!((disk.operations(), store.incarnation()), (operations, before));
    assert_eq!(store.free_space(), None);
}

/// The content of the file was replaced while the disk did not work.
#[test]
fn another_content_is_not_gone_on_with() {
    let disk = SimulatedDisk::default();
    let store = Store::create_on(disk.backend(), &key(), seeded(1)).unwrap();
    store.burn(burn_id(1, 1)).unwrap();
    let old = disk.content();
    for id in 2..6 {
        store.burn(burn_id(1, id)).unwrap();
    }
    disk.fill_after(0);
    assert!(store.burn(burn_id(1, 9)).is_err());
    disk.make_room();
    disk.replace(old);
    assert!(matches!(store.recover(), Err(StoreError::NotContinued(_) | StoreError::Damaged(_))));
    assert!(store.has_failed() && store.burn(burn_id(1, 3)).is_err());
}
