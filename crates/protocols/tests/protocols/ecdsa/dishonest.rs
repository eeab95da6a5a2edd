//! All holders of a program but one may cheat: whatever they send, the honest ones have a right signature or none, stop, and do not begin again
//! with the same holders.

mod stocks;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use theta_protocols::ecdsa::{PREPARE, PROGRAM, Quarantine};
use theta_rounds::simulator::{Adversary, Behaviour, SimRng, Tamper};
use theta_rounds::{Abort, PartyId, Slot};
use theta_schemes::Suite;

use super::support::{Group, Liar, Ran, id, tamper};

/// A round of a program without the number of its attempt: what each round is about depends on it alone.
fn round_of(payload: &[u8]) -> u16 {
    u16::from_be_bytes([payload[2], payload[3]])
}

/// A liar that flips a bit of what it sends in one round of each program, at a place in thousandths of its length.
fn lie_in(round: u16, place: usize) -> Box<dyn Adversary> {
    tamper(move |slot, payload: Bytes| {
        let mut payload = payload.to_vec();
        if slot.kind >= PROGRAM && payload.len() > 4 && round_of(&payload) == round {
            let at = 4 + (payload.len() - 5) * place / 1000;
            payload[at] ^= 1;
        }
        vec![(slot, payload.into())]
    })
}

/// The rounds of a program that signs, and the longest message in any.
fn rounds(group: &Group) -> (BTreeSet<u16>, usize) {
    seen_in(group, |spies| drop(group.run(b"m", 1, spies)))
}

