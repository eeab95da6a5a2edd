//! What must never happen twice: burnt ids and slots.

use std::{sync::Arc, thread};

use theta_names::SlotOrder;
use theta_store::{BurnError, SlotDecision, SlotRule, StoreError, disk::SimulatedDisk, key::USED_REMEMBERED};

use crate::{burn_id, create, name, open};

fn rule(text: &str) -> SlotRule {
    SlotRule { key: name("validator"), rule: text.parse().unwrap() }
}

#[test]
fn of_many_threads_one_gets_each_id() {
    let disk = SimulatedDisk::default();
    let store = Arc::new(create(&disk));
    let before = disk.operations();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let ids: Vec<_> = (0..60).map(|id| burn_id(3, id)).collect();
                ids.into_iter().filter(|id| store.burn(*id).is_ok()).count()
            })
        })
        .collect();
    let won: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(won, 60);
    assert!(disk.operations() > before);
    drop(store);
    let store = open(&disk);
    assert!((0..60).all(|id| matches!(store.burn(burn_id(3, id)), Err(BurnError::AlreadyBurnt))));
}

#[test]
fn many_ids_share_one_commit() {
    let disk = SimulatedDisk::default();
    let store = create(&disk);
    let before = store.incarnation().sequence;
    let ids: Vec<_> = (0..1000).map(|id| burn_id(3, id % 600)).collect();
    let answers = store.burn_all(ids).unwrap();
    assert_eq!(store.incarnation().sequence, before + 1);
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 600);
    assert!(answers[..600].iter().all(Result::is_ok));
    assert_eq!(*answers[0].as_ref().unwrap().incarnation(), store.incarnation());
}

#[test]
fn an_id_is_refused_under_every_day_and_below_the_watermark() {
    let store = create(&SimulatedDisk::default());
    store.burn(burn_id(10, 1)).unwrap();
    store.burn(burn_id(11, 2)).unwrap();
    assert!(matches!(store.burn(burn_id(11, 1)), Err(BurnError::AlreadyBurnt)));
    store.write(|tx| tx.raise_burn_watermark(11, 4)).unwrap();
    assert_eq!(store.burn_watermark().unwrap(), 11);
    for id in [1, 3] {
        let error = store.burn(burn_id(10, id)).unwrap_err();
        assert!(matches!(error, BurnError::BelowWatermark { day: 10, watermark: 11 }), "{error}");
    }
    assert!(matches!(store.burn(burn_id(11, 2)), Err(BurnError::AlreadyBurnt)));
    // The watermark never falls.
    store.write(|tx| tx.raise_burn_watermark(5, 4)).unwrap();
    assert_eq!(store.burn_watermark().unwrap(), 11);
    store.burn(burn_id(11, 3)).unwrap();
}

#[test]
fn at_most_one_message_for_a_slot() {
    let disk = SimulatedDisk::default();
    let store = create(&disk);
    let decide = |slot, digest| store.decide(rule("votes"), slot, [digest; 32], SlotOrder::Any).unwrap();
    assert_eq!(decide(7, 1), SlotDecision::Allowed);
    assert_eq!(decide(7, 1), SlotDecision::Same);
    assert_eq!(decide(7, 2), SlotDecision::Conflict { previous: [1; 32] });
    assert_eq!(decide(6, 2), SlotDecision::Allowed);
    // Other rules and keys have slots of their own, also those whose names begin alike.
    for other in [rule("vote"), rule("votes2"), SlotRule { key: name("validator2"), rule: "votes".parse().unwrap() }] {
        assert_eq!(store.decide(other, 7, [3; 32], SlotOrder::Any).unwrap(), SlotDecision::Allowed);
    }
    drop(store);
    let store = open(&disk);
    let again = store.decide(rule("votes"), 7, [2; 32], SlotOrder::Any).unwrap();
    assert_eq!(again, SlotDecision::Conflict { previous: [1; 32] });
}

#[test]
fn marks_only_rise_and_refuse_what_is_over() {
    let store = create(&SimulatedDisk::default());
    let decide = |slot, digest| store.decide(rule("beacon"), slot, [digest; 32], SlotOrder::Any).unwrap();
    assert_eq!(
        (decide(1, 1), decide(2, 1), decide(3, 1)),
        (SlotDecision::Allowed, SlotDecision::Allowed, SlotDecision::Allowed)
    );
    store.write(|tx| tx.raise_slot_mark(&rule("beacon"), 2)).unwrap();
    store.write(|tx| tx.raise_slot_mark(&rule("beacon"), 1)).unwrap();
    for slot in 0..=2 {
        assert_eq!(decide(slot, 1), SlotDecision::Below { mark: 2 });
    }
    assert_eq!(decide(3, 2), SlotDecision::Conflict { previous: [1; 32] });
    assert_eq!(decide(4, 2), SlotDecision::Allowed);
}

