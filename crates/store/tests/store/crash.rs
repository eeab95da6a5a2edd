//! The power fails at any write: acknowledged changes are there, and no change is there in part.

use std::{env, io};

use rand_chacha::rand_core::Rng;
use redb::StorageBackend;
use theta_groups::Secret;
use theta_names::{Delivery, Epoch, Purpose, SlotOrder};
use theta_store::{KeyError, Options, SlotDecision, SlotRule, Store, disk::SimulatedDisk};

use crate::{burn_id, epoch, key, name, rng, secret, seeded, version};

const CEREMONY: [u8; 32] = [9; 32];

/// What the store has acknowledged.
#[derive(Default)]
struct Acknowledged {
    /// Transactions over several tables.
    bundles: Vec<u64>,
    /// Slots and what was decided for them.
    slots: Vec<(u64, u8)>,
    inputs: u32,
    sequence: u64,
}

fn rule() -> SlotRule {
    SlotRule { key: name("k"), rule: "r".parse().unwrap() }
}

/// One transaction over four tables.
fn bundle(store: &Store, id: u64) -> Result<(), KeyError> {
    store.write(|tx| {
        tx.burn(burn_id(1, id)).map_err(|error| match error {
            theta_store::BurnError::Store(error) => KeyError::Store(error),
            refused => panic!("{refused}"),
        })?;
        tx.append_audit(id.to_be_bytes().to_vec())?;
        let key = name(&format!("key-{id}"));
        tx.create_key(&key, Purpose::Sign)?;
        tx.import_version(&key, ("suite", Delivery::All), epoch(1), secret(&id.to_be_bytes())).map(drop)
    })
}

/// Whether a bundle is there; the test fails if only a part of it is.
fn has_bundle(store: &Store, id: u64) -> bool {
    let key = name(&format!("key-{id}"));
    let share = store.share(&key, version(1), Epoch::new(1)).unwrap().map(|share| share.expose().clone());
    let parts = [
        store.key(&key).unwrap().is_some(),
        share == Some(id.to_be_bytes().to_vec()),
        store.audit(0, usize::MAX).unwrap().iter().any(|record| record.body == id.to_be_bytes()),
    ];
    assert!(parts.iter().all(|part| *part == parts[0]), "half of transaction {id}: {parts:?}");
    // Asking whether an id is burnt burns it, so only ids that must be burnt are asked for.
    assert!(!parts[0] || store.burn(burn_id(1, id)).is_err(), "transaction {id} is there, its id not burnt");
    parts[0]
}

/// One random change. If it fails, its outcome is unknown.
fn step(store: &Store, done: &mut Acknowledged, next: &mut u64, rng: &mut impl Rng) -> bool {
    let ok = match rng.next_u32() % 4 {
        0 => {
            *next += 1;
            let ok = bundle(store, *next).is_ok();
            if ok {
                done.bundles.push(*next);
            }
            ok
        }
        1 => {
            *next += 1;
            let digest = u8::try_from(rng.next_u32() % 200).unwrap();
            let decided = store.decide(rule(), *next, [digest; 32], SlotOrder::Any);
            if matches!(decided, Ok(SlotDecision::Allowed)) {
                done.slots.push((*next, digest));
            }
            decided.is_ok()
        }
        2 => {
            // Large enough for several pages.
            let input = Secret::new(vec![7; usize::try_from(rng.next_u32() % 9000).unwrap()]);
            let ok = store.record_input(CEREMONY, done.inputs, input).is_ok();
            done.inputs += u32::from(ok);
            ok
        }
        _ => store.append_audit(b"single".to_vec()).is_ok(),
    };
    if ok {
        done.sequence = done.sequence.max(store.incarnation().sequence);
    }
    ok
}

