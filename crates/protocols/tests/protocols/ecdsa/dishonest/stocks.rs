//! Stocks of a key whose holders all sign, and all but one of whom may cheat: filled while nobody asks, and by programs that sign.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::Served;
use theta_protocols::ecdsa::{
    Ask, Majority, PREPARE, PROGRAM, Quarantine, SHARE, keeps_stock, made_at_once, most_kept,
};
use theta_rounds::simulator::{Adversary, SimRng, Tamper};
use theta_rounds::{Abort, Effect, Input, PartyId, Slot};
use theta_schemes::{Delivery, Suite};
use theta_sharing::Threshold;

use super::{lie_in, quarantined, result_of, seen_in, silent_from};
use crate::ecdsa::support::{Group, LEVEL, id, tamper};

/// How many presignatures a program makes for these keys.
const MADE: usize = made_at_once(LEVEL, Majority::Dishonest);

/// A group of a key whose holders all sign, with stocks.
fn stocked(k: u16) -> Group {
    let mut group = Group::dishonest(Suite::EcdsaP256, k, k);
    group.levels = vec![LEVEL; k.into()];
    group
}

#[test]
fn where_all_must_sign_stocks_are_filled_and_serve() {
    for k in [2, 3] {
        let group = stocked(k);
        for number in 1..=k {
            let holders = Group::filled_by(&group.fill((number, number.into()), &[], Vec::new()));
            assert!(holders.iter().all(|named| named.len() == usize::from(k)));
            assert_eq!(group.ready(), vec![MADE * usize::from(number); k.into()]);
        }
        let (rounds, _) = seen_in(&group, |spies| drop(group.run(b"m", 1, spies)));
        assert!(rounds.is_empty(), "no program runs");
        group.check(b"n", &group.run(b"n", 2, Vec::new())).unwrap();
        assert_eq!(group.ready(), vec![MADE * usize::from(k) - 2; k.into()], "each is used up at all holders");
    }
}

/// A program that signs makes some beside, for its coordinator, whose own are used up: fewer, the more of its holders may be liars.
#[test]
fn programs_that_sign_make_some_beside() {
    for (k, made) in [(2, 8), (3, 4), (5, 2)] {
        let group = stocked(k);
        group.check(b"m", &group.run(b"m", 1, Vec::new())).unwrap();
        let owner = id(group.coordinator(b"m"));
        let owned: Vec<usize> = group.stocks.iter().map(|stock| stock.presignatures_of(owner)).collect();
        assert_eq!((owned, group.ready()), (vec![made; k.into()], vec![made; k.into()]));
        // They are alike: who coordinates next in its name signs with one.
        let (rounds, _) = seen_in(&group, |spies| drop(group.run(b"m", 2, spies)));
        assert!(rounds.is_empty(), "no program runs");
        assert_eq!(group.ready(), vec![made - 1; k.into()]);
    }
}

/// Who names more than it may is found, and the request goes on.
#[test]
fn programs_that_sign_make_no_more_beside_than_they_may() {
    for (k, most) in [(2_u16, 8_u8), (3, 4)] {
        for (count, is_refused) in [(most, false), (most + 1, true)] {
            let group = stocked(k);
            let first = group.coordinator(b"m");
            let lie = tamper(move |slot, payload| {
                let mut payload = payload.to_vec();
                if slot.kind == PREPARE {
                    payload[2..4].copy_from_slice(&[0, count]);
                }
                vec![(slot, payload.into())]
            });
            let report = group.run(b"m", 1, vec![(first, lie)]);
            group.check_safe(b"m", &report).unwrap();
            assert_eq!(Group::offences(&report, first) == ["invalid_program"], is_refused, "{count} among {k}");
        }
    }
}

/// A request for which everybody has had a turn makes none beside any more.
#[test]
fn what_fails_often_makes_nothing_beside() {
    let mut group = stocked(2);
    group.ticks = 60;
    let counts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&counts);
    // It names programs, and says nothing in them.
    let silent = tamper(move |slot, payload: Bytes| {
        if slot.kind == PREPARE {
            seen.lock().unwrap().push((payload[1], payload[3]));
        }
        if slot.kind < PROGRAM { vec![(slot, payload)] } else { Vec::new() }
    });
    drop(group.run(b"m", 1, vec![(1, silent)]));
    let counts = counts.lock().unwrap();
    assert!(counts.iter().any(|(attempt, _)| *attempt < 2) && counts.iter().any(|(attempt, _)| *attempt >= 2));
    assert!(counts.iter().all(|(attempt, count)| (*count > 0) == (*attempt < 2)), "{counts:?}");
}

