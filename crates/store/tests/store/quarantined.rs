//! Holders among whom somebody cheated: as long as their shares are in use, a restart does not make this forgotten.

use theta_names::{Delivery, Epoch, KeyState, Purpose, ShareIndex, Version};
use theta_store::{KeyError, Quarantined, Store, disk::SimulatedDisk, key::MOST_QUARANTINED};

use crate::{create, epoch, name, open, secret, version};

fn index(number: u16) -> ShareIndex {
    ShareIndex::try_from(number).unwrap()
}

fn set(holders: &[u16], culprit: Option<u16>) -> Quarantined {
    let holders = holders.iter().copied().map(index).collect();
    Quarantined { holders, phase: "a check".to_owned(), culprit: culprit.map(index) }
}

/// A store with two versions of a key, the first at epoch 4.
fn with_key(disk: &SimulatedDisk) -> Store {
    let store = create(disk);
    store.write(|tx| tx.create_key(&name("key"), Purpose::Sign)).unwrap();
    for (number, share) in [(4, b"one"), (1, b"two")] {
        let kind = ("suite", Delivery::DishonestMajority);
        store.write(|tx| tx.import_version(&name("key"), kind, epoch(number), secret(share))).unwrap();
    }
    store
}

fn record(store: &Store, number: u32, epoch: u32, set: &Quarantined) -> bool {
    store.write(|tx| tx.quarantine(&name("key"), version(number), Epoch::new(epoch), set)).unwrap()
}

fn known(store: &Store, number: u32, epoch: u32) -> Vec<Quarantined> {
    store.quarantined(&name("key"), version(number), Epoch::new(epoch)).unwrap()
}

#[test]
fn a_restart_forgets_none() {
    let disk = SimulatedDisk::default();
    let store = with_key(&disk);
    assert!(known(&store, 1, 4).is_empty());
    let (pair, three) = (set(&[1, 2], Some(1)), set(&[2, 3, 700], None));
    assert!(record(&store, 1, 4, &three) && record(&store, 1, 4, &pair));
    // Nothing new: a set that is known, one with a cheat that is named, that cheat in another set.
    for old in [set(&[2, 3, 700], None), set(&[1, 2], None), set(&[1, 5], None), set(&[1, 5], Some(1))] {
        assert!(record(&store, 1, 4, &old));
    }
    drop(store);
    let store = open(&disk);
    assert_eq!(known(&store, 1, 4), [pair, three]);
    assert!(known(&store, 2, 1).is_empty() && known(&store, 1, 5).is_empty());
}

/// A cheat that is named after its set was found, be it after another one of the same, is on record: it may try nothing in other sets.
#[test]
fn a_cheat_is_named_whatever_is_known_of_its_set() {
    let disk = SimulatedDisk::default();
    let store = with_key(&disk);
    let found = [set(&[1, 2, 3], None), set(&[1, 2, 3], Some(3)), set(&[1, 2, 4], Some(2))];
    assert!(found.iter().all(|it| record(&store, 1, 4, it)));
    assert!(record(&store, 1, 4, &set(&[1, 2, 3], Some(1))), "a third row of one set");
    drop(store);
    let culprits: Vec<_> = known(&open(&disk), 1, 4).iter().map(|it| it.culprit.map(ShareIndex::get)).collect();
    assert_eq!(culprits, [None, Some(1), Some(3), Some(2)]);
}

#[test]
fn new_shares_end_it_and_nothing_else_of_the_key() {
    let store = with_key(&SimulatedDisk::default());
    assert!(record(&store, 1, 4, &set(&[1, 2], None)) && record(&store, 2, 1, &set(&[1, 3], None)));
    store.write(|tx| tx.stage_epoch(&name("key"), version(1), epoch(5), secret(b"new"))).unwrap();
    assert_eq!(known(&store, 1, 4).len(), 1, "the old shares are still in use");
    store.write(|tx| tx.certify(&name("key"), version(1), Epoch::new(5), b"certificate")).unwrap();
    assert_eq!((known(&store, 1, 4).len(), known(&store, 1, 5).len(), known(&store, 2, 1).len()), (0, 0, 1));
    // A thread that is late speaks of shares that there are no more.
    assert!(!record(&store, 1, 4, &set(&[1, 2], None)) && known(&store, 1, 4).is_empty());
    store.write(|tx| tx.set_version_state(&name("key"), version(2), KeyState::Destroyed)).unwrap();
    assert!(known(&store, 2, 1).is_empty());
}

/// Another key of the same name has other shares.
#[test]
fn a_key_that_is_removed_takes_them_along() {
    let store = with_key(&SimulatedDisk::default());
    assert!(record(&store, 1, 4, &set(&[1, 2], None)));
    store.write(|tx| tx.remove_key(&name("key"))).unwrap();
    assert!(known(&store, 1, 4).is_empty());
    let unknown = store
        .write(|tx| tx.quarantine(&name("key"), Version::FIRST, Epoch::new(4), &set(&[1, 2], None)).map(drop))
        .unwrap_err();
    assert!(matches!(unknown, KeyError::Unknown(_)), "{unknown}");
}

#[test]
fn there_are_so_many_and_of_such_a_length() {
    let store = with_key(&SimulatedDisk::default());
    let fill = |tx: &mut theta_store::Transaction<'_>| -> Result<usize, KeyError> {
        let mut recorded = 0;
        for other in 2..=u16::try_from(MOST_QUARANTINED).unwrap() + 3 {
            let new = tx.quarantine(&name("key"), version(1), Epoch::new(4), &set(&[1, other], None))?;
            recorded += usize::from(new);
        }
        Ok(recorded)
    };
    assert_eq!(store.write(fill).unwrap(), MOST_QUARANTINED);
    assert_eq!(known(&store, 1, 4).len(), MOST_QUARANTINED);
    let long = Quarantined { phase: "x".repeat(600), ..set(&[1, 2], None) };
    let wide = set(&(1..=65).collect::<Vec<u16>>(), None);
    for odd in [long, wide] {
        let refused = store.write(|tx| tx.quarantine(&name("key"), version(2), Epoch::new(1), &odd)).unwrap_err();
        assert!(matches!(refused, KeyError::TooLong { .. }), "{refused}");
    }
}