fn check(store: &Store, done: &mut Acknowledged, next: u64) {
    assert!(store.incarnation().sequence > done.sequence, "the sequence went back");
    assert!(done.bundles.iter().all(|id| has_bundle(store, *id)), "an acknowledged transaction is lost");
    // The bundle that was not answered may be there, but only as a whole.
    has_bundle(store, next);
    for (slot, digest) in &done.slots {
        let again = store.decide(rule(), *slot, [*digest; 32], SlotOrder::Any).unwrap();
        assert_eq!(again, SlotDecision::Same, "slot {slot} is lost");
    }
    let inputs = u32::try_from(store.ceremony_inputs(&CEREMONY).unwrap().len()).unwrap();
    assert_eq!(inputs, store.ceremony(&CEREMONY).unwrap().unwrap().inputs());
    assert!((done.inputs..=done.inputs + 1).contains(&inputs), "{inputs} inputs, {} acknowledged", done.inputs);
    done.inputs = inputs;
    store.check_audit().unwrap().unwrap();
}

/// Several lives, each ended by a power failure after some writes.
fn run(seed: u64, lives: usize, mut writes: impl FnMut(&mut rand_chacha::ChaCha20Rng) -> u64) {
    let mut rng = rng(seed);
    let disk = SimulatedDisk::default();
    let mut store = Store::create_on(disk.backend(), &key(), seeded(seed)).unwrap();
    store.write(|tx| tx.begin_ceremony(CEREMONY, b"", Secret::new([1; 32]), 0)).unwrap();
    let (mut done, mut next) = (Acknowledged::default(), 0);
    for life in 0..lives {
        disk.fail_after(writes(&mut rng));
        while step(&store, &mut done, &mut next, &mut rng) {}
        drop(store);
        disk.fail_power(&mut rng);
        // The power may fail again while the store is being opened.
        disk.fail_after(u64::from(rng.next_u32() % 40));
        drop(Store::open_on(disk.backend(), &key(), seeded(seed ^ 1)));
        disk.fail_power(&mut rng);
        store = Store::open_on(disk.backend(), &key(), seeded(seed ^ life as u64))
            .unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error}"));
        check(&store, &mut done, next);
        next += 1;
    }
}

#[test]
fn what_was_acknowledged_survives_any_power_failure() {
    let seeds =
        env::var("THETA_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(2000_u64).div_ceil(50).max(1);
    let one = env::var("THETA_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in one.map_or(0..seeds, |seed: u64| seed..seed + 1) {
        run(seed, 6, |rng| u64::from(rng.next_u32() % 120));
    }
}

#[test]
fn the_power_fails_at_every_single_write() {
    for k in 0..100 {
        run(7, 1, |_| k);
    }
}

#[test]
fn a_creation_that_failed_leaves_nothing_that_is_taken_for_a_store() {
    for k in 0..60 {
        let disk = SimulatedDisk::default();
        disk.fail_after(k);
        let created = Store::create_on(disk.backend(), &key(), Options::default()).is_ok();
        disk.fail_power(&mut rng(k));
        if created {
            Store::open_on(disk.backend(), &key(), Options::default()).unwrap();
        } else {
            // The store is whole or refused, never half there.
            if let Ok(store) = Store::open_on(disk.backend(), &key(), Options::default()) {
                store.burn(burn_id(1, 1)).unwrap();
            }
        }
    }
}

/// A disk that reports a sync without syncing.
#[derive(Debug)]
struct Liar<B>(B);

impl<B: StorageBackend> StorageBackend for Liar<B> {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

/// The other tests would notice a commit that is not synced: on this disk something is always lost.
#[test]
fn without_syncs_a_power_failure_loses_what_was_acknowledged() {
    for seed in 0..10 {
        let disk = SimulatedDisk::default();
        drop(Store::create_on(disk.backend(), &key(), seeded(seed)).unwrap());
        let store = Store::open_on(Liar(disk.backend()), &key(), seeded(seed)).unwrap();
        let burnt: Vec<_> = (0..20).map(|id| *store.burn(burn_id(1, id)).unwrap().id()).collect();
        disk.fail_power(&mut rng(seed));
        drop(store);
        let Ok(store) = Store::open_on(disk.backend(), &key(), seeded(seed)) else { continue };
        assert!(burnt.iter().any(|id| store.burn(*id).is_ok()), "seed {seed}: nothing was lost");
    }
}