/// What is found while a request waits for its turn at the stock counts for it, too: it begins no program with a set in quarantine.
#[test]
fn who_asks_the_stock_learns_of_a_quarantine() {
    let group = stocked(3);
    let message = group.message_of(1);
    let mut machine = group.machine(1, &message);
    let holders = (1..=3).map(|number| id(number).share()).collect();
    assert!(group.stocks[0].quarantine(Quarantine { holders, phase: "a check".into(), party: None }));
    let effects = machine.handle(Input::Start, &mut ChaCha8Rng::seed_from_u64(1));
    let is_program = |effect: &_| matches!(effect, Effect::Send { slot, .. } if slot.kind == PREPARE);
    assert!(!effects.iter().any(is_program));
    let ends = |effect: &_| matches!(effect, Effect::Finished(Err(Abort::Quarantined { .. })));
    assert!(effects.iter().any(ends), "{} effects", effects.len());
}

/// What a filling sends must not be stopped by a bound of messages either.
#[test]
fn messages_of_fillings_are_below_their_bound() {
    for k in [2, 3] {
        let group = stocked(k);
        let (rounds, longest) = seen_in(&group, |spies| drop(group.fill((1, 1), &[], spies)));
        assert!(longest < 7 << 15, "{longest} bytes");
        assert!(rounds.len() > 40, "{} rounds", rounds.len());
        assert_eq!(group.ready(), vec![MADE; k.into()]);
        let group = stocked(k);
        let (_, longest) = seen_in(&group, |spies| drop(group.run(b"m", 1, spies)));
        assert!(longest < 7 << 15, "{longest} bytes beside a signature");
    }
}

/// Each set would need a stock of its own: none is kept, and whoever signs makes nothing beside.
#[test]
fn where_some_must_sign_nothing_is_kept() {
    let mut group = Group::dishonest(Suite::EcdsaP256, 2, 3);
    group.levels = vec![LEVEL; 3];
    group.check(b"m", &group.run(b"m", 1, Vec::new())).unwrap();
    let report = group.fill((1, 1), &[], Vec::new());
    assert!(Group::filled_by(&report).iter().all(Vec::is_empty));
    assert_eq!(group.ready(), [0; 3]);
    assert!(!keeps_stock(group.delivery, Threshold::new(2, 3).unwrap()));
    assert!(keeps_stock(group.delivery, Threshold::new(3, 3).unwrap()));
    assert!(!keeps_stock(Delivery::PassiveDishonestMajority, Threshold::new(2, 2).unwrap()));
}

/// A holder that was restarted has no presignature any more. It says so by beginning a program: nobody waits for a tick.
#[test]
fn a_restarted_holder_of_two_delays_nothing() {
    for turn in 0..6_u8 {
        let mut group = stocked(2);
        assert_eq!(Group::filled_by(&group.fill((1, 1), &[], Vec::new())).len(), 2);
        group.forget(2);
        group.ticks = 0;
        group.check(&[turn], &group.run(&[turn], turn.into(), Vec::new())).unwrap();
    }
}

/// What the others had made with it and only it can name makes room, as soon as a program shows that it lacks it.
#[test]
fn what_a_restarted_holder_owned_takes_up_no_room() {
    let mut group = stocked(2);
    assert_eq!(Group::filled_by(&group.fill((1, 1), &[], Vec::new())).len(), 2);
    group.forget(2);
    let of_it = |group: &Group| group.stocks[0].presignatures_of(id(2));
    assert!(of_it(&group) > 0);
    let message = group.message_of(2);
    group.check(&message, &group.run(&message, 1, Vec::new())).unwrap();
    // Those that its program has just made are there.
    assert_eq!((of_it(&group), group.ready()[1]), (MADE, MADE));
    assert!(group.ready()[0] > MADE, "its own are named, and then found wanting, one after the other");
    for seed in 2..8 {
        drop(group.fill((1, seed), &[], Vec::new()));
    }
    assert_eq!(group.ready(), [most_kept(LEVEL); 2]);
}