/// The rounds of the programs in a run, and the longest message in any.
fn seen_in(group: &Group, run: impl FnOnce(Vec<Liar>)) -> (BTreeSet<u16>, usize) {
    let seen: Arc<Mutex<(BTreeSet<u16>, usize)>> = Arc::default();
    let spies: Vec<Liar> = (1..=group.n)
        .map(|number| {
            let seen = Arc::clone(&seen);
            let spy = tamper(move |slot, payload: Bytes| {
                if slot.kind >= PROGRAM {
                    let mut seen = seen.lock().unwrap();
                    seen.0.insert(round_of(&payload));
                    seen.1 = seen.1.max(payload.len());
                }
                vec![(slot, payload)]
            });
            (number, spy)
        })
        .collect();
    run(spies);
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn quarantined(group: &Group, number: u16) -> Vec<Quarantine> {
    group.stocks[usize::from(number) - 1].quarantined()
}

fn result_of(report: &Ran, number: u16) -> &Result<theta_protocols::Outcome, Abort> {
    report.parties[&id(number)].result.as_ref().unwrap()
}

#[test]
fn exactly_k_holders_sign() {
    for suite in [Suite::EcdsaP256, Suite::EcdsaSecp256k1] {
        for (k, n) in [(2, 2), (2, 3), (3, 3), (3, 5), (5, 7)] {
            let group = Group::dishonest(suite, k, n);
            let report = group.run(b"m", 1, Vec::new());
            group.check(b"m", &report).unwrap();
            for (_, party) in report.honest() {
                let Some(Ok(outcome)) = &party.result else { panic!("no result") };
                assert_eq!(outcome.contributors.len(), usize::from(k), "{k} of {n}");
            }
            assert!((1..=n).all(|number| quarantined(&group, number).is_empty()));
        }
    }
}

/// What messages take: a bound of theirs must not be what stops an honest program.
#[test]
fn messages_of_programs_are_far_below_their_bound() {
    for k in [2, 5] {
        let (rounds, longest) = rounds(&Group::dishonest(Suite::EcdsaP256, k, k));
        assert!(longest < 1 << 17, "{longest} bytes");
        assert!((35..50).contains(&rounds.len()), "{} rounds", rounds.len());
    }
}

/// The rounds in which the holders compare what they mean to do, and what the set-up began with.
const BEGINNING: [u16; 3] = [1, 2, 3];

/// One bit of any message of any round. Whoever is honest of two has a signature that verifies or stops, says who it was, and never begins again.
#[test]
fn every_lie_of_two_ends_in_quarantine() {
    let (rounds, _) = rounds(&Group::dishonest(Suite::EcdsaP256, 2, 2));
    let (mut runs, mut noticed, mut phases) = (0, 0, BTreeSet::new());
    for round in &rounds {
        for place in [100, 1000] {
            let mut group = Group::dishonest(Suite::EcdsaP256, 2, 2);
            let report = group.run(b"m", (*round).into(), vec![(1, lie_in(*round, place))]);
            group.check_safe(b"m", &report).unwrap();
            runs += 1;
            // Where the liar's own machine stopped first, as what came back did not fit its lie, it is silent from then on.
            let Some(result) = &report.parties[&id(2)].result else {
                // Those who find that they began apart have nothing to hide from each other yet, and try again.
                let began_apart = BEGINNING.contains(round);
                let expected = usize::from(!began_apart);
                assert_eq!(quarantined(&group, 1).len(), expected, "round {round}, place {place}: both wait");
                noticed += 1;
                continue;
            };
            match result {
                Ok(_) => assert!(quarantined(&group, 2).is_empty()),
                Err(Abort::Quarantined { phase, party }) => {
                    assert_eq!(*party, Some(id(1)), "{phase}");
                    noticed += 1;
                    phases.insert(phase.clone());
                    let known = quarantined(&group, 2);
                    assert_eq!(known.len(), 1);
                    assert_eq!(known[0].holders, [id(1).share(), id(2).share()]);
                    // The next request is refused, although the other one is honest now.
                    let report = group.run(b"n", 1, Vec::new());
                    assert!(matches!(result_of(&report, 2), Err(Abort::Quarantined { .. })));
                    // New shares have new stocks, so a refresh lets them sign again.
                    [1, 2].into_iter().for_each(|number| group.forget(number));
                    group.check(b"n", &group.run(b"n", 1, Vec::new())).unwrap();
                }
                Err(other) => panic!("round {round}: {other}"),
            }
        }
    }
    // Not noticed is what depends on a bit that the liar guessed.
    assert!(noticed * 10 > runs * 9, "{noticed} of {runs} lies noticed");
    assert!(phases.len() >= 6, "{phases:?}");
}

/// Of three, a liar stops the sets that it is in, and no other one.
#[test]
fn the_honest_sign_without_a_liar() {
    let (rounds, _) = rounds(&Group::dishonest(Suite::EcdsaP256, 2, 3));
    for round in rounds.into_iter().step_by(4) {
        for liar in 1..=3 {
            let mut group = Group::dishonest(Suite::EcdsaP256, 2, 3);
            group.ticks = 60;
            for turn in 0..2_u8 {
                let report = group.run(&[turn], round.into(), vec![(liar, lie_in(round, 1000))]);
                group.check(&[turn], &report).unwrap_or_else(|error| panic!("liar {liar}, round {round}: {error}"));
            }
            for honest in (1..=3).filter(|number| *number != liar) {
                for it in quarantined(&group, honest) {
                    assert!(it.holders.contains(&id(liar).share()), "{it:?}, liar {liar}");
                    assert_eq!(it.party, Some(id(liar)));
                }
            }
        }
    }
}

/// With three of three nobody knows which of the two others it was, unless the message shows it.
#[test]
fn of_three_the_phase_is_named_and_nobody_wrongly() {
    let (rounds, _) = rounds(&Group::dishonest(Suite::EcdsaP256, 3, 3));
    for round in rounds.into_iter().step_by(3) {
        let group = Group::dishonest(Suite::EcdsaP256, 3, 3);
        let report = group.run(b"m", 5, vec![(2, lie_in(round, 1000))]);
        group.check_safe(b"m", &report).unwrap();
        for honest in [1, 3] {
            for it in quarantined(&group, honest) {
                assert!(it.party.is_none_or(|party| party == id(2)), "{it:?}");
            }
        }
    }
}

/// A message that is false by itself names the liar. Whoever has received one makes no program with it, in whatever set: each would be one more guess.
#[test]
fn who_is_named_is_in_no_set_any_more() {
    // Set-ups have five rounds; in the second of them the liar shows that it has chosen falsely.
    const CHOICES: u16 = 5;
    let mut group = Group::dishonest(Suite::EcdsaP256, 3, 4);
    group.ticks = 60;
    let namers = |group: &Group| -> Vec<u16> {
        [1, 2, 4].into_iter().filter(|number| !quarantined(group, *number).is_empty()).collect()
    };
    // Until it is asked for.
    for seed in 10..30 {
        let report = group.run(&[seed], seed.into(), vec![(3, lie_in(CHOICES, 1000))]);
        group.check(&[seed], &report).unwrap();
        if !namers(&group).is_empty() {
            break;
        }
    }
    let namers = namers(&group);
    assert_eq!(namers.len(), 2, "the others of its set");
    for namer in &namers {
        let known = quarantined(&group, *namer);
        assert_eq!((known.len(), known[0].party), (1, Some(id(3))), "{known:?}");
    }
    for seed in 0..8 {
        // It is honest now, and coordinates sometimes: two of each set of three with it refuse, and nobody tries for long.
        let report = group.run(&[seed], seed.into(), Vec::new());
        group.check(&[seed], &report).unwrap();
        for (party, ran) in report.honest() {
            let Some(Ok(outcome)) = &ran.result else { panic!("no result at {party}") };
            assert!(!outcome.contributors.contains(&id(3).share()), "{:?}", outcome.contributors);
        }
    }
    assert!(namers.iter().all(|namer| quarantined(&group, *namer).len() == 1));
}

/// There are more sets with a cheat than anybody can pass over one by one.
#[test]
fn a_cheat_of_very_many_sets_is_passed_over_at_once() {
    let group = Group::dishonest(Suite::EcdsaP256, 10, 100);
    let found =
        Quarantine { holders: (1..=10).map(|n| id(n).share()).collect(), phase: "a check".into(), party: Some(id(2)) };
    assert!(group.stocks[0].quarantine(found));
    let report = group.run(b"m", 1, Vec::new());
    let Some(Ok(outcome)) = &report.parties[&id(1)].result else { panic!("no result") };
    assert!(!outcome.contributors.contains(&id(2).share()) && outcome.contributors.len() == 10);
}

/// Who is down has not cheated: others are asked, and it may come back.
#[test]
fn silence_is_no_cheat() {
    for silent in 1..=3 {
        let mut group = Group::dishonest(Suite::EcdsaP256, 2, 3);
        group.ticks = 40;
        let report = group.run(b"m", silent.into(), vec![(silent, Box::new(Behaviour::Silent))]);
        group.check(b"m", &report).unwrap();
        assert!((1..=3).all(|number| quarantined(&group, number).is_empty()));
        group.check(b"n", &group.run(b"n", 1, Vec::new())).unwrap();
    }
}

/// A coordinator names other holders than its life before did, and one has heard of the former alone: nobody has cheated, and all sign.
#[test]
fn who_means_other_holders_is_no_cheat() {
    let mut group = Group::dishonest(Suite::EcdsaP256, 3, 4);
    group.ticks = 80;
    let coordinator = group.coordinator(b"m");
    let told: Arc<Mutex<BTreeSet<PartyId>>> = Arc::default();
    let heard = Arc::clone(&told);
    let forgets = Tamper(move |_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
        let mut payload = payload.to_vec();
        if slot.kind == PREPARE && payload[..2] == [0; 2] {
            let index = |place: usize| u16::from_be_bytes([payload[6 + 2 * place], payload[7 + 2 * place]]);
            let named: BTreeSet<u16> = (0..3).map(index).collect();
            let missing = (1..=4).find(|number| !named.contains(number)).unwrap();
            let first = named.iter().copied().find(|number| *number != coordinator).unwrap();
            if to == id(first) {
                let other = named.iter().copied().find(|number| ![coordinator, first].contains(number)).unwrap();
                let others = named.iter().map(|number| if *number == other { missing } else { *number });
                let others: BTreeSet<u16> = others.collect();
                payload.truncate(6);
                payload.extend(others.iter().flat_map(|number| number.to_be_bytes()));
                heard.lock().unwrap().insert(to);
            }
        }
        vec![(slot, payload.into())]
    });
    let report = group.run(b"m", 1, vec![(coordinator, Box::new(forgets))]);
    group.check(b"m", &report).unwrap();
    assert_eq!(told.lock().unwrap().len(), 1, "one has heard of others");
    assert!((1..=4).all(|number| quarantined(&group, number).is_empty()));
}

