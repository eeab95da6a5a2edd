//! A store's file and backups, damaged anywhere: they are refused, or what is read is what was written.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{plant, rng};
use theta_groups::Secret;
use theta_store::{
    BurnId, Epoch, Name, Options, Purpose, RestoreFloors, SealingKey, Store, check_backup, disk::SimulatedDisk,
};

/// A store's file and its backup.
static WRITTEN: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(write);

fuzz_target!(init: plant("stores", seeds()), |bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let (file, backup) = &*WRITTEN;
    match first % 4 {
        0 => restore(rest),
        1 => restore(&damaged(backup, rest)),
        2 => open(rest.to_vec()),
        _ => open(damaged(file, rest)),
    }
});

/// Bytes with others here and there: three say where, one what to change, over and over.
fn damaged(bytes: &[u8], script: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for change in script.as_chunks::<4>().0 {
        let [a, b, c, with] = *change;
        let at = usize::try_from(u32::from_be_bytes([0, a, b, c])).expect("few");
        if with == 0 {
            bytes.truncate(at);
        } else if let Some(byte) = bytes.get_mut(at) {
            *byte ^= with;
        }
    }
    bytes
}

fn key() -> SealingKey {
    SealingKey::key(Secret::new([7; 32]))
}

fn seeded() -> Options {
    Options::default().with_rng(rng())
}

fn name() -> Name {
    "mail".parse().expect("a name")
}

fn write() -> (Vec<u8>, Vec<u8>) {
    let disk = SimulatedDisk::default();
    let store = Store::create_on(disk.backend(), &key(), seeded()).expect("an empty disk");
    let epoch = Epoch { number: 0, k: 2, n: 3, holders: vec![1, 2, 3], public: vec![1; 64], certificate: Vec::new(), created: 1 };
    let share = Secret::new(vec![2; 32]);
    let filled: Result<_, theta_store::KeyError> = store.write(|tx| {
        tx.create_key(&name(), Purpose::Sign, None)?;
        tx.import_version(&name(), "suite", epoch, share).map(drop)
    });
    filled.expect("room");
    store.burn(BurnId { day: 1, id: [3; 32] }).expect("fresh");
    store.append_audit(vec![4; 100]).expect("room");
    let mut backup = Vec::new();
    store.backup(&mut backup, &key()).expect("room");
    drop(store);
    (disk.content(), backup)
}

/// What a store that opens may tell: nothing that was not written into it.
fn is_what_was_written(store: &Store) {
    for record in store.keys().into_iter().flatten() {
        assert_eq!(record.name, name());
    }
    if let Ok(Some(share)) = store.share(&name(), 1, 0) {
        assert_eq!(share.expose(), &[2; 32]);
    }
    for record in store.audit(0, 10).into_iter().flatten() {
        assert_eq!(record.body, [4; 100]);
    }
    let _ = store.check_audit();
}

fn open(content: Vec<u8>) {
    let disk = SimulatedDisk::with_content(content);
    if let Ok(store) = Store::open_on(disk.backend(), &key(), seeded()) {
        is_what_was_written(&store);
    }
}

fn restore(backup: &[u8]) {
    let checked = check_backup(backup, &key(), &mut |_, _, _, share| share.expose() == &[2; 32]);
    let floors = RestoreFloors { burn_day: 2, slots: Default::default(), other_slots: 0 };
    let disk = SimulatedDisk::default();
    let restored = Store::restore_on(backup, &key(), disk.backend(), &key(), &floors, seeded());
    assert_eq!(checked.is_ok(), restored.is_ok());
    if let (Ok(report), Ok(store)) = (checked, restored) {
        assert_eq!(backup, WRITTEN.1, "a backup of nobody's");
        assert!(report.unfit.is_empty());
        is_what_was_written(&store);
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let (_, backup) = &*WRITTEN;
    let whole = [&[0], &**backup].concat();
    let places = [[0, 0, 0, 1], [0, 0, 40, 1], [0, 1, 0, 0], [0, 16, 0, 1], [1, 0, 5, 128], [2, 0, 0, 0]];
    let damage = places.iter().flat_map(|place| [[&[1], &place[..]].concat(), [&[3], &place[..]].concat()]);
    [whole, vec![1], vec![3]].into_iter().chain(damage).collect()
}