/// Who names a program may have presignatures all the same: those that it owns sign when it names them, and count again.
#[test]
fn what_a_holder_seems_to_lack_still_serves() {
    let mut group = stocked(2);
    assert_eq!(Group::filled_by(&group.fill((1, 1), &[], Vec::new())).len(), 2);
    assert!(matches!(group.stocks[0].presignatures(Ask::Spare(id(2))), Served::Done));
    assert_eq!(group.stocks[0].presignatures_of(id(2)), 0);
    assert!(group.ready()[0] < MADE);
    let message = group.message_of(2);
    group.ticks = 0;
    group.check(&message, &group.run(&message, 1, Vec::new())).unwrap();
    assert_eq!(group.ready(), [MADE - 1; 2]);
}

/// Keeps from a party what is said of the first presignature that is named.
fn hide_the_first_from(late: u16) -> Box<dyn Adversary> {
    let mut first = None;
    Box::new(Tamper(move |_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
        let is_hidden = slot.kind == SHARE && {
            let named = payload.slice(..32);
            to == id(late) && *first.get_or_insert_with(|| named.clone()) == named
        };
        if is_hidden { Vec::new() } else { vec![(slot, payload)] }
    }))
}

/// A late holder makes nobody forget any: the next coordinator names another one, which all have, and not a program.
#[test]
fn a_late_holder_brings_no_stocks_out_of_step() {
    let group = stocked(3);
    for number in 1..=3 {
        assert_eq!(Group::filled_by(&group.fill((number, number.into()), &[], Vec::new())).len(), 3);
    }
    let first = group.coordinator(b"m");
    let (next, late) = (first % 3 + 1, (first + 1) % 3 + 1);
    let owned = |owner: u16| group.stocks.iter().map(|stock| stock.presignatures_of(id(owner))).collect::<Vec<_>>();
    let before = [next, late].map(owned);
    assert!(before.iter().flatten().all(|count| *count > 1), "{before:?}");
    let hindered = [first, next].map(|party| (party, hide_the_first_from(late))).into();
    let report = group.run(b"m", 1, hindered);
    group.check(b"m", &report).unwrap();
    assert!([first, next].into_iter().all(|party| result_of(&report, party).is_ok()));
    let [named, untouched] = before;
    assert_eq!(owned(next), named.into_iter().map(|count| count - 1).collect::<Vec<_>>());
    assert_eq!(owned(late), untouched);
}

/// A holder that falls silent when what is hidden is used may know that a check fails: such fillings are counted, and one that ends well makes up
/// for one of them.
#[test]
fn fillings_that_end_in_silence_are_counted() {
    for (round, is_counted) in [(1, false), (3, false), (4, true), (40, true)] {
        let mut group = stocked(2);
        group.ticks = 40;
        drop(group.fill((2, 1), &[], vec![(1, silent_from(round))]));
        let unended = group.stocks[1].unended();
        assert_eq!(unended > 0, is_counted, "round {round}");
        assert!(quarantined(&group, 2).is_empty(), "silence is no proof of a cheat");
        assert_eq!(Group::filled_by(&group.fill((2, 2), &[], Vec::new())).len(), 2);
        assert_eq!(group.stocks[1].unended(), unended.saturating_sub(1), "round {round}");
    }
}

/// A program may end after the cheat was found, by what another one of the same holders has shown.
#[test]
fn what_a_set_in_quarantine_makes_is_not_kept() {
    let group = stocked(2);
    let found = || Quarantine { holders: vec![id(1).share(), id(2).share()], phase: "a check".into(), party: None };
    assert!(group.stocks[0].quarantine(found()));
    assert!(!group.stocks[0].quarantine(found()), "it is known");
    assert_eq!(Group::filled_by(&group.fill((2, 1), &[], Vec::new())).len(), 2);
    assert_eq!(group.ready(), [0, MADE]);
}

/// A cheat in a filling is one as any other. What was made with it before is wiped, and nothing begins again.
#[test]
fn a_cheat_in_a_filling_ends_in_quarantine() {
    let mut noticed = 0;
    for round in [15, 25, 35] {
        let group = stocked(2);
        assert_eq!(Group::filled_by(&group.fill((2, 1), &[], Vec::new())).len(), 2);
        drop(group.fill((2, 2), &[], vec![(1, lie_in(round, 1000))]));
        for number in (1..=2).filter(|number| !quarantined(&group, *number).is_empty()) {
            noticed += 1;
            assert_eq!(group.ready()[usize::from(number) - 1], 0);
            let report = group.run(b"m", 1, Vec::new());
            assert!(matches!(result_of(&report, number), Err(Abort::Quarantined { .. })));
        }
    }
    assert!(noticed >= 2, "{noticed} noticed");
}