/// A holder that is restarted in the middle of a program begins anew, and has cheated nobody.
#[test]
fn a_restart_is_no_cheat() {
    for seed in 0..40 {
        let mut group = Group::dishonest(Suite::EcdsaP256, 2, 3);
        group.ticks = 40;
        let mut simulator = group.simulator(seed);
        for number in 1..=3 {
            simulator.honest(id(number), group.machine(number, b"m"));
        }
        simulator.restart(40 * seed, id(2), group.restarted(2, b"m"));
        group.check(b"m", &simulator.run()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!((1..=3).all(|number| quarantined(&group, number).is_empty()), "seed {seed}");
    }
}

/// A liar that says nothing from a round of each program on.
fn silent_from(round: u16) -> Box<dyn Adversary> {
    tamper(move |slot, payload: Bytes| {
        let is_said = slot.kind < PROGRAM || round_of(&payload) < round;
        if is_said { vec![(slot, payload)] } else { Vec::new() }
    })
}

fn set_ups(group: &Group) -> Vec<usize> {
    group.stocks.iter().map(|stock| stock.set_ups().ready()).collect()
}

/// The second program of the same holders begins on what the first has left, for as long as its epoch lasts.
#[test]
fn programs_leave_their_set_up_to_later_ones() {
    for (k, n) in [(2, 2), (3, 3)] {
        let mut group = Group::dishonest(Suite::EcdsaP256, k, n);
        let (first, _) = rounds(&group);
        assert_eq!(set_ups(&group), vec![1; n.into()]);
        for _ in 0..2 {
            let (later, _) = rounds(&group);
            assert_eq!(later.len(), first.len() - 1, "{k} of {n}");
        }
        assert_eq!(set_ups(&group), vec![1; n.into()], "it is the same one");
        group.forget(1);
        assert_eq!(rounds(&group).0.len(), first.len(), "who has restarted has none");
        assert_eq!(rounds(&group).0.len(), first.len() - 1);
    }
    // With passive security, too.
    let group = Group::passive_dishonest(Suite::EcdsaSecp256k1, 2, 2);
    let (first, _) = rounds(&group);
    assert_eq!((rounds(&group).0.len(), set_ups(&group)), (first.len() - 2, vec![1; 2]));
}

/// Each set of holders has its own.
#[test]
fn set_ups_of_other_holders_are_not_used() {
    let group = Group::dishonest(Suite::EcdsaP256, 2, 4);
    for turn in 0..12_u8 {
        group.check(&[turn], &group.run(&[turn], turn.into(), Vec::new())).unwrap();
    }
    assert!(set_ups(&group).iter().all(|ready| (1..=3).contains(ready)), "{:?}", set_ups(&group));
}

/// A lie in any message of a program that began on a set-up from before: the honest holder of two ends in quarantine as in the first program, and
/// nothing of the set-up is left to it. So it is with a holder that falls silent once the set-up was used, which is no cheat.
#[test]
fn no_set_up_outlives_a_lie_or_silence() {
    let warm = || {
        let mut group = Group::dishonest(Suite::EcdsaP256, 2, 2);
        group.ticks = 40;
        group.check(b"first", &group.run(b"first", 1, Vec::new())).unwrap();
        group
    };
    let (rounds, _) = rounds(&warm());
    let mut noticed = 0;
    for round in rounds.iter().copied().filter(|round| !BEGINNING.contains(round)).step_by(2) {
        let group = warm();
        let report = group.run(b"m", round.into(), vec![(1, lie_in(round, 1000))]);
        group.check_safe(b"m", &report).unwrap();
        if quarantined(&group, 2).is_empty() {
            // What depends on a bit that the liar guessed, or its own machine stopped first.
            continue;
        }
        noticed += 1;
        assert_eq!(set_ups(&group)[1], 0, "a lie in round {round}");

        let group = warm();
        drop(group.run(b"m", round.into(), vec![(1, silent_from(round))]));
        assert!(quarantined(&group, 2).is_empty());
        assert_eq!(set_ups(&group)[1], 0, "silence from round {round}");
    }
    assert!(noticed > rounds.len() / 4, "{noticed} of {} rounds", rounds.len());
}