#[test]
fn an_increasing_rule_never_looks_back() {
    let store = create(&SimulatedDisk::default());
    let decide = |slot, digest| store.decide(rule("serial"), slot, [digest; 32], SlotOrder::Increasing).unwrap();
    assert_eq!(decide(0, 1), SlotDecision::Allowed);
    assert_eq!(decide(5, 1), SlotDecision::Allowed);
    assert_eq!(decide(5, 1), SlotDecision::Same);
    assert_eq!(decide(5, 2), SlotDecision::Conflict { previous: [1; 32] });
    for slot in 0..5 {
        assert_eq!(decide(slot, 1), SlotDecision::Below { mark: 4 });
    }
    assert_eq!(decide(u64::MAX, 1), SlotDecision::Allowed);
    assert_eq!(decide(u64::MAX, 2), SlotDecision::Conflict { previous: [1; 32] });
}

/// A process that was resumed from an image of its memory has an outdated view of its store: it writes nothing over
/// what is there.
#[test]
fn a_store_whose_disk_went_on_burns_nothing_and_writes_nothing() {
    let disk = SimulatedDisk::default();
    let picture = create(&disk);
    picture.burn(burn_id(100, 1)).unwrap();
    let later = open(&disk);
    later.burn(burn_id(100, 2)).unwrap();
    let sequence = later.incarnation().sequence;
    drop(later);
    for id in [1, 2, 3] {
        let refused = picture.burn(burn_id(100, id)).unwrap_err();
        assert!(matches!(&refused, BurnError::Store(StoreError::NotContinued(_) | StoreError::Failed)), "{refused}");
    }
    assert!(matches!(picture.recover(), Err(StoreError::NotContinued(_))), "it is another opening by now");
    drop(picture);
    let store = open(&disk);
    assert_eq!(store.incarnation().sequence, sequence + 1, "nothing but the opening");
    assert!(matches!(store.burn(burn_id(100, 2)), Err(BurnError::AlreadyBurnt)));
}

/// Ids that begin with their day are forgotten in parts, the oldest first, and refused at once.
#[test]
fn days_are_forgotten_in_parts() {
    let store = create(&SimulatedDisk::default());
    let id = |day: u32, number: u8| {
        let mut id = [number; 32];
        id[..4].copy_from_slice(&day.to_be_bytes());
        theta_store::BurnId { day, id }
    };
    let ids = (10..13).flat_map(|day| (0..5).map(move |number| id(day, number)));
    assert!(store.burn_all(ids.collect()).unwrap().iter().all(Result::is_ok));
    let part = |day| store.write(|tx| tx.raise_burn_watermark(day, 4)).unwrap();
    assert_eq!([part(12), part(12), part(12), part(12)], [true, true, false, false]);
    assert!(!part(11), "it never falls");
    assert_eq!(store.burn_watermark().unwrap(), 12);
    assert!(matches!(store.burn(id(11, 9)), Err(BurnError::BelowWatermark { day: 11, watermark: 12 })));
    assert!(matches!(store.burn(id(12, 4)), Err(BurnError::AlreadyBurnt)));
    store.burn(id(12, 9)).unwrap();
}

/// A use reads some records and not all of them, and those that are over go all the same.
#[test]
fn used_requests_are_looked_up_and_forgotten_in_time() {
    let store = create(&SimulatedDisk::default());
    let digest = |number: u32| {
        // As if hashed: spread over all there are.
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
        digest
    };
    let remembered = |from: u32, to: u32| (from..to).filter(|number| store.is_used(&digest(*number)).unwrap()).count();
    let begin = 1_795_000_000;
    store.write(|tx| (0..400).try_for_each(|number| tx.use_up(&digest(number), begin))).unwrap();
    store.write(|tx| tx.use_up(&[0xff; 32], 0)).unwrap();
    assert_eq!(remembered(0, 400), 400);
    // The last second in which they may be used again.
    let last = begin + USED_REMEMBERED - 1;
    store.write(|tx| tx.use_up(&digest(400), last)).unwrap();
    assert_eq!(remembered(0, 401), 401);
    // One use removes what it looks at, and no more.
    store.write(|tx| tx.use_up(&digest(401), last + 1)).unwrap();
    let left = remembered(0, 400);
    assert!((380..400).contains(&left), "{left} of 400 are left");
    store.write(|tx| (402..802).try_for_each(|number| tx.use_up(&digest(number), last + 1))).unwrap();
    assert_eq!(remembered(0, 400), 0);
    assert_eq!(remembered(400, 802), 402);
    assert!(store.is_used(&[0xff; 32]).unwrap(), "one of an unknown time is never forgotten");
}
