//! Copies of the file, put back: nothing that a peer ever saw happens again.

use rand_chacha::rand_core::Rng;
use theta_store::{BurnError, BurnId, Rollback, Store, Witness, disk::SimulatedDisk};

use crate::{burn_id, key, rng, seeded};

/// A node's life until a moment, with what its peer saw of it and the copies that were taken.
struct Life {
    disk: SimulatedDisk,
    witness: Witness,
    burnt: Vec<BurnId>,
    /// Copies, with how much was burnt by then.
    copies: Vec<(Vec<u8>, usize)>,
}

fn open(disk: &SimulatedDisk, seed: u64) -> Store {
    Store::open_on(disk.backend(), &key(), seeded(seed)).unwrap()
}

/// Burns, tells the peer, reopens and copies at random.
fn live(seed: u64) -> Life {
    let mut rng = rng(seed);
    let disk = SimulatedDisk::default();
    let mut store = Store::create_on(disk.backend(), &key(), seeded(seed)).unwrap();
    let (mut witness, mut burnt, mut copies) = (Witness::default(), Vec::new(), Vec::new());
    for step in 0..30 {
        match rng.next_u32() % 8 {
            0 => {
                drop(store);
                store = open(&disk, seed.wrapping_mul(1000) + step);
                witness.observe(&store.incarnation()).unwrap();
            }
            1 => copies.push((disk.content(), burnt.len())),
            _ => {
                let id = burn_id(20_000 + u32::try_from(step / 10).unwrap(), u64::from(rng.next_u32()));
                let fresh = store.burn(id).unwrap();
                // The peer sees the id, and with it the incarnation.
                witness.observe(fresh.incarnation()).unwrap();
                burnt.push(id);
            }
        }
    }
    copies.push((disk.content(), burnt.len()));
    drop(store);
    Life { disk, witness, burnt, copies }
}

#[test]
fn a_copy_from_any_moment_burns_nothing_again() {
    let (mut found, mut harmless) = (0, 0);
    for seed in 0..25 {
        let life = live(seed);
        for (number, (copy, burnt_by_then)) in life.copies.iter().enumerate() {
            let disk = SimulatedDisk::with_content(copy.clone());
            // Opened as often as one likes, with work in between that the peer does not see.
            let mut store = open(&disk, 77);
            for round in 0..(number % 3) {
                store.burn(burn_id(30_000, round as u64)).unwrap();
                drop(store);
                store = open(&disk, 78 + round as u64);
            }
            let remembered = life.witness.remembered().copied();
            let believed = remembered.is_none_or(|seen| store.check_remembered(&seen).unwrap().is_ok());
            let lost = &life.burnt[*burnt_by_then..];
            if believed {
                assert!(lost.is_empty(), "seed {seed}: a copy that forgot {} ids was believed", lost.len());
                assert!(life.burnt.iter().all(|id| matches!(store.burn(*id), Err(BurnError::AlreadyBurnt))));
                harmless += 1;
                continue;
            }
            found += 1;
            // A person says that it may go on: above everything that was.
            let day = life.burnt.iter().map(|id| id.day + 1).max().unwrap_or(0);
            store.write(|tx| tx.raise_burn_watermark(day)).unwrap();
            assert!(life.burnt.iter().all(|id| matches!(store.burn(*id), Err(BurnError::BelowWatermark { .. }))));
        }
    }
    assert!(found > 20 && harmless > 20, "{found} copies found out, {harmless} harmless: the test tests nothing");
}

#[test]
fn the_peer_sees_a_restored_copy_at_first_sight() {
    let life = live(3);
    let disk = SimulatedDisk::with_content(life.copies[0].0.clone());
    let now = open(&disk, 5).incarnation();
    assert!(matches!(life.witness.check(&now), Err(Rollback::Older { .. } | Rollback::Forked { .. })));
    // The one that was never copied is believed.
    life.witness.check(&open(&life.disk, 6).incarnation()).unwrap();
}

#[test]
fn two_copies_that_run_at_once_are_told_apart() {
    let disk = SimulatedDisk::default();
    drop(Store::create_on(disk.backend(), &key(), seeded(1)).unwrap());
    let copy = SimulatedDisk::with_content(disk.content());
    let (one, two) = (open(&disk, 2), open(&copy, 3));
    let mut witness = Witness::default();
    witness.observe(&one.incarnation()).unwrap();
    assert_eq!(witness.check(&two.incarnation()), Err(Rollback::Forked { generation: 2 }));
    assert_eq!(two.check_remembered(&one.incarnation()).unwrap(), Err(Rollback::Forked { generation: 2 }));
}

#[test]
fn sealing_repeats_nothing_after_a_rollback() {
    let disk = SimulatedDisk::default();
    drop(Store::create_on(disk.backend(), &key(), theta_store::Options::default()).unwrap());
    let write = |content: Vec<u8>| {
        let disk = SimulatedDisk::with_content(content);
        let store = Store::open_on(disk.backend(), &key(), theta_store::Options::default()).unwrap();
        store.append_audit(b"the same record".to_vec()).unwrap();
        drop(store);
        let table = redb::TableDefinition::<&[u8], &[u8]>::new("audit");
        let database = redb::Builder::new().create_with_backend(disk.backend()).unwrap();
        let read = redb::ReadableDatabase::begin_read(&database).unwrap();
        let sealed = read.open_table(table).unwrap().get(0_u64.to_be_bytes().as_slice()).unwrap().unwrap();
        sealed.value().to_vec()
    };
    let (one, two) = (write(disk.content()), write(disk.content()));
    // Salts, and so keys and nonces, differ: the file went back, the random bytes do not.
    assert_eq!(one.len(), two.len());
    assert_ne!(one[1..33], two[1..33]);
    assert_ne!(one[33..], two[33..]);
}
