//! Copies of the file are put back; nothing that a peer ever saw happens again.

use rand_chacha::rand_core::Rng;
use theta_store::{BurnError, BurnId, Rollback, Seen, Store, Witness, disk::SimulatedDisk};

use crate::{burn_id, key, rng, seeded};

/// A node's life up to some moment, with what its peer saw of it and the copies that were taken.
struct Life {
    disk: SimulatedDisk,
    witness: Witness,
    burnt: Vec<BurnId>,
    /// Copies, each with the number of ids that were burnt before.
    copies: Vec<(Vec<u8>, usize)>,
}

fn open(disk: &SimulatedDisk, seed: u64) -> Store {
    Store::open_on(disk.backend(), &key(), seeded(seed)).unwrap()
}

/// Burns ids, shows them to the peer, reopens and copies, at random.
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
                assert_eq!(witness.observe(&store.incarnation()), Ok(Seen::Continues));
            }
            1 => copies.push((disk.content(), burnt.len())),
            _ => {
                let id = burn_id(20_000 + u32::try_from(step / 10).unwrap(), u64::from(rng.next_u32()));
                let fresh = store.burn(id).unwrap();
                // The peer sees the id, and with it the incarnation.
                assert_eq!(witness.observe(fresh.incarnation()), Ok(Seen::Continues));
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
            // The copy is opened any number of times, with work in between that the peer does not see.
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
            // A person restores it with bounds above everything that was.
            let day = life.burnt.iter().map(|id| id.day + 1).max().unwrap_or(0);
            store.write(|tx| tx.raise_burn_watermark(day, 100)).unwrap();
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
    let sight = life.witness.clone().observe(&now);
    assert!(matches!(sight, Err(Rollback::Older { .. } | Rollback::Forked { .. })), "{sight:?}");
    // The store that was never copied is believed. (It was opened once more, which follows without links.)
    assert_eq!(life.witness.clone().observe(&open(&life.disk, 6).incarnation()), Ok(Seen::Continues));
}

#[test]
fn two_copies_that_run_at_once_are_told_apart() {
    let disk = SimulatedDisk::default();
    drop(Store::create_on(disk.backend(), &key(), seeded(1)).unwrap());
    let copy = SimulatedDisk::with_content(disk.content());
    let (one, two) = (open(&disk, 2), open(&copy, 3));
    let mut witness = Witness::default();
    assert_eq!(witness.observe(&one.incarnation()), Ok(Seen::Continues));
    assert_eq!(witness.observe(&two.incarnation()), Err(Rollback::Forked { generation: 2 }));
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
    // Salts, and so keys and nonces, differ: the file went back, but random bytes do not repeat.
    assert_eq!(one.len(), two.len());
    assert_ne!(one[1..33], two[1..33]);
    assert_ne!(one[33..], two[33..]);
}

/// The attack: a copy is put back, and opened until its counters exceed everything that was ever seen.
#[test]
fn a_copy_is_not_trusted_after_any_number_of_restarts() {
    for seed in 0..10 {
        let life = live(seed);
        let remembered = *life.witness.remembered().unwrap();
        for (copy, burnt_by_then) in &life.copies {
            let disk = SimulatedDisk::with_content(copy.clone());
            let mut witness = life.witness.clone();
            for round in 0..12 {
                let store = open(&disk, 1_000 + round);
                for id in 0..20 {
                    store.burn(burn_id(40_000, 100 * round + id)).unwrap();
                }
                let now = store.incarnation();
                let sight = witness.observe(&now);
                let shown = match store.lineage(&remembered).unwrap() {
                    Some(lineage) if sight == Ok(Seen::Unproven) => {
                        witness.prove(&lineage).map(|proven| assert!(proven))
                    }
                    _ => sight.map(|_| ()),
                };
                let forgot = life.burnt.len() > *burnt_by_then;
                // A copy that knows all that the peer saw may go on, and is remembered from then on.
                if shown.is_ok() {
                    assert!(!forgot, "seed {seed}, round {round}: a copy that forgot ids was believed");
                    break;
                }
                assert_eq!(witness.remembered(), Some(&remembered), "what was seen is not overwritten");
                assert!(store.check_remembered(&remembered).unwrap().is_err());
            }
        }
    }
}

#[test]
fn contradictions_and_a_person_s_word_survive() {
    let disk = SimulatedDisk::default();
    let store = Store::create_on(disk.backend(), &key(), seeded(1)).unwrap();
    let claim = |sequence| theta_store::Incarnation { sequence, ..store.incarnation() };
    let (one, two) = (claim(100), claim(200));
    let standing = |store: &Store| -> Vec<_> {
        let all = store.contradictions().unwrap().into_iter();
        all.map(|known| (known.peer, known.claim.sequence, known.overruled)).collect()
    };
    store.write(|tx| tx.remember_contradiction(2, Some(&one))).unwrap();
    store.write(|tx| tx.remember_contradiction(3, Some(&one))).unwrap();
    store.write(|tx| tx.remember_contradiction(2, Some(&two))).unwrap();
    drop(store);
    let store = open(&disk, 2);
    assert_eq!(standing(&store), [(2, 200, false), (3, 100, false)]);
    store.write(|tx| tx.remember_contradiction(3, None)).unwrap();
    let overruled = store.write(|tx| tx.trust_opening(3)).unwrap();
    assert_eq!(overruled.len(), 1);
    assert!(!store.is_opening_trusted().unwrap());
    drop(store);
    let store = open(&disk, 3);
    assert_eq!(standing(&store), [(2, 200, true)]);
    assert!(store.is_opening_trusted().unwrap(), "the next opening");
    drop(store);
    assert!(!open(&disk, 4).is_opening_trusted().unwrap(), "and no other");
}
